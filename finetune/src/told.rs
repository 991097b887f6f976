//! What a person sees of a run that asks nothing: a line for each stage that is done, and a bar for what takes long.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use finetune::stages::{Progress, Question, Record, Stage, Watch};
use finetune::train::{self, Event};
use indicatif::{ProgressBar, ProgressStyle};

/// Where there is no bar, a line so often.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

pub(crate) struct Told {
    bar: Option<ProgressBar>,
    last_line: Instant,
    cancelled: Arc<AtomicBool>,
    /// What is told of the training beside its steps.
    validation: Option<f64>,
    steps: usize,
}

impl Told {
    pub(crate) fn new(cancelled: Arc<AtomicBool>) -> Self {
        let last_line = Instant::now().checked_sub(BETWEEN_LINES).unwrap_or_else(Instant::now);
        Self { bar: None, last_line, cancelled, validation: None, steps: 0 }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| write_line(line)),
            None => write_line(line),
        }
    }

    fn show(&mut self, done: usize, of: usize, message: String) {
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({eta} left)");
            ProgressBar::new(of as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        // Where stderr is no terminal, or one whose cursor cannot move.
        if bar.is_hidden() {
            if done == of || self.last_line.elapsed() >= BETWEEN_LINES {
                self.last_line = Instant::now();
                write_line(&format!("{done} of {of} {message}"));
            }
            return;
        }
        bar.set_length(of as u64);
        bar.set_position(done as u64);
        bar.set_message(message);
    }

    fn train(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { done, steps } => {
                self.steps = *steps;
                if *done > 0 {
                    self.say(&format!("Going on after step {done} of {steps}"));
                }
            }
            Event::Logged(train::Record::Validation { loss, .. }) => self.validation = Some(*loss),
            Event::Logged(train::Record::Step { step, loss, tokens_per_second, .. }) => {
                let validation = self.validation.map(|loss| format!(", validation {loss:.4}")).unwrap_or_default();
                let message = format!("steps, loss {loss:.4}{validation}, {tokens_per_second:.1} tokens/s");
                self.show(*step, self.steps, message);
            }
        }
    }
}

fn write_line(line: &str) {
    // Nothing is left to tell the person with if stderr is gone.
    let _ = writeln!(std::io::stderr(), "{line}");
}

impl Watch for Told {
    fn began(&mut self, _: Stage) {}

    fn progressed(&mut self, _: Stage, progress: &Progress<'_>) {
        match progress {
            Progress::Training(event) => self.train(event),
            Progress::Counted { done, of } => self.show(*done, *of, "answers".to_owned()),
        }
    }

    fn finished(&mut self, record: &Record) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        write_line(&format!("{} ({:.1} s)", what_was_done(record), record.seconds));
    }

    fn passed_over(&mut self, stage: Stage, why: &str) {
        self.say(&format!("Passed over {}: {why}", stage.as_str()));
    }

    /// Without a person the figures alone decide, and those are looked at elsewhere.
    fn agrees(&mut self, _: &Question<'_>) -> bool {
        true
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// One line of a stage's figures, in the past.
pub(crate) fn what_was_done(record: &Record) -> String {
    let figures = &record.figures;
    let float = |path: &str| figures.pointer(path).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN);
    let text = |path: &str| {
        figures.pointer(path).map(|value| value.to_string().trim_matches('"').to_owned()).unwrap_or_default()
    };
    match record.stage {
        Stage::Base => format!(
            "Checked the base {} ({}, {} parameters)",
            text("/name"),
            text("/architecture"),
            text("/parameters")
        ),
        Stage::Dataset => format!("Checked the dataset in {}", text("/folder")),
        Stage::Preflight => format!(
            "Estimated {} steps of {} tokens in all at {:.1} tokens/s: {}, {:.2} GiB of memory, {:.2} GiB of disk",
            text("/steps"),
            text("/tokens"),
            float("/tokens_per_second"),
            duration(float("/seconds")),
            float("/memory_bytes") / f64::from(1_u32 << 30),
            float("/disk_bytes") / f64::from(1_u32 << 30),
        ),
        Stage::Lora => format!(
            "Trained {} steps: loss {:.4} → {:.4}",
            text("/outcome/steps"),
            float("/outcome/first_loss"),
            float("/outcome/last_loss")
        ),
        Stage::Merge => format!("Merged the adapter into {} of {} tensors", text("/changed"), text("/tensors")),
        Stage::Gguf => format!("Wrote the model as {} ({:.1} MB)", text("/quantisation"), float("/bytes") / 1e6),
        Stage::Verify => format!(
            "Verified the file: top-1 {:.3}, divergence {:.1e}",
            float("/logits/top_1"),
            float("/logits/divergence")
        ),
        Stage::Smoke => "Let mistralrs answer with it".to_owned(),
        Stage::Eval => {
            let verdict = if figures["verdict"]["passed"] == true {
                "better than its base"
            } else {
                "not proved better than its base"
            };
            format!("Judged {} turns of {} rows: {verdict}", text("/turns"), text("/rows"))
        }
        Stage::Report => "Wrote the report".to_owned(),
        Stage::Install => format!("Installed it as {}", text("/installed")),
    }
}

pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

//! One thing that takes time: a spinner or a bar while it runs, one past-tense line with its duration when it is done.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::{Printer, human_duration};

/// A running step. Dropped without [`Step::done`] it vanishes: the failure is told elsewhere, once.
#[derive(Debug)]
pub struct Step {
    printer: Printer,
    bar: ProgressBar,
    started: Instant,
}

impl Step {
    pub(super) fn begin(printer: Printer, doing: String) -> Self {
        printer.detail(format_args!("{doing} ..."));
        let bar = printer.bars.add(ProgressBar::new_spinner().with_message(doing));
        bar.set_style(style("{spinner} {msg} ({elapsed})"));
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { printer, bar, started: Instant::now() }
    }

    /// Changes what the running step says of itself.
    pub fn say(&self, doing: impl Into<String>) {
        self.bar.set_message(doing.into());
    }

    /// Turns the spinner into a bar; `position` and `length` are bytes.
    pub fn progress(&self, position: u64, length: u64) {
        if self.bar.length() != Some(length) {
            self.bar.set_length(length);
            self.bar.set_style(style("{spinner} {msg} [{bar:30}] {bytes}/{total_bytes} ({elapsed})"));
        }
        self.bar.set_position(position);
    }

    /// Ends the step with what was done, in the past tense.
    pub fn done(self, done: impl AsRef<str>) {
        let took = human_duration(self.started.elapsed());
        self.bar.finish_and_clear();
        self.printer.note(format_args!("{} in {took}", done.as_ref()));
    }

    /// Ends the step without a word: there was nothing to do.
    pub fn skip(self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &'static str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are constants that parse")
}

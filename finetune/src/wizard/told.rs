//! What the wizard says of sizes, answers, estimates and evaluations.

use std::fmt::Write as _;
use std::path::Path;

use finetune::eval::{Evaluation, METRICS, Measured, Metric};
use finetune::install;
use finetune::stages::{Estimate, Preset};

use super::around::Around;
use super::dataset::Filters;
use super::questions::{Answers, FILE_NAME};
use crate::told::duration;

/// What a run of that size means.
pub(super) fn size(preset: Preset) -> String {
    let config = preset.config();
    let tokens = config.train.sequence_tokens * config.train.sequences_per_step;
    let steps = match config.train.max_steps {
        Some(steps) => format!("{steps} steps of {tokens} tokens"),
        None => format!("all of the data {} times", config.train.epochs),
    };
    let meaning = match preset {
        Preset::Tiny => "a trial that is never installed",
        Preset::Small => "an evening on a processor",
        Preset::Full => "for a GPU",
    };
    format!("{}: {steps}; {meaning}", name(preset))
}

const fn name(preset: Preset) -> &'static str {
    match preset {
        Preset::Tiny => "tiny",
        Preset::Small => "small",
        Preset::Full => "full",
    }
}

pub(super) fn lm_studio_folder(folder: &Path) -> String {
    let missing = if folder.is_dir() { "" } else { " (made when it is needed)" };
    format!("{}{missing}", folder.display())
}

pub(super) fn summary(answers: &Answers, around: &Around) -> String {
    let Answers { preset, config, filters } = answers;
    let dataset = config.dataset.folder.as_ref().map_or_else(
        || format!("a new one of the journal: {}", described(filters)),
        |folder| folder.display().to_string(),
    );
    let lm_studio = config.install.lm_studio.as_ref().or(around.usual_lm_studio.as_ref());
    let lines = [
        ("base", config.base.model.clone()),
        ("dataset", dataset),
        ("size", size(*preset)),
        ("form", config.gguf.quantisation.as_str().to_owned()),
        ("LM Studio", lm_studio.map_or_else(|| "unknown".to_owned(), |folder| folder.display().to_string())),
        ("models", around.folders.root().display().to_string()),
    ];
    lines.iter().map(|(what, said)| format!("  {what:<10} {said}")).collect::<Vec<_>>().join("\n")
}

fn described(filters: &Filters) -> String {
    let projects = if filters.projects.is_empty() { "all projects".to_owned() } else { filters.projects.join(", ") };
    let turns = if filters.only_successful { "turns in which every call worked" } else { "all turns" };
    format!("{projects}; {turns}")
}

/// What runs the same without a question. The preset has to be said again: what a file leaves out is taken from there.
pub(super) fn command(answers: &Answers, around: &Around) -> String {
    let mut command = format!("cargo xtask train --config {FILE_NAME} --preset {}", name(answers.preset));
    // Writing to a string does not fail.
    for project in &answers.filters.projects {
        let _ = write!(command, " --project {}", quoted(project));
    }
    if answers.filters.only_successful {
        command.push_str(" --only-successful");
    }
    if let Some(folder) = &around.named_models {
        let _ = write!(command, " --models-dir {}", quoted(&folder.display().to_string()));
    }
    command
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// What the training will take.
pub(super) fn estimate(estimate: &Estimate) -> String {
    let gib = |bytes: u64| bytes as f64 / f64::from(1_u32 << 30);
    let left_out = match estimate.left_out {
        0 => String::new(),
        count => {
            format!("  left out   {count} of {} samples, too long or with nothing to learn\n", estimate.train_samples)
        }
    };
    format!(
        "The training:\n  steps      {}, {} tokens in all\n{left_out}  time       about {} at {:.1} tokens/s\n  memory     about {:.2} \
         GiB\n  disk       {:.2} GiB",
        estimate.steps,
        estimate.tokens,
        duration(estimate.seconds),
        estimate.tokens_per_second,
        gib(estimate.memory_bytes),
        gib(estimate.disk_bytes),
    )
}

/// What decides: the tools' names, and what must not have become worse.
pub(super) fn evaluation(evaluation: &Evaluation) -> String {
    let mut text = format!("{} rows and {} turns were judged:\n", evaluation.rows, evaluation.turns);
    let width = METRICS.iter().map(|facts| facts.name.len()).max().unwrap_or_default();
    let shown = METRICS.iter().filter(|facts| facts.metric == Metric::ToolNameAccuracy);
    for facts in shown.chain(METRICS.iter().filter(|facts| facts.is_safety)) {
        if let Some(measured) = evaluation.metrics.iter().find(|measured| measured.metric == facts.metric) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {:width$}  {}", facts.name, compared(measured));
        }
    }
    text.push_str("Intervals are of 95 %; docs/finetune/eval.md says what each number means.");
    text
}

fn compared(measured: &Measured) -> String {
    let rate = |estimate: Option<finetune::eval::Estimate>| {
        estimate.map_or_else(|| "not measured".to_owned(), |estimate| format!("{:.3}", estimate.mean))
    };
    let difference = measured.difference.map_or_else(String::new, |difference| {
        format!(", difference {:+.3} [{:+.3}, {:+.3}]", difference.mean, difference.low, difference.high)
    });
    let (base, tuned) = (rate(measured.base.estimate), rate(measured.tuned.estimate));
    format!("base {base}, tuned {tuned}{difference}, n = {}", measured.tuned.turns)
}

/// How what was installed is used.
pub(super) fn ways(installed: &Path) -> String {
    let mut lines = Vec::new();
    let folder = installed.parent();
    let name = folder.and_then(Path::file_name);
    if let (Some(name), Some(publisher)) = (name, folder.and_then(Path::parent).and_then(Path::file_name)) {
        lines.push(("LM Studio", format!("it is among your models as {}/{}", publisher.display(), name.display())));
    }
    lines.extend(install::ways(installed));
    lines.iter().map(|(what, how)| format!("  {what:<10} {how}")).collect::<Vec<_>>().join("\n")
}

//! `train` alone, as a person runs it: in a terminal it asks for everything, without one it says what is missing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use finetune::base::Architecture;
use finetune::stages::{Preset, RunConfig};
use tests::base_model::{self, Family};
use tests::stack::Stack;
use tests::terminal::Terminal;
use tests::{operator, programs, wait};

use crate::dataset::installed;
use crate::dataset::work::work;

/// Of a dataset and of a training: a debug build on a busy machine needs its time.
const LONG: Duration = Duration::from_mins(10);

const CTRL_C: &str = "\x03";
const ESCAPE: &str = "\x1b";

#[tokio::test]
async fn asks_for_everything_and_again_at_the_gates() -> Result<()> {
    let Some(tokenizer) = Family::Qwen3.folder().await? else { return Ok(()) };
    let stack = installed().await?;
    work(&stack, 30).await?;
    let base = tiny_base(&stack, &tokenizer)?;
    let here = stack.scratch().join("here");
    std::fs::create_dir(&here)?;

    let mut terminal = train(&stack, &here, "xterm").await?;
    terminal.pick("Which model is tuned?", "Another folder").await?;
    terminal.answer("Which folder?", "nowhere").await?;
    terminal.shows("`nowhere` is no folder").await?;
    terminal.pick("Which model is tuned?", &base.display().to_string()).await?;
    terminal.shows("There is no dataset for a qwen3 yet").await?;
    terminal.pick("Which projects?", "Only some").await?;
    terminal.is_asked(wait::PATIENCE, "Which ones?").await?;
    terminal.shows("widgets (").await?;
    terminal.press(" \r")?;
    terminal.pick("Which turns?", "All turns").await?;
    answer_the_rest(&mut terminal).await?;
    terminal.shows("a new one of the journal: widgets; all turns").await?;
    terminal.pick("What now?", "Start").await?;
    terminal.is_asked(LONG, "Start the training?").await?;
    terminal.shows("steps      40, ").await?;
    terminal.press("n")?;
    terminal.shows("Nothing was trained.").await?;
    assert_eq!(terminal.ends_within(wait::PATIENCE).await?, 0, "{}", terminal.screen());
    assert!(!terminal.was_coloured(), "NO_COLOR is set");
    let remains = lines_that_begin(&terminal, "? ");
    assert!(remains.is_empty(), "an answered question is drawn over: {remains:?}");

    // The same again: the dataset is there now.
    let mut terminal = train(&stack, &here, "xterm").await?;
    terminal.pick("Which model is tuned?", "base/tiny").await?;
    terminal.pick("Which dataset?", "The latest, v1 of ").await?;
    answer_the_rest(&mut terminal).await?;
    terminal.pick("What now?", "Start").await?;
    terminal.is_asked(LONG, "Start the training?").await?;
    terminal.press("y")?;
    terminal.shows_within(LONG, "Trained 40 steps").await?;
    terminal.shows_within(LONG, "not proved better than its base").await?;
    assert_eq!(terminal.ends_within(LONG).await?, 1, "{}", terminal.screen());
    // Forty rows at most are judged, which is too few to install a model: nobody is asked.
    let screen = terminal.screen();
    assert!(screen.contains("is not installed, for it did not prove better than its base"), "{screen}");
    assert!(!screen.contains("Install it?"), "{screen}");
    let report = only_folder(&stack.home().models().join("runs"))?.join("report.md");
    assert!(screen.replace('\n', "").contains(&report.display().to_string()), "{screen}");
    assert!(report.is_file() && !stack.scratch().join(".lmstudio").exists());
    Ok(())
}

#[tokio::test]
async fn writes_what_was_answered_and_stops() -> Result<()> {
    let Some(tokenizer) = Family::Qwen3.folder().await? else { return Ok(()) };
    let stack = installed().await?;
    let base = tiny_base(&stack, &tokenizer)?;
    let here = stack.scratch().join("here");
    std::fs::create_dir(&here)?;

    for leaves in [CTRL_C, ESCAPE] {
        let mut terminal = train(&stack, &here, "xterm").await?;
        terminal.pick("Which model is tuned?", "base/tiny").await?;
        terminal.is_asked(wait::PATIENCE, "Which turns?").await?;
        terminal.press(leaves)?;
        terminal.shows("Nothing was started.").await?;
        assert_eq!(terminal.ends_within(wait::PATIENCE).await?, 0, "{}", terminal.screen());
    }
    assert_eq!(std::fs::read_dir(&here)?.count(), 0);

    let mut terminal = train(&stack, &here, "xterm").await?;
    terminal.pick("Which model is tuned?", "base/tiny").await?;
    terminal.shows("no prompt with a tool call yet").await?;
    terminal.pick("Which turns?", "every call worked").await?;
    answer_the_rest(&mut terminal).await?;
    terminal.pick("What now?", "Write train.toml").await?;
    terminal.shows("`cargo xtask train --config train.toml --preset tiny --only-successful` runs it.").await?;
    assert_eq!(terminal.ends_within(wait::PATIENCE).await?, 0, "{}", terminal.screen());
    let written = RunConfig::read(&here.join("train.toml"), Preset::Tiny)?;
    let mut expected = Preset::Tiny.config();
    expected.base.model = base.display().to_string();
    expected.dataset.fresh = true;
    assert_eq!(written, expected);

    // A terminal whose cursor cannot move is asked line by line.
    let mut terminal = train(&stack, &here, "dumb").await?;
    terminal.shows("Which model is tuned?\n  1  ").await?;
    terminal.press("1\r")?;
    terminal.shows("  2  Only turns in which every call worked").await?;
    terminal.press("q\r")?;
    terminal.shows("Nothing was started.").await?;
    assert_eq!(terminal.ends_within(wait::PATIENCE).await?, 0, "{}", terminal.screen());
    Ok(())
}

#[tokio::test]
async fn says_what_is_missing_where_there_is_no_terminal() -> Result<()> {
    let stack = Stack::stopped().await?;
    stack.install(&programs::finetune().await?)?;
    let told = tokio::time::timeout(wait::PATIENCE, operator::run(&stack, &["train"], &[])).await;
    let told = told.context("it waits for somebody")??;
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert!(told.stderr.contains("error: no base model is named\nhint: "), "{}", told.stderr);
    assert!(told.stdout.is_empty(), "{}", told.stdout);
    Ok(())
}

async fn train(stack: &Stack, folder: &Path, terminal: &str) -> Result<Terminal> {
    let environment = [
        ("AGENT_MEMORY_HOME", stack.home().root().into()),
        ("HOME", stack.scratch().into()),
        ("TERM", terminal.into()),
        ("NO_COLOR", OsString::from("1")),
    ];
    Terminal::start(&programs::xtask().await?, &["train"], &environment, folder)
}

/// Size, form and where LM Studio's models lie.
async fn answer_the_rest(terminal: &mut Terminal) -> Result<()> {
    terminal.pick("How much is trained?", "tiny: ").await?;
    terminal.pick("In which form is the file?", "q8_0: ").await?;
    terminal.pick("Where do LM Studio's models lie?", ".lmstudio/models").await
}

/// Random numbers in the shape of a Qwen3, among the models of the home.
fn tiny_base(stack: &Stack, tokenizer: &Path) -> Result<PathBuf> {
    let folder = stack.home().models().join("base").join("tiny");
    base_model::random(tokenizer, Architecture::Qwen3, &folder)?;
    Ok(folder)
}

fn lines_that_begin(terminal: &Terminal, prefix: &str) -> Vec<String> {
    terminal.screen().lines().filter(|line| line.starts_with(prefix)).map(str::to_owned).collect()
}

fn only_folder(folder: &Path) -> Result<PathBuf> {
    let mut entries = std::fs::read_dir(folder).with_context(|| format!("reading `{}`", folder.display()))?;
    let only = entries.next().context("a run's folder")??.path();
    assert!(entries.next().is_none(), "the same answers are the same run");
    Ok(only)
}

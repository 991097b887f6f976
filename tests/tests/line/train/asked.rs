//! A person at the second gate: the questions lead to a run that was trained, and the model that proved better is installed at a yes.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};
use tests::stack::Stack;
use tests::terminal::Terminal;
use tests::{programs, wait};

/// Answers the questions as that run was configured, with `train.toml` beside the home, and agrees to install.
pub(super) async fn installs(stack: &Stack, base: &Path) -> Result<()> {
    let environment = [
        ("AGENT_MEMORY_HOME", stack.home().root().into()),
        ("HOME", stack.scratch().into()),
        ("TERM", "xterm".into()),
        ("NO_COLOR", OsString::from("1")),
    ];
    let mut terminal = Terminal::start(&programs::xtask().await?, &["train"], &environment, stack.scratch())?;
    terminal.pick("Which model is tuned?", "Another folder").await?;
    terminal.answer("Which folder?", &base.display().to_string()).await?;
    terminal.pick("Which dataset?", "The latest, v1 of ").await?;
    terminal.pick("How much is trained?", "As the train.toml here says").await?;
    terminal.pick("In which form is the file?", "f16: ").await?;
    terminal.pick("Where do LM Studio's models lie?", "Another folder").await?;
    terminal.answer("Which folder?", "asked").await?;
    terminal.pick("What now?", "Start").await?;
    // What is trained already is not trained again: the first gate has nothing to ask.
    terminal.is_asked(wait::PATIENCE, "Install it?").await?;
    terminal.shows("tool_name_accuracy").await?;
    let installed = stack.scratch().join("asked").join("agent-memory");
    assert!(!installed.exists(), "nothing is installed before the answer");
    terminal.press("y")?;
    terminal.shows("Installed ").await?;
    assert_eq!(terminal.ends_within(wait::PATIENCE).await?, 0, "{}", terminal.screen());
    let model = std::fs::read_dir(&installed)?.next().context("a model's folder")??.path();
    let is_whole = std::fs::read_dir(&model)?.any(|entry| entry.is_ok_and(|entry| is_gguf(&entry.path())));
    assert!(is_whole, "{}", model.display());
    Ok(())
}

fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gguf")
}

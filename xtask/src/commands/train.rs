//! `train dataset`: runs the installed `agent-memory-finetune`, which knows how rows are made.

use anyhow::{Context, Result, bail};
use memory::home::Home;
use tokio::process::Command;

use crate::cli::DatasetArgs;
use crate::output::HintExt;

pub(super) async fn dataset(arguments: &DatasetArgs, home: &Home) -> Result<()> {
    let program = home.program("agent-memory-finetune");
    let status = Command::new(&program)
        .arg("dataset")
        .args(&arguments.arguments)
        .env("AGENT_MEMORY_HOME", home.root())
        .env("AGENT_MEMORY_DISABLE", "1")
        .status()
        .await
        .with_context(|| format!("cannot start `{}`", program.display()))
        .hint("run `cargo xtask up` to install it")?;
    if !status.success() {
        bail!("`train dataset` did not succeed; its message is above");
    }
    Ok(())
}

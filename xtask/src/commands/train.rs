//! `train`: runs the installed `agent-memory-finetune`, which knows how rows and models are made.

use anyhow::{Context, Result, bail};
use memory::home::Home;
use tokio::process::Command;

use crate::cli::TrainArgs;
use crate::output::HintExt;

pub(super) async fn run(arguments: &TrainArgs, home: &Home) -> Result<()> {
    // Ctrl-C reaches the program too, which keeps a checkpoint before it ends; it is waited for.
    let interrupts = tokio::spawn(async { while tokio::signal::ctrl_c().await.is_ok() {} });
    let program = home.program("agent-memory-finetune");
    let status = Command::new(&program)
        .args(&arguments.arguments)
        .env("AGENT_MEMORY_HOME", home.root())
        .env("AGENT_MEMORY_DISABLE", "1")
        .status()
        .await
        .with_context(|| format!("cannot start `{}`", program.display()))
        .hint("run `cargo xtask up` to install it")?;
    interrupts.abort();
    if !status.success() {
        bail!("`train` did not succeed; its message is above");
    }
    Ok(())
}

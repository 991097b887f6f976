//! `train dataset`: runs the installed `agent-memory-finetune`, which knows how rows are made.

use anyhow::{Context, Result, anyhow, bail};
use memory::home::Home;
use tokio::process::Command;

use crate::cli::DatasetArgs;
use crate::output::{HintExt, hinted};

pub(super) async fn dataset(arguments: &DatasetArgs, home: &Home) -> Result<()> {
    if !arguments.dry_run {
        return Err(hinted(
            anyhow!("datasets are not written yet, only counted"),
            "run `cargo xtask train dataset --dry-run`",
        ));
    }
    let program = home.program("agent-memory-finetune");
    let status = Command::new(&program)
        .args(["dataset", "--dry-run"])
        .args(arguments.json.then_some("--json"))
        .env("AGENT_MEMORY_HOME", home.root())
        .env("AGENT_MEMORY_DISABLE", "1")
        .status()
        .await
        .with_context(|| format!("cannot start `{}`", program.display()))
        .hint("run `cargo xtask up` to install it")?;
    if !status.success() {
        bail!("the count failed; its messages are above");
    }
    Ok(())
}

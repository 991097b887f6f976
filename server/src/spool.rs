//! The spool: events that hooks could not hand over, and events that were answered before their commit. Drained in the order
//! of their names, a file deleted only after its event's commit. What cannot be read is set aside, never deleted.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use memory::event::{Envelope, EnvelopeError, Reading, read};
use tokio_util::sync::CancellationToken;

use crate::counters::Counters;
use crate::writer::{Enqueued, WriteError, Writer};

const INTERVAL: Duration = Duration::from_secs(2);
/// Files in hand at once: they share commits.
const BATCH: usize = 32;
/// And no more of them than this, though one may be larger.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// What starts so is being written; a hook that was killed in the middle of it leaves it so.
const UNFINISHED: &str = ".tmp-";
/// No hook writes for longer.
const ABANDONED_AFTER: Duration = Duration::from_mins(1);

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    folder: PathBuf,
    /// Names of files whose events are on their way into the journal already.
    held: Arc<Mutex<HashSet<String>>>,
}

/// An event that lies in the spool while it is being committed.
#[derive(Debug)]
pub(crate) struct Held {
    spool: Spool,
    name: String,
}

/// How many files wait, and how many were set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct SpoolState {
    pub(crate) waiting: usize,
    pub(crate) rejected: usize,
}

impl Spool {
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { folder, held: Arc::default() }
    }

    /// Keeps an envelope until its commit, so that it outlives this process: it is not synced to the disk, for the commit
    /// follows within milliseconds and is.
    pub(crate) fn hold(&self, name: String, body: &[u8]) -> io::Result<Held> {
        let unfinished = self.folder.join(format!("{UNFINISHED}{name}-{}", std::process::id()));
        // Before the file has its name, or the drain might see it first.
        let held = Held { spool: self.clone(), name };
        self.held_names().insert(held.name.clone());
        create_private(&unfinished)
            .and_then(|mut file| io::Write::write_all(&mut file, body))
            .and_then(|()| std::fs::rename(&unfinished, self.folder.join(&held.name)))
            .inspect_err(|_| drop(std::fs::remove_file(&unfinished)))?;
        Ok(held)
    }

    fn held_names(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_held(&self, file: &Path) -> bool {
        file.file_name().and_then(OsStr::to_str).is_some_and(|name| self.held_names().contains(name))
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

    /// Drains what is there, in the order of the names; returns how many files are gone. A file that cannot be dealt with is left
    /// where it is and does not hold up the others.
    async fn drain(&self, writer: &Writer, counters: &Counters) -> io::Result<usize> {
        let spool = self.clone();
        let files = tokio::task::spawn_blocking(move || spool.ready()).await.map_err(io::Error::other)??;
        let mut gone = 0;
        let mut files = files.into_iter().peekable();
        while files.peek().is_some() {
            let mut taken = Vec::new();
            let mut bytes = 0;
            while taken.len() < BATCH && bytes < BATCH_BYTES {
                let Some(file) = files.next() else { break };
                match self.take(&file, writer, counters).await {
                    Ok(Taken { fate, size }) => {
                        bytes += size;
                        taken.push((file, fate));
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => complain(&file, &error),
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
        adopt_abandoned(&self.folder)?;
        let mut files = envelopes(&self.folder)?;
        files.retain(|file| !self.is_held(file));
        Ok(files)
    }

    /// Reads a file and gives its event its place in the queue for the commit: one file after the other, for that is their order.
    async fn take(&self, file: &Path, writer: &Writer, counters: &Counters) -> io::Result<Taken> {
        let body = tokio::fs::read(file).await?;
        let size = body.len();
        let parsed = tokio::task::spawn_blocking(move || Envelope::parse(&body, None, chrono::Utc::now()).map(read));
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
            Ok(Reading::Kept(event)) => writer.enqueue(*event).await.map_or(Fate::Left, Fate::Enqueued),
        };
        Ok(Taken { fate, size })
    }

    /// Waits for the commit, then deletes the file, or sets it aside.
    async fn settle(&self, file: PathBuf, fate: Fate, counters: &Counters) -> Settled {
        let unreadable = match fate {
            Fate::Left => return Settled::Left,
            Fate::Done => None,
            Fate::Unreadable(reason) => Some(reason),
            Fate::Enqueued(enqueued) => match enqueued.committed().await {
                Ok(recorded) => {
                    counters.count_recorded(recorded);
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
                complain(&file, &error);
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
        tracing::error!(spool.file = %name.to_string_lossy(), reason, "set a spool file aside that cannot be stored");
        Ok(())
    }

    /// Keeps a body that is no event where a person can look at it.
    pub(crate) fn set_aside(&self, body: &[u8]) -> io::Result<()> {
        let folder = self.rejected();
        std::fs::create_dir_all(&folder)?;
        let name = format!("{:020}-{}.json", chrono::Utc::now().timestamp_micros(), uuid::Uuid::new_v4());
        create_private(&folder.join(name)).and_then(|mut file| io::Write::write_all(&mut file, body))
    }

    fn rejected(&self) -> PathBuf {
        self.folder.join("rejected")
    }
}

/// A file that was read.
struct Taken {
    fate: Fate,
    size: usize,
}

enum Fate {
    Enqueued(Enqueued),
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

fn complain(file: &Path, error: &io::Error) {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    tracing::error!(spool.file = %name, error = error as &dyn std::error::Error, "a spool file cannot be drained");
}

impl Held {
    /// The event is in the journal.
    pub(crate) fn committed(self) {
        // The drain finds what could not be deleted, and that the journal has it.
        let _ = std::fs::remove_file(self.spool.folder.join(&self.name));
    }
}

impl Drop for Held {
    /// Whatever became of it, from now on the file is the drain's.
    fn drop(&mut self) {
        self.spool.held_names().remove(&self.name);
    }
}

fn create_private(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Gives files that nobody finishes any more a name, under which they are stored if they are whole and set aside if not.
fn adopt_abandoned(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)?.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(UNFINISHED) else { continue };
        let written = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old =
            written.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > ABANDONED_AFTER));
        if !is_old {
            continue;
        }
        let adopted = if rest.ends_with(".json") {
            std::fs::rename(entry.path(), folder.join(rest))
        } else {
            // A server's own: it was never acknowledged, so its hook has kept the event.
            std::fs::remove_file(entry.path())
        };
        if let Err(error) = adopted {
            complain(&entry.path(), &error);
        }
    }
    Ok(())
}

/// Whole envelopes, oldest first: their names start with the event's time.
fn envelopes(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = std::fs::read_dir(folder)?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "json")
                && path.file_name().and_then(OsStr::to_str).is_some_and(|name| !name.starts_with('.'))
        })
        .collect::<Vec<_>>();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use memory::event::Agent;

    use super::*;

    fn spool() -> (tempfile::TempDir, Spool) {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::at(folder.path().to_owned());
        (folder, spool)
    }

    fn names(folder: &Path) -> Vec<String> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn holds_an_event_until_its_commit_and_leaves_it_to_the_drain_without_one() {
        let (folder, spool) = spool();
        let body = br#"{"session_id":"s","hook_event_name":"Stop"}"#;
        let envelope = Envelope::parse(body, Some(Agent::ClaudeCode), Utc::now()).unwrap();
        let held = spool.hold(envelope.spool_name(), body).unwrap();
        let file = folder.path().join(&names(folder.path())[0]);
        assert!(spool.is_held(&file));
        drop(held);
        assert!(!spool.is_held(&file) && file.is_file());
        spool.hold(envelope.spool_name(), body).unwrap().committed();
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn adopts_only_what_was_abandoned() {
        let (folder, _) = spool();
        for name in [".tmp-1-a.json", ".tmp-2-b.json", "3-c.json", ".tmp-4-d.json-77"] {
            std::fs::write(folder.path().join(name), "{}").unwrap();
        }
        for name in [".tmp-1-a.json", ".tmp-4-d.json-77"] {
            let file = std::fs::File::options().append(true).open(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - 2 * ABANDONED_AFTER).unwrap();
        }
        adopt_abandoned(folder.path()).unwrap();
        let mut names = names(folder.path());
        names.sort();
        assert_eq!(names, [".tmp-2-b.json", "1-a.json", "3-c.json"]);
    }
}

//! The spool: events that hooks could not hand over, and events that were answered before their commit. A file is deleted only
//! after its event's commit; what cannot be read is set aside, never deleted. This file knows the folder, `drain` empties it.
//!
//! Hooks of this machine write here what is the operator's. What the server itself keeps of somebody else says whose it is in the
//! file's name, which is the server's; the content is the sender's, and is not asked.

mod drain;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use memory::access::Who;
use memory::ids::PersonId;

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
    /// Names of files that something is wrong with and that were spoken of: the drain comes by every two seconds.
    complained: Arc<Mutex<HashSet<String>>>,
}

/// An event that lies in the spool while it is being committed.
#[derive(Debug)]
pub(crate) struct Held {
    spool: Spool,
    name: String,
}

/// How many files wait and what they take, and how many were set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct SpoolState {
    pub(crate) waiting: usize,
    pub(crate) waiting_bytes: u64,
    pub(crate) rejected: usize,
}

impl Spool {
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { folder, held: Arc::default(), complained: Arc::default() }
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
        let waiting = envelopes(&self.folder).unwrap_or_default();
        SpoolState {
            waiting_bytes: waiting.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum(),
            waiting: waiting.len(),
            rejected: envelopes(&self.rejected()).map_or(0, |files| files.len()),
        }
    }

    /// Keeps a body that is no event where a person can look at it.
    pub(crate) fn set_aside(&self, who: Who, body: &[u8], reason: &str) -> io::Result<()> {
        let folder = self.rejected();
        std::fs::create_dir_all(&folder)?;
        let name = format!("{:020}-{}.json", chrono::Utc::now().timestamp_micros(), uuid::Uuid::new_v4());
        let path = folder.join(named(&name, who));
        create_private(&path).and_then(|mut file| io::Write::write_all(&mut file, body))?;
        note_reason(&path, reason);
        Ok(())
    }

    /// Logs what is wrong with a file, once.
    fn complain(&self, file: &Path, error: &io::Error) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut complained = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if complained.insert(name.clone()) {
            tracing::error!(
                spool.file = name,
                error = error as &dyn std::error::Error,
                "a spool file cannot be drained"
            );
        }
    }

    /// Gives files that nobody finishes any more a name, under which they are stored if they are whole and set aside if not.
    fn adopt_abandoned(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)?.filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(rest) = name.strip_prefix(UNFINISHED) else { continue };
            let written = entry.metadata().and_then(|metadata| metadata.modified());
            let is_old =
                written.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > ABANDONED_AFTER));
            if !is_old {
                continue;
            }
            let adopted = if rest.ends_with(".json") {
                std::fs::rename(entry.path(), self.folder.join(rest))
            } else {
                // A server's own: it was never acknowledged, so its hook has kept the event.
                std::fs::remove_file(entry.path())
            };
            if let Err(error) = adopted {
                self.complain(&entry.path(), &error);
            }
        }
        Ok(())
    }

    fn rejected(&self) -> PathBuf {
        self.folder.join("rejected")
    }
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

/// What in a file's name says whose it is.
const WHOSE: &str = "-person-";

/// The name of a file that holds what is somebody's.
pub(crate) fn named(name: &str, who: Who) -> String {
    match (who, name.strip_suffix(".json")) {
        (Who::Person(person), Some(name)) => format!("{name}{WHOSE}{}.json", person.0),
        _ => name.to_owned(),
    }
}

/// Whose a file is; `None`: its name is none that was given here.
fn whose(file: &Path) -> Option<Who> {
    let name = file.file_stem()?.to_str()?;
    match name.split_once(WHOSE) {
        None => Some(Who::Operator),
        Some((_, person)) => person.parse().ok().map(|person| Who::Person(PersonId(person))),
    }
}

/// Leaves beside a file that was set aside why it was, for `doctor`; the log says it too.
fn note_reason(file: &Path, reason: &str) {
    let noted = create_private(&file.with_extension("reason"));
    // Without it the file is as safe as with it.
    let _ = noted.and_then(|mut file| io::Write::write_all(&mut file, reason.as_bytes()));
}

fn create_private(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
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
    use memory::event::{Agent, Envelope};

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
    fn says_in_a_files_name_whose_it_is() {
        let ada = Who::Person(PersonId(7));
        for who in [Who::Operator, ada] {
            assert_eq!(whose(Path::new(&named("00000000000000000012-ab-cd.json", who))), Some(who));
        }
        assert_eq!(named("1.json", ada), "1-person-7.json");
        assert_eq!(whose(Path::new("1-person-ada.json")), None);
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
        let (folder, spool) = spool();
        for name in [".tmp-1-a.json", ".tmp-2-b.json", "3-c.json", ".tmp-4-d.json-77"] {
            std::fs::write(folder.path().join(name), "{}").unwrap();
        }
        for name in [".tmp-1-a.json", ".tmp-4-d.json-77"] {
            let file = std::fs::File::options().append(true).open(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - 2 * ABANDONED_AFTER).unwrap();
        }
        spool.adopt_abandoned().unwrap();
        let mut names = names(folder.path());
        names.sort();
        assert_eq!(names, [".tmp-2-b.json", "1-a.json", "3-c.json"]);
    }
}

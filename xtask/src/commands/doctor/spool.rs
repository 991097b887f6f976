//! What is wrong with the spool, looked at as it lies on disk, for the server may be what is wrong.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Finding, ago};
use crate::health::Health;
use crate::output::human_bytes;

const LOGS: &str = "cargo xtask logs server";
const UP: &str = "cargo xtask up";

/// The drain comes by every two seconds; what lies here longer is not being drained.
const STUCK_AFTER: Duration = Duration::from_mins(10);
/// From this size on the spool is worth a word: it has no limit of its own.
pub(in crate::commands) const LARGE_BYTES: u64 = 100_000_000;
/// How many rejected files are named.
const NAMED: usize = 3;

pub(super) fn spool(folder: &Path, health: Option<&Health>, now: SystemTime) -> Vec<Finding> {
    let waiting = envelopes(folder);
    let rejected = envelopes(&folder.join("rejected"));
    let bytes: u64 = waiting.iter().map(|file| file.bytes).sum();
    let oldest = waiting.iter().map(|file| file.modified).min();
    let mut findings = Vec::new();
    if let Some(oldest) = oldest
        && now.duration_since(oldest).is_ok_and(|age| age > STUCK_AFTER)
    {
        let age = ago(oldest.into(), now.into());
        let message = format!("{} events wait ({}), the oldest since {age}", waiting.len(), human_bytes(bytes));
        let (why, mend) = match health {
            None => ("the server does not answer, and only it empties the spool", UP),
            Some(health) if !health.database_is_up() => ("the server has no database", UP),
            Some(_) => {
                ("the server runs and does not take them: the log names the file and what is wrong with it", LOGS)
            }
        };
        findings.push(Finding::fail("spool", message, mend).coded("spool.stuck").why(why));
    }
    if bytes > LARGE_BYTES {
        let message = format!("{} of events wait", human_bytes(bytes));
        let why = "the spool grows for as long as the server is away; nothing of it is lost";
        findings.push(Finding::warn("spool", message, UP).coded("spool.large").why(why));
    }
    if !rejected.is_empty() {
        findings.push(set_aside(folder, &rejected));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("spool", format!("{} events wait, none was set aside", waiting.len())));
    }
    findings
}

/// When the newest of the files that wait was written.
pub(super) fn newest(folder: &Path) -> Option<SystemTime> {
    envelopes(folder).into_iter().map(|file| file.modified).max()
}

fn set_aside(folder: &Path, rejected: &[Envelope]) -> Finding {
    let named = rejected.iter().take(NAMED).map(|file| {
        let reason = std::fs::read_to_string(file.path.with_extension("reason")).ok();
        let name = file.path.file_name().unwrap_or_default().display();
        format!("{name}: {}", reason.as_deref().map_or("the log has the reason", str::trim))
    });
    let why = named.collect::<Vec<_>>().join("; ");
    let more = if rejected.len() > NAMED { format!("; and {} more", rejected.len() - NAMED) } else { String::new() };
    let place = folder.display();
    let message = format!("{} events could not be stored and are kept in `{place}/rejected`", rejected.len());
    // A later version may be able to read them.
    Finding::warn("spool", message, format!("mv '{place}'/rejected/*.json '{place}'/"))
        .coded("spool.rejected")
        .why(format!("{why}{more}. After an update they can be tried again; else delete them"))
}

struct Envelope {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

fn envelopes(folder: &Path) -> Vec<Envelope> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json"));
    let mut found: Vec<_> = files
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some(Envelope { path: entry.path(), bytes: metadata.len(), modified: metadata.modified().ok()? })
        })
        .collect();
    found.sort_by(|one, two| one.path.cmp(&two.path));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::tests::healthy;

    fn file(folder: &Path, name: &str, age: Duration) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, "{}").unwrap();
        std::fs::File::options().append(true).open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
        path
    }

    fn codes(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn finds_a_spool_that_does_not_drain_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        file(folder.path(), "1-a.json", Duration::from_secs(5));
        assert_eq!(codes(&spool(folder.path(), Some(&healthy()), SystemTime::now())), ["spool"]);
        file(folder.path(), "0-b.json", Duration::from_hours(3));
        let findings = spool(folder.path(), None, SystemTime::now());
        assert_eq!(codes(&findings), ["spool.stuck"]);
        let text = findings[0].to_string();
        assert!(text.contains("2 events") && text.contains("3 h") && text.contains("does not answer"), "{text}");
    }

    #[test]
    fn names_what_was_set_aside_and_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let rejected = folder.path().join("rejected");
        std::fs::create_dir(&rejected).unwrap();
        let path = file(&rejected, "1-a.json", Duration::ZERO);
        std::fs::write(path.with_extension("reason"), "the body is not JSON").unwrap();
        let findings = spool(folder.path(), Some(&healthy()), SystemTime::now());
        assert_eq!(codes(&findings), ["spool.rejected"]);
        assert!(findings[0].to_string().contains("1-a.json: the body is not JSON"), "{}", findings[0]);
    }

    #[test]
    fn warns_of_a_spool_that_has_grown_large() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "1-a.json", Duration::ZERO);
        std::fs::File::options().write(true).open(path).unwrap().set_len(LARGE_BYTES + 1).unwrap();
        assert_eq!(codes(&spool(folder.path(), Some(&healthy()), SystemTime::now())), ["spool.large"]);
    }
}

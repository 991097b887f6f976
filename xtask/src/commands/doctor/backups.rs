//! Whether there is a backup, how old it is, and how the last attempt went.

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};

use super::{Finding, ago};
use crate::backup::Summary;
use crate::output::{headline, human_bytes};
use crate::schedule::State;

/// Older than this is one to think of.
const OLD: TimeDelta = TimeDelta::days(7);

const BACKUP: &str = "cargo xtask backup";

pub(super) fn backups(summary: &Result<Summary>, now: DateTime<Utc>) -> Finding {
    let part = "backup";
    let summary = match summary {
        Ok(summary) => summary,
        Err(error) => {
            return Finding::fail(part, headline(error), "cargo xtask backup list").coded("backup.unreadable");
        }
    };
    let newest = summary.newest_at.map(|time| ago(time, now));
    if let Some(failure) = summary.failure() {
        let message = format!("the backup of {} failed: {}", ago(failure.at, now), failure.message);
        let there =
            newest.map_or_else(|| "there is no earlier one".to_owned(), |age| format!("the last one is from {age}"));
        return Finding::fail(part, message, BACKUP).coded("backup.failed").why(there);
    }
    let (Some(time), Some(age)) = (summary.newest_at, newest) else {
        let why = "a disk that breaks takes everything with it";
        return Finding::warn(part, "there is no backup yet", BACKUP).coded("backup.none").why(why);
    };
    let place = summary.folder.display();
    let message =
        format!("the last one is from {age}; {} in `{place}` ({})", summary.count, human_bytes(summary.bytes));
    if now - time > OLD { Finding::warn(part, message, BACKUP).coded("backup.old") } else { Finding::ok(part, message) }
}

/// Whether the daily backup is where it was put. One that a person took away is no fault.
pub(super) fn schedule(state: &Result<State>) -> Finding {
    const INSTALL: &str = "cargo xtask schedule install";
    let part = "schedule";
    match state {
        Err(error) => Finding::fail(part, headline(error), INSTALL).coded("schedule.unreadable"),
        Ok(State { trouble: Some(trouble), .. }) => {
            Finding::fail(part, trouble.clone(), INSTALL).coded("schedule.gone").why("no backup is made by itself")
        }
        Ok(State { scheduler: Some(scheduler), .. }) => {
            Finding::ok(part, format!("{scheduler} has a backup made each day"))
        }
        Ok(State { since: Some(_), .. }) => Finding::ok(part, "no backup is made by itself, as you wished"),
        Ok(_) => Finding::warn(part, "no backup is made by itself", INSTALL).coded("schedule.none"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use crate::backup::LastRun;

    #[test]
    fn tells_none_from_old_and_from_failed() {
        let now: DateTime<Utc> = "2026-03-20T12:00:00Z".parse().unwrap();
        let check = |newest_at: Option<&str>, failed_at: Option<&str>, verdict: Verdict, code: &str| {
            let failed = |at: &str| LastRun {
                at: at.parse().unwrap(),
                succeeded: false,
                message: "the disk is full".into(),
                duration_ms: 1,
            };
            let summary = Summary {
                folder: "/b".into(),
                count: 1,
                bytes: 1,
                newest_at: newest_at.map(|time| time.parse().unwrap()),
                newest_bytes: 1,
                last_run: failed_at.map(failed),
            };
            let finding = backups(&Ok(summary), now);
            assert_eq!((finding.verdict, finding.code), (verdict, code), "{finding}");
        };
        check(None, None, Verdict::Warn, "backup.none");
        check(Some("2026-03-20T03:00:00Z"), None, Verdict::Ok, "backup");
        check(Some("2026-03-10T03:00:00Z"), None, Verdict::Warn, "backup.old");
        check(Some("2026-03-19T03:00:00Z"), Some("2026-03-20T03:00:00Z"), Verdict::Fail, "backup.failed");
        check(Some("2026-03-20T03:00:00Z"), Some("2026-03-19T03:00:00Z"), Verdict::Ok, "backup");
        let unreadable = backups(&Err(anyhow::anyhow!("cannot read the folder `/b`")), now);
        assert_eq!((unreadable.verdict, unreadable.code), (Verdict::Fail, "backup.unreadable"));
    }
}

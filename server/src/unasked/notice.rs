//! What a person is told at a session's start, and the model is not.

use chrono::{DateTime, TimeDelta, Utc};
use memory::store::BackupNews;

/// A backup is made each day; so long without one is no accident.
const PATIENCE: TimeDelta = TimeDelta::days(2);

/// That no backup came for two days, where one is to be made each day.
pub(super) fn late_backup(news: BackupNews, now: DateTime<Utc>) -> Option<String> {
    let since = news.scheduled_since?;
    let last = news.last_made_at.map_or(since, |made| made.max(since));
    let days = (now - last).num_days();
    (now - last >= PATIENCE).then(|| {
        format!("agent-memory: no backup was made for {days} days; `cargo xtask schedule status` says why, `cargo xtask backup` makes one")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_only_of_a_backup_that_was_to_come_and_did_not() {
        let now: DateTime<Utc> = "2026-03-20T12:00:00Z".parse().unwrap();
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let told = |scheduled: Option<&str>, made: Option<&str>| {
            let news =
                BackupNews { scheduled_since: scheduled.map(at), last_made_at: made.map(at), last_failed_at: None };
            late_backup(news, now)
        };
        assert_eq!(told(None, Some("2026-01-01T00:00:00Z")), None, "nobody asked for one");
        assert_eq!(told(Some("2026-03-19T00:00:00Z"), None), None, "it was scheduled yesterday");
        assert_eq!(told(Some("2026-01-01T00:00:00Z"), Some("2026-03-19T00:00:00Z")), None);
        let late = told(Some("2026-01-01T00:00:00Z"), Some("2026-03-17T12:00:00Z")).unwrap();
        assert!(late.contains("for 3 days") && late.contains("cargo xtask schedule status"), "{late}");
        assert!(told(Some("2026-01-01T00:00:00Z"), None).is_some(), "none was ever made");
    }
}

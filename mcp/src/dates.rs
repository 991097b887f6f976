//! Moments as a model writes them: a timestamp, or a date that means its first or its last moment. All in UTC, as the
//! replies are.

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, TimeDelta, Utc};

/// What a date without a time of day means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    StartOfDay,
    EndOfDay,
}

/// Reads an ISO 8601 date or timestamp; a timestamp without an offset is UTC. `None` for anything else.
pub(crate) fn moment(text: &str, bound: Bound) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return Some(moment.to_utc());
    }
    let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    if let Some(moment) = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok()) {
        return Some(moment.and_utc());
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    let start = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
    match bound {
        Bound::StartOfDay => Some(start(day)),
        // Postgres counts microseconds.
        Bound::EndOfDay => Some(start(day.checked_add_days(Days::new(1))?) - TimeDelta::microseconds(1)),
    }
}

/// A moment for a reply.
pub(crate) fn written(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, bound: Bound, expected: Option<&str>) {
        let read = moment(text, bound).map(|moment| moment.to_rfc3339_opts(SecondsFormat::AutoSi, true));
        assert_eq!(read.as_deref(), expected, "{text}");
    }

    #[test]
    fn takes_a_date_as_the_whole_day() {
        check("2027-02-28", Bound::StartOfDay, Some("2027-02-28T00:00:00Z"));
        check("2027-02-28", Bound::EndOfDay, Some("2027-02-28T23:59:59.999999Z"));
    }

    #[test]
    fn takes_a_timestamp_as_it_is() {
        check("2027-02-28T12:30:00+02:00", Bound::EndOfDay, Some("2027-02-28T10:30:00Z"));
        check("2027-02-28T12:30:00", Bound::StartOfDay, Some("2027-02-28T12:30:00Z"));
        check(" 2027-02-28 12:30 ", Bound::StartOfDay, Some("2027-02-28T12:30:00Z"));
    }

    #[test]
    fn refuses_what_is_no_date() {
        for wrong in ["", "yesterday", "2027-02-30", "28.02.2027", "call-12"] {
            check(wrong, Bound::StartOfDay, None);
        }
    }
}

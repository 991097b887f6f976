//! Which scheduled backups go: of the days, weeks and months that have one, the newest of so many stay. A machine that was off for
//! a month loses none for it, because only periods with a backup are counted. Manual ones are never asked about.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, Utc};
use memory::settings;

/// How many of each stay. Days begin at midnight UTC, weeks on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    pub daily: usize,
    pub weekly: usize,
    pub monthly: usize,
}

impl Rotation {
    pub fn of(settings: &settings::Backup) -> Self {
        Self { daily: settings.daily, weekly: settings.weekly, monthly: settings.monthly }
    }

    /// The times of those that go. The newest always stays.
    pub fn outdated(self, made_at: &[DateTime<Utc>]) -> Vec<DateTime<Utc>> {
        let mut newest_first = made_at.to_vec();
        newest_first.sort_unstable_by(|one, other| other.cmp(one));
        newest_first.dedup();
        let mut kept: BTreeSet<_> = newest_first.first().copied().into_iter().collect();
        kept.extend(newest_of(&newest_first, self.daily, |time| (time.year(), time.ordinal())));
        kept.extend(newest_of(&newest_first, self.weekly, |time| (time.iso_week().year(), time.iso_week().week())));
        kept.extend(newest_of(&newest_first, self.monthly, |time| (time.year(), time.month())));
        newest_first.into_iter().filter(|time| !kept.contains(time)).collect()
    }
}

/// The newest of each of the last so many periods that have one.
fn newest_of(
    newest_first: &[DateTime<Utc>],
    periods: usize,
    period: impl Fn(&DateTime<Utc>) -> (i32, u32),
) -> Vec<DateTime<Utc>> {
    let mut seen = BTreeSet::new();
    let newest = newest_first.iter().filter(|time| seen.insert(period(time)));
    newest.take(periods).copied().collect()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    const DEFAULT: Rotation = Rotation { daily: 7, weekly: 4, monthly: 6 };

    /// The days, as `month-day`, on which one stays when there was one each day, at three in the morning, up to that time.
    fn kept(rotation: Rotation, last: &str, days: i64) -> Vec<String> {
        let last: DateTime<Utc> = last.parse().unwrap();
        let all: Vec<_> = (0..days).map(|day| last - TimeDelta::days(day)).collect();
        let outdated = rotation.outdated(&all);
        all.iter().filter(|time| !outdated.contains(time)).map(|time| time.format("%m-%d").to_string()).collect()
    }

    #[test]
    fn after_a_year_there_are_seven_days_four_weeks_and_six_months() {
        // 2026-07-01 is a Wednesday; the weeks' last days are Sundays.
        let expected = [
            "07-01", "06-30", "06-29", "06-28", "06-27", "06-26", "06-25", "06-21", "06-14", "05-31", "04-30", "03-31",
            "02-28",
        ];
        assert_eq!(kept(DEFAULT, "2026-07-01T03:00:00Z", 365), expected);
    }

    #[test]
    fn in_the_first_week_none_goes_and_the_newest_never() {
        assert_eq!(kept(DEFAULT, "2026-07-01T03:00:00Z", 7).len(), 7);
        assert_eq!(kept(Rotation { daily: 0, weekly: 0, monthly: 0 }, "2026-07-01T03:00:00Z", 9), ["07-01"]);
        assert!(DEFAULT.outdated(&[]).is_empty());
    }

    #[test]
    fn of_one_day_the_newest_stays() {
        let times: Vec<DateTime<Utc>> = ["2026-07-01T03:00:00Z", "2026-07-01T23:59:59Z", "2026-07-01T12:00:00Z"]
            .map(|time| time.parse().unwrap())
            .into();
        assert_eq!(DEFAULT.outdated(&times), [times[2], times[0]]);
    }

    #[test]
    fn a_year_begins_in_the_week_that_the_calendar_says() {
        // 2026-01-01 is a Thursday: Monday the 29th of December is in the same week.
        let of = |daily, weekly| Rotation { daily, weekly, monthly: 0 };
        assert_eq!(kept(of(0, 2), "2026-01-02T03:00:00Z", 30), ["01-02", "12-28"]);
        assert_eq!(kept(of(2, 0), "2026-01-01T03:00:00Z", 30), ["01-01", "12-31"]);
    }

    #[test]
    fn a_machine_that_was_off_keeps_what_it_had() {
        let mut times: Vec<DateTime<Utc>> =
            (1..=7).map(|day| format!("2025-03-0{day}T03:00:00Z").parse().unwrap()).collect();
        times.push("2026-07-01T03:00:00Z".parse().unwrap());
        assert_eq!(DEFAULT.outdated(&times), [times[0]], "seven days have one; the first is the eighth");
    }
}

//! What was found, one row a scenario, and whether it is as it must be.

use std::fmt::{self, Display};
use std::time::Duration;

use serde::Serialize;

use super::super::load::{Audit, HookCall};

/// The hook's own deadline for everything it waits for.
const HOOK_DEADLINE: Duration = Duration::from_millis(300);

/// All scenarios that were asked for.
#[derive(Debug, Serialize)]
pub(crate) struct ChaosBench {
    pub(crate) outcomes: Vec<Outcome>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    scenario: &'static str,
    /// `None`: it was not run, and the note says why.
    found: Option<Figures>,
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct Figures {
    #[serde(flatten)]
    audit: Audit,
    /// Rows that cannot be searched for.
    unindexed: i64,
    /// Jobs that nobody takes after their lease, and dead ones.
    jobs_stuck: i64,
    hooks: Option<Hooks>,
}

/// Wall times of hooks, and of the empty processes beside them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Hooks {
    calls: usize,
    median_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// As many times an empty process takes.
    median_ratio: f64,
    p99_ratio: f64,
    empty_max_ms: f64,
    /// Calls that took longer than the hook's deadline, start and end of the process included.
    over_deadline: usize,
    /// Calls that took longer than the hook's deadline and the slowest empty process together.
    late: usize,
}

/// What there is to tell of a scenario.
pub(super) struct Found<'a> {
    pub(super) audit: Audit,
    pub(super) unindexed: i64,
    pub(super) jobs_stuck: i64,
    pub(super) calls: &'a [HookCall],
    pub(super) note: Option<String>,
}

impl ChaosBench {
    /// The scenarios in which something was lost, doubled, stuck or late.
    pub(crate) fn broken(&self) -> Vec<&'static str> {
        self.outcomes.iter().filter(|outcome| !outcome.holds()).map(|outcome| outcome.scenario).collect()
    }
}

impl Outcome {
    pub(super) fn not_run(scenario: &'static str, reason: String) -> Self {
        Self { scenario, found: None, note: Some(reason) }
    }

    pub(super) fn of(scenario: &'static str, found: &Found<'_>) -> Self {
        let hooks = Hooks::of(found.calls);
        let figures = Figures { audit: found.audit, unindexed: found.unindexed, jobs_stuck: found.jobs_stuck, hooks };
        Self { scenario, found: Some(figures), note: found.note.clone() }
    }

    fn holds(&self) -> bool {
        self.found.as_ref().is_none_or(|found| {
            found.audit.lost == 0
                && found.audit.doubled == 0
                && found.audit.acknowledged > 0
                && found.unindexed == 0
                && found.jobs_stuck == 0
                && found.hooks.is_none_or(|hooks| hooks.late == 0)
        })
    }
}

impl Hooks {
    fn of(calls: &[HookCall]) -> Option<Self> {
        let sorted = |of: fn(&HookCall) -> Duration| {
            let mut all: Vec<_> = calls.iter().map(of).collect();
            all.sort_unstable();
            all
        };
        let (hook, empty) = (sorted(|call| call.hook), sorted(|call| call.empty));
        let (max, empty_max) = (*hook.last()?, *empty.last()?);
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        let at = |all: &[Duration], share: f64| {
            ms(all[((share * all.len() as f64).ceil() as usize).clamp(1, all.len()) - 1])
        };
        Some(Self {
            calls: calls.len(),
            median_ms: at(&hook, 0.5),
            p99_ms: at(&hook, 0.99),
            max_ms: ms(max),
            median_ratio: at(&hook, 0.5) / at(&empty, 0.5),
            p99_ratio: at(&hook, 0.99) / at(&empty, 0.99),
            empty_max_ms: ms(empty_max),
            over_deadline: hook.iter().filter(|took| **took > HOOK_DEADLINE).count(),
            late: hook.iter().filter(|took| **took > HOOK_DEADLINE + empty_max).count(),
        })
    }
}

/// Markdown tables, which read as well in a terminal.
impl Display for ChaosBench {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "| scenario                |  sent | acknowledged | in the journal | lost | doubled | jobs stuck |"
        )?;
        writeln!(
            formatter,
            "| ----------------------- | ----: | -----------: | -------------: | ---: | ------: | ---------: |"
        )?;
        for Outcome { scenario, found, .. } in &self.outcomes {
            match found {
                Some(Figures { audit, unindexed: _, jobs_stuck, .. }) => writeln!(
                    formatter,
                    "| {scenario:<23} | {:>5} | {:>12} | {:>14} | {:>4} | {:>7} | {jobs_stuck:>10} |",
                    audit.sent, audit.acknowledged, audit.in_journal, audit.lost, audit.doubled
                )?,
                None => writeln!(
                    formatter,
                    "| {scenario:<23} |     - |            - |              - |    - |       - |          - |"
                )?,
            }
        }
        writeln!(
            formatter,
            "\n| hooks meanwhile         | calls |   median |      p99 |      max | x empty, median | x empty, p99 | empty, max | over 300 ms | late |"
        )?;
        writeln!(
            formatter,
            "| ----------------------- | ----: | -------: | -------: | -------: | --------------: | -----------: | ---------: | ----------: | ---: |"
        )?;
        for Outcome { scenario, found, .. } in &self.outcomes {
            let Some(hooks) = found.as_ref().and_then(|found| found.hooks) else { continue };
            writeln!(
                formatter,
                "| {scenario:<23} | {:>5} | {:>5.1} ms | {:>5.1} ms | {:>5.1} ms | {:>15.2} | {:>12.2} | {:>7.1} ms | {:>11} | {:>4} |",
                hooks.calls,
                hooks.median_ms,
                hooks.p99_ms,
                hooks.max_ms,
                hooks.median_ratio,
                hooks.p99_ratio,
                hooks.empty_max_ms,
                hooks.over_deadline,
                hooks.late
            )?;
        }
        write!(
            formatter,
            "\nlate: longer than the hook's deadline of {} ms and the slowest empty process together",
            HOOK_DEADLINE.as_millis()
        )?;
        for Outcome { scenario, note, .. } in &self.outcomes {
            if let Some(note) = note {
                write!(formatter, "; {scenario}: {note}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::load::Key;
    use super::*;

    fn call(hook_ms: u64, empty_ms: u64) -> HookCall {
        HookCall {
            key: Key { session: "s".into(), id: "i".into() },
            hook: Duration::from_millis(hook_ms),
            empty: Duration::from_millis(empty_ms),
        }
    }

    fn outcome(audit: Audit, calls: &[HookCall]) -> Outcome {
        Outcome::of("x", &Found { audit, unindexed: 0, jobs_stuck: 0, calls, note: None })
    }

    #[test]
    fn a_hook_is_late_only_beyond_what_the_machine_did_to_an_empty_process() {
        let hooks = Hooks::of(&[call(2, 1), call(4, 1), call(340, 50)]).unwrap();
        assert_eq!((hooks.over_deadline, hooks.late, hooks.calls), (1, 0, 3));
        assert!((hooks.median_ratio - 4.0).abs() < 1e-9);
        assert_eq!(Hooks::of(&[call(400, 50)]).unwrap().late, 1);
        assert_eq!(Hooks::of(&[]), None);
    }

    #[test]
    fn names_the_scenarios_in_which_something_broke() {
        let good = Audit { sent: 3, acknowledged: 2, in_journal: 3, lost: 0, doubled: 0 };
        for (audit, calls, holds) in [
            (good, vec![call(2, 1)], true),
            (Audit { lost: 1, ..good }, vec![], false),
            (Audit { doubled: 1, ..good }, vec![], false),
            // Nothing was proved.
            (Audit { acknowledged: 0, ..good }, vec![], false),
            (good, vec![call(900, 1)], false),
        ] {
            assert_eq!(outcome(audit, &calls).holds(), holds, "{audit:?}");
        }
        let bench = ChaosBench {
            outcomes: vec![Outcome::not_run("y", "no root".into()), outcome(Audit { lost: 1, ..good }, &[])],
        };
        assert_eq!(bench.broken(), ["x"]);
        assert!(bench.to_string().ends_with("y: no root"));
    }
}

//! One project's share of the policy: from its limits to the time before which each kind of thing goes.

use chrono::{DateTime, TimeDelta, Utc};

use super::stages::{self, Scope};
use super::{Limit, Mode, Removal, Stage, days_before};
use crate::settings::{Limits, Retention};
use crate::store::{Db, StoreError, outputs};

pub(super) struct Project {
    pub(super) id: i64,
    pub(super) name: String,
}

impl Project {
    pub(super) async fn apply(
        &self,
        db: &Db,
        policy: &Retention,
        mode: Mode,
        now: DateTime<Utc>,
    ) -> Result<Vec<Removal>, StoreError> {
        let limits = policy.limits_of(&self.name);
        let by_age = Ages::of(limits, now);
        if by_age.is_none() && limits.max_bytes == 0 {
            return Ok(Vec::new());
        }
        let mut excess_bytes = self.excess_bytes(db, limits).await?;
        let mut scope = Scope::of(self.id);
        let mut removals = Vec::new();
        for stage in Stage::ALL {
            let by_size = match excess_bytes {
                // All of it, where even that is not enough.
                1.. => Some(stages::time_that_frees(db, stage, scope, excess_bytes).await?.unwrap_or(now)),
                _ => None,
            };
            let Some(before) = by_age.of_stage(stage).max(by_size) else { continue };
            let because = if by_size == Some(before) { Limit::Size } else { Limit::Age };
            scope.set(stage, before);
            let amount = stages::count(db, stage, scope).await?;
            excess_bytes -= amount.bytes;
            if amount.rows == 0 {
                continue;
            }
            if mode == Mode::Remove {
                stages::remove(db, stage, scope).await?;
                if stage == Stage::Outputs {
                    outputs::remove_orphans(db).await?;
                }
            }
            let project = self.name.clone();
            removals.push(Removal { project, stage, before, because, rows: amount.rows, bytes: amount.bytes });
        }
        Ok(removals)
    }

    async fn excess_bytes(&self, db: &Db, limits: Limits) -> Result<i64, StoreError> {
        if limits.max_bytes == 0 {
            return Ok(0);
        }
        let limit = i64::try_from(limits.max_bytes).unwrap_or(i64::MAX);
        Ok(stages::project_bytes(db, self.id).await?.saturating_sub(limit))
    }
}

/// Before when each kind of thing is too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ages {
    outputs: Option<DateTime<Utc>>,
    calls: Option<DateTime<Utc>>,
    prompts: Option<DateTime<Utc>>,
}

impl Ages {
    /// What belongs to something that goes, goes with it: a call with its prompt, an output with its call.
    fn of(limits: Limits, now: DateTime<Utc>) -> Self {
        let prompts = days_before(now, limits.prompts_days);
        let calls = days_before(now, limits.calls_days).max(prompts);
        let outputs = days_before(now, limits.outputs_days).max(calls);
        Self { outputs, calls, prompts }
    }

    fn is_none(self) -> bool {
        self.outputs.is_none() && self.calls.is_none() && self.prompts.is_none()
    }

    fn of_stage(self, stage: Stage) -> Option<DateTime<Utc>> {
        match stage {
            Stage::Outputs => self.outputs,
            // They are small, and what a call is found by: they go with it unless the project is too large.
            Stage::Previews => None,
            Stage::Calls => self.calls,
            Stage::Prompts => self.prompts,
        }
    }
}

/// The next instant that Postgres can tell apart.
pub(super) fn just_after(time: DateTime<Utc>) -> DateTime<Utc> {
    time + TimeDelta::microseconds(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outlives_what_it_belongs_to() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1_000);
        let ages = Ages::of(Limits { outputs_days: 90, calls_days: 0, prompts_days: 30, max_bytes: 0 }, now);
        let thirty = Some(now - TimeDelta::days(30));
        assert_eq!(ages, Ages { outputs: thirty, calls: thirty, prompts: thirty });
        let ages = Ages::of(Limits { outputs_days: 90, calls_days: 0, prompts_days: 0, max_bytes: 0 }, now);
        assert_eq!((ages.calls, ages.prompts), (None, None));
    }
}

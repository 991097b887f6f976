//! What was decided about the schedule: `schedule.json` in the home, which the server reads too.

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use memory::home::Home;
use serde::{Deserialize, Serialize};

use super::Scheduler;
use crate::files;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Nothing after a person took the job away: `up` leaves it so.
    pub scheduler: Option<Scheduler>,
    pub changed_at: DateTime<Utc>,
}

impl Record {
    pub(super) fn now(scheduler: Option<Scheduler>) -> Self {
        Self { scheduler, changed_at: Utc::now() }
    }

    pub fn read(home: &Home) -> Result<Option<Self>> {
        let path = home.schedule_file();
        let Some(text) = files::read_if_there(&path)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).with_context(|| format!("cannot understand `{}`", path.display()))
    }

    pub(super) fn keep(&self, home: &Home) -> Result<()> {
        let text = serde_json::to_string(self).context("cannot write the schedule")?;
        files::write_private(&home.schedule_file(), &format!("{text}\n"))
    }
}

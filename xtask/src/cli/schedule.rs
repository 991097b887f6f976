//! `schedule`: who makes the daily backup.

use clap::{Args, Subcommand};

use super::JsonArgs;
use crate::schedule::Scheduler;

#[derive(Debug, Subcommand)]
pub enum ScheduleCommand {
    /// Who starts the daily backup, and how the last one went
    Status(JsonArgs),
    /// Have a backup made each day
    Install(InstallScheduleArgs),
    /// Have none made any more; `up` leaves it so
    Remove,
}

#[derive(Debug, Args)]
pub struct InstallScheduleArgs {
    /// Who is to start it [default: the first of them that this machine has]
    #[arg(long, value_enum)]
    pub with: Option<Scheduler>,
}

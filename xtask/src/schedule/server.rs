//! The server as its own scheduler: it reads `schedule.json` and starts the job itself, so there is nothing to put anywhere.

use super::job::Job;
use crate::runtime::server::Server;

pub(super) fn runs(job: &Job) -> bool {
    !Server::of_home(&job.home).processes().is_empty()
}

//! From training rows to an adapter: which samples make a step, the optimiser, the loop, and what it keeps to go on from.

mod checkpoint;
mod examples;
mod log;
mod optimizer;
mod plan;
mod run;
mod schedule;
mod settings;
#[cfg(test)]
mod tests;

pub use checkpoint::Best;
pub use examples::{Example, ExamplesError, read as read_examples};
pub use log::{Record, read as read_log};
pub use plan::Plan;
pub use run::{Event, Job, Outcome, TrainError, train};
pub use settings::{SettingsError, TrainSettings};

//! Who looks on: a person in a terminal, a log, or nobody.

use super::Stage;
use super::preflight::Estimate;
use super::record::Record;
use crate::eval::Evaluation;
use crate::train::Event;

pub trait Watch {
    fn began(&mut self, stage: Stage);

    fn progressed(&mut self, stage: Stage, progress: &Progress<'_>);

    fn finished(&mut self, record: &Record);

    /// Nothing it was made of has changed, or it cannot run here, for the reason given.
    fn passed_over(&mut self, stage: Stage, why: &str);

    /// A gate that is open. A person may close it; where there is none it stays open, for closed ones are decided by figures alone.
    fn agrees(&mut self, question: &Question<'_>) -> bool;

    /// Whether to stop as soon as nothing is lost.
    fn is_cancelled(&self) -> bool;
}

#[derive(Debug)]
pub enum Progress<'a> {
    Training(&'a Event<'a>),
    Counted { done: usize, of: usize },
}

#[derive(Debug)]
pub enum Question<'a> {
    /// Start the training that takes so long?
    Train(&'a Estimate),
    /// Install what passed?
    Install(&'a Evaluation),
}

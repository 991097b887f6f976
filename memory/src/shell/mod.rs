//! Shell commands as agents write them: cut into the programs that they run (`steps`), told by what they do (`commands`), and written in
//! one way however they were spelt (`spelling`: what `running` finds to run in the end, and what `inner` finds within it, with the flags that
//! `flags` knows).

mod commands;
mod flags;
mod inner;
mod running;
mod spelling;
mod steps;

pub(crate) use commands::{are_alike, command_of, normalised, only_looks};
pub(crate) use spelling::{Line, lines};
pub(crate) use steps::steps;

//! The real program, run as an agent runs it, against a server that only plays one.
#![allow(clippy::unwrap_used, reason = "everything here is a test")]

mod delivery;
mod git;
mod spool;
mod start;
mod stdin;
mod support;

//! The operator's program as a library: `main.rs` runs it, and `tests` takes the embedded Postgres from it.
//!
//! `cli` names every command, `commands` holds one file a command, `install` builds, downloads and lays out,
//! `runtime` starts and stops, `backup` and `leaving` keep what is remembered elsewhere too, `moving` takes it to another runtime, `output` talks to the operator.

pub mod backup;
mod bench;
pub mod cli;
pub mod commands;
pub mod files;
pub mod health;
pub mod install;
pub mod journal;
pub mod leaving;
pub mod moving;
pub mod output;
mod register;
pub mod repository;
pub mod runtime;
pub mod schedule;
pub mod upgrade;

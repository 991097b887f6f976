//! The whole line with real processes: hook, server, database, agent, recall.
//!
//! One binary, so that all tests share one Postgres and one link. Each test has a database and a home of its own.

mod auth;
mod batch;
mod claude;
mod crash;
mod home;
mod hook_to_journal;
mod mcp;
mod migrations;
mod observations;
mod recordings;
mod spool;
mod told_twice;

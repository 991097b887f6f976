//! The whole line with real processes: hook, server, database, agent, recall.
//!
//! One binary, so that all tests share one Postgres and one link. Each test has a database and a home of its own.

mod access;
mod auth;
mod batch;
mod chat_template;
mod claude;
mod code_questions;
mod codex;
mod conformance;
mod crash;
mod dataset;
mod degraded;
mod doctor;
mod events;
mod forget;
mod gc;
mod gemini;
mod home;
mod hook_to_journal;
mod lesson_conflicts;
mod lessons;
mod live_and_backfill;
mod logs;
mod mcp;
mod metrics;
mod migrations;
mod network;
mod observations;
mod people;
mod project_choices;
mod projects;
mod recall_set;
mod recordings;
mod redaction;
mod reindex;
mod room;
mod spool;
mod tokens;
mod told_twice;
mod train;
mod transcripts;
mod unasked;
mod unasked_others;
mod wizard;

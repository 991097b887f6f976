//! Keeps and finds what coding agents did. See `docs/architecture.md` for the path of an event through these modules.

pub mod access;
pub mod analyze;
pub mod digest;
pub mod disk;
pub mod embed;
pub mod event;
pub mod home;
pub mod ids;
pub mod lessons;
pub mod process;
pub mod project;
pub mod queue;
pub mod recall;
pub mod redact;
pub mod settings;
mod shell;
pub mod store;
pub mod transcripts;

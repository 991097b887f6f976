//! Keeps and finds what coding agents did. See `docs/architecture.md` for the path of an event through these modules.

pub mod home;

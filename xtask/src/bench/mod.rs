//! Measurements of our own programs. Starting what they measure is the command's part.

pub(crate) mod backfill;
pub(crate) mod hook;
pub(crate) mod record;

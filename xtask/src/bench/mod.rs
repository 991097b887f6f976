//! Measurements of our own programs. Starting what they measure is the command's part.

mod asker;
pub(crate) mod backfill;
pub(crate) mod chaos;
pub(crate) mod dataset;
pub(crate) mod gate;
pub(crate) mod gguf;
pub(crate) mod hook;
pub(crate) mod ingest;
mod load;
pub(crate) mod locomo;
pub(crate) mod recall;
pub(crate) mod record;
pub(crate) mod redact;
pub(crate) mod stage;
pub(crate) mod train;

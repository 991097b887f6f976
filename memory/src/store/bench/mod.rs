//! What `cargo xtask bench` needs of the database beside the journal's own functions: the rows written by hand, to compare with,
//! and a count of what is there. Compiled only with the feature `bench`.

mod audit;
mod reference;

pub use audit::{JournalRow, Leases, LeftJobs, earliest, is_indexed, journal_rows, prompt_keys, unindexed};
pub use reference::{BATCH, Reference, connections, insert};

//! What `cargo xtask bench` needs of the database beside the journal's own functions: the rows written by hand, to compare with,
//! a count of what is there, a large index to search in, and single scans of it. Compiled only with the feature `bench`.

mod audit;
mod corpus;
mod lessons;
mod reference;
mod scans;
mod work;

pub use audit::{JournalRow, Leases, LeftJobs, earliest, is_indexed, journal_rows, prompt_keys, unindexed};
pub use corpus::{Corpus, Mixed, Random, SESSION, SMALL_PROJECT, grow, moment};
pub use lessons::{FIRING, SILENT, add_lessons};
pub use reference::{BATCH, Reference, connections, insert};
pub use scans::{by_gin, by_hnsw};
pub use work::add_work;

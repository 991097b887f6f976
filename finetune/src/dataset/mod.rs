//! From the journal to training rows that teach the right thing: select, clean, shape, decide over all rows, render, judge, write.
//!
//! A row is neutral until the base model's own template renders it; only the assistant's words and the end of its turns carry loss.
//! Everything left to chance is drawn from a seed and the ids of what it is about, so that the same journal gives the same bytes.

pub mod audit;
mod balance;
mod build;
mod card;
mod clean;
pub mod consent;
mod duplicates;
pub(crate) mod formats;
mod gather;
mod manifest;
pub mod render;
pub mod row;
mod schema;
mod select;
mod settings;
mod shape;
mod show;
mod sources;
mod split;
mod write;

pub(crate) use clean::for_each_string;
pub(crate) use schema::validator;

pub use build::{Build, BuildError, Built, build, restricted_providers, sessions};
pub use manifest::{Counts, FILE_NAME as MANIFEST_FILE, FileFacts, Manifest, ManifestError};
pub use schema::{SchemaError, read_offered};
pub use select::Dropped;
pub use settings::{FailedCalls, Filter, Settings, SettingsError, Shares, SplitShares, StoppedCalls};
pub use show::{ShowError, explain, latest, sample, statistics};
pub use sources::{Licence, Source, Sources, SourcesError};
pub use split::Split;
pub use write::rendered;

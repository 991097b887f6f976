//! Leaving and coming back: everything that is remembered as NDJSON, in one file or a folder of them, and from there into an empty
//! database. A format that any program can read, which a backup is not; and of any size, since lines go by one at a time.

mod export;
mod import;
mod manifest;
mod source;

pub use export::{Exported, check_place, export};
pub use import::{Imported, import};
pub use manifest::{Exports, Manifest};

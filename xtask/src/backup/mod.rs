//! Backups: one file with everything in the database, beside it what is in it and its checksums, made so that a half one is never
//! taken for a whole one.
//!
//! `name`, `rotation` and `room` decide, without looking at anything; `folder` and `seal` know the files; `cipher` and `archive` write
//! and read them; `make`, `verify`, `restore` and `copy` do the work, and `record` remembers how the last one went. What dumps and restores is
//! `runtime::tools`.

mod archive;
mod cipher;
mod copy;
mod folder;
mod journal;
mod make;
mod manifest;
mod name;
mod record;
mod restore;
mod room;
mod rotation;
mod seal;
mod verify;

pub use cipher::{Key, KeySource};
pub use copy::{Copied, check_way, copy, rows};
pub use folder::{Backup, Folder};
pub use journal::Target;
pub use make::{Made, Wanted, make};
pub use manifest::Manifest;
pub use name::{Label, Origin};
pub use record::{LastRun, Summary};
pub use restore::{Kept, Restored, forget, kept, restore_beside, restore_over, undo};
pub use rotation::Rotation;
pub use seal::{Sealed, check};
pub use verify::{compare, verify_deeply};

//! Puts an installation on disk: the folder and its secrets, the programs, the pinned downloads, the model. Starting it
//! is `runtime`'s part.

pub mod build;
pub mod downloads;
pub mod layout;
pub mod model;
pub mod pins;
pub mod summary;
pub mod wheel;

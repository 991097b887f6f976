//! Recall over the Model Context Protocol: one set of tools, over stdio in `agent-memory-mcp` and at `/mcp` in the server.
//!
//! [`Tools`] is the tool set, and finding and saving are `memory`'s. This crate reads arguments as models write them, frames
//! what was found as data, and turns every failure into a text that says what to do.

mod arguments;
mod ask;
mod budget;
mod database;
mod dates;
mod error;
mod http;
mod replies;
mod timing;
mod tools;
mod vectors;
mod withheld;

pub use ask::{Question, Refusal, ToolForm};
pub use database::Installation;
pub use error::Fault;
pub use http::{HttpService, http_service};
pub use timing::{RECALL_HEADER, Timer, Way, read_times};
pub use tools::Tools;
pub use vectors::{QueryVectors, ServerVectors};

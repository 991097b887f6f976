//! The harness of the whole line: real programs, a real database, a real agent, and what is needed to watch them.
//!
//! What it starts it also ends: processes when their handle is dropped, databases when the test process is gone. The
//! tests themselves stand in `tests/line`.

pub mod base_model;
pub mod canaries;
pub mod clients;
pub mod conversation;
pub mod database;
pub mod embedding_model;
pub mod engines;
pub mod hook;
pub mod installed;
pub mod journal;
pub mod many_rows;
pub mod mcp_client;
pub mod model;
pub mod network;
pub mod operator;
pub mod programs;
pub mod prometheus;
pub mod recall_set;
pub mod recordings;
pub mod replicated;
pub mod settings;
pub mod stack;
pub mod summary;
pub mod terminal;
pub mod wait;

//! The tool set as its clients see it, in this process: over a pipe and over HTTP. Without a database: what tools find is
//! tested where there is one.
#![allow(clippy::unwrap_used, reason = "everything here is a test")]

mod http;
mod stdio;

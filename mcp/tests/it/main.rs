//! The tool set as its clients see it, in this process: over a pipe and over HTTP. Without a database: what tools find is
//! tested where there is one.

mod http;
mod stdio;

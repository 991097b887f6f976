//! An error with what to do about it.

use std::fmt;

#[derive(Debug)]
pub struct Hinted {
    what: String,
    pub hint: String,
}

impl fmt::Display for Hinted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)
    }
}

impl std::error::Error for Hinted {}

impl Hinted {
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

/// An error that says what went wrong and what to do.
pub fn hinted(what: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    Hinted::new(what, hint).into()
}

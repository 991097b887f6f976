//! How a failure is told: `error:`, what caused it, and the command that mends it.

use std::fmt::{Display, Write};

/// Adds to an error what the operator can do about it.
pub trait HintExt<T> {
    /// `text` reads after "hint: ", e.g. ``run `cargo xtask doctor` ``.
    fn hint(self, text: impl Into<String>) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> HintExt<T> for Result<T, E> {
    fn hint(self, text: impl Into<String>) -> anyhow::Result<T> {
        self.map_err(|error| hinted(error, text))
    }
}

/// An error together with what the operator can do about it.
pub fn hinted(error: impl Into<anyhow::Error>, text: impl Into<String>) -> anyhow::Error {
    error.into().context(Hint(text.into()))
}

/// The whole of a failure as lines: the error, its causes, then the hints, outermost first.
pub fn report(error: &anyhow::Error) -> String {
    // A context's type is lost inside the chain, so hints are told apart by how they print.
    let (hints, causes): (Vec<_>, Vec<_>) =
        error.chain().map(ToString::to_string).partition(|layer| layer.starts_with(HINT));
    let mut text = String::new();
    let mut said = String::new();
    for cause in causes {
        // Libraries often print their source inside their own message; saying it twice helps nobody.
        if said.ends_with(&cause) {
            continue;
        }
        let label = if text.is_empty() { "error" } else { "caused by" };
        let _ = writeln!(text, "{label}: {cause}");
        said = cause;
    }
    for hint in hints {
        let _ = writeln!(text, "{hint}");
    }
    text
}

/// A failure in one line, without its hints: for a row in a table.
pub fn headline(error: &anyhow::Error) -> String {
    let mut layers = error.chain().map(ToString::to_string);
    layers.find(|layer| !layer.starts_with(HINT)).unwrap_or_default()
}

const HINT: &str = "hint: ";

#[derive(Debug)]
struct Hint(String);

impl Display for Hint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{HINT}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    fn check(result: anyhow::Result<()>, expected: &str) {
        assert_eq!(report(&result.unwrap_err()), expected);
    }

    #[test]
    fn tells_error_causes_and_hint_in_this_order() {
        let result = Err(anyhow!("connection refused")).hint("start it").context("cannot reach the server");
        check(result, "error: cannot reach the server\ncaused by: connection refused\nhint: start it\n");
    }

    #[test]
    fn keeps_several_hints_outermost_first() {
        let result = Err(anyhow!("no")).hint("second").hint("first");
        check(result, "error: no\nhint: first\nhint: second\n");
    }

    #[test]
    fn does_not_repeat_a_cause_that_the_error_has_already_told() {
        let result: anyhow::Result<()> = Err(anyhow!("disk full")).context("cannot write: disk full");
        check(result, "error: cannot write: disk full\n");
    }
}

//! `doctor`: looks at every part of an installation and names, for each that is not as it should be, the command that
//! mends it. Fails if any part is broken.

mod checks;

use std::fmt::{self, Display};

use anyhow::{Context, Result, bail};
use memory::home::Home;
use serde::Serialize;

use crate::cli::JsonArgs;
use crate::output::Printer;

pub(super) async fn run(arguments: &JsonArgs, home: &Home, printer: &Printer) -> Result<()> {
    let step = printer.step("Looking at every part");
    let findings = checks::all(home).await;
    step.skip();
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&findings).context("cannot write the findings as JSON")?);
    } else {
        for finding in &findings {
            printer.data(finding);
        }
    }
    let broken = findings.iter().filter(|finding| finding.verdict == Verdict::Fail).count();
    if broken > 0 {
        bail!("{broken} of {} parts need mending", findings.len());
    }
    Ok(())
}

/// What was found at one part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    part: &'static str,
    verdict: Verdict,
    message: String,
    /// The command that mends it, where one does.
    mend: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Finding {
    fn ok(part: &'static str, message: impl Into<String>) -> Self {
        Self { part, verdict: Verdict::Ok, message: message.into(), mend: None }
    }

    fn warn(part: &'static str, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { part, verdict: Verdict::Warn, message: message.into(), mend: Some(mend.into()) }
    }

    fn fail(part: &'static str, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { part, verdict: Verdict::Fail, message: message.into(), mend: Some(mend.into()) }
    }
}

impl Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        };
        write!(formatter, "{verdict:<5} {:<11} {}", self.part, self.message)?;
        match &self.mend {
            Some(mend) => write!(formatter, "\n{:18}mend: {mend}", ""),
            None => Ok(()),
        }
    }
}

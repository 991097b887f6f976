//! `doctor`: looks at every part of an installation and names, for each that is not as it should be, the command that
//! mends it. Fails if any part is broken.

mod backups;
mod capture;
mod checks;
mod jobs;
mod room;
mod spool;

use std::fmt::{self, Display};

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};
use memory::home::Home;
use serde::Serialize;

use crate::cli::JsonArgs;
use crate::output::{Printer, human_duration};

pub(super) use spool::LARGE_BYTES as LARGE_SPOOL_BYTES;

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
    /// Stays the same over versions, for scripts: `queue.dead`; a part without more to say is its own code.
    code: &'static str,
    verdict: Verdict,
    message: String,
    /// Why it is so, and what else can be done, where that is known.
    why: Option<String>,
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
        Self { part, code: part, verdict: Verdict::Ok, message: message.into(), why: None, mend: None }
    }

    fn warn(part: &'static str, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, mend: Some(mend.into()), ..Self::ok(part, message) }
    }

    fn fail(part: &'static str, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, mend: Some(mend.into()), ..Self::ok(part, message) }
    }

    fn coded(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    fn why(self, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..self }
    }
}

/// How long ago, roughly.
pub(super) fn ago(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let elapsed = (now - time).to_std().unwrap_or_default();
    match elapsed.as_secs() {
        0..60 => format!("{} ago", human_duration(elapsed)),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
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
        if let Some(why) = &self.why {
            write!(formatter, "\n{:18}why: {why}", "")?;
        }
        match &self.mend {
            Some(mend) => write!(formatter, "\n{:18}mend: {mend}", ""),
            None => Ok(()),
        }
    }
}

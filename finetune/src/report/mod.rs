//! What came of a run, for people and for programs: how it went, what it cost, and whether the model is better.

mod curve;
mod markdown;

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::eval::Evaluation;
use crate::files;
use crate::stages::Record;
use crate::train;

pub const MARKDOWN_FILE: &str = "report.md";
const JSON_FILE: &str = "report.json";
const CURVE_FILE: &str = "curve.svg";

/// Writes the report of what the records tell; of stages that were not reached it says so.
pub fn write(folder: &Path, name: &str, records: &[Record], evaluation: Option<&Evaluation>) -> Result<()> {
    let log = folder.join("training").join("log.jsonl");
    let log = if log.exists() { train::read_log(&log).context("reading the log of the training")? } else { Vec::new() };
    let put = |file: &str, text: &str| {
        let path = folder.join(file);
        files::write(&path, text.as_bytes()).with_context(|| format!("writing `{}`", path.display()))
    };
    if !log.is_empty() {
        put(CURVE_FILE, &curve::svg(&log))?;
    }
    put(MARKDOWN_FILE, &markdown::report(name, records, &log, evaluation))?;
    let all = json!({ "run": name, "records": records, "evaluation": evaluation, "log": log });
    put(JSON_FILE, &(serde_json::to_string_pretty(&all)? + "\n"))
}

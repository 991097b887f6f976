//! The end of `up`: what runs where, and what to do next.

use std::time::Duration;

use anyhow::{Context, Result};
use memory::home::Home;
use serde::Serialize;

use crate::output::{Form, Printer, human_duration};
use crate::runtime::Installation;

#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    installation: &'a Installation,
    home: &'a std::path::Path,
    registered: &'a [String],
}

/// What `up` prints at its end.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<'a> {
    pub installation: &'a Installation,
    /// What was registered, one sentence an agent.
    pub agents: &'a [String],
    pub took: Duration,
}

/// Tells a person on stderr, or a script on stdout.
pub fn print(outcome: Outcome<'_>, form: Form, home: &Home, printer: &Printer) -> Result<()> {
    let Outcome { installation, agents, took } = outcome;
    if form == Form::Json {
        let summary = Summary { installation, home: home.root(), registered: agents };
        printer.data(serde_json::to_string_pretty(&summary).context("cannot write the summary as JSON")?);
        return Ok(());
    }
    printer.note(format_args!("\nagent-memory {} is up ({})\n", installation.version, human_duration(took)));
    let registered = if agents.is_empty() { vec!["nothing".to_owned()] } else { agents.to_vec() };
    let rows = [
        ("address", format!("http://{}", installation.address)),
        ("database", format!("{}, {}", installation.database, installation.runtime)),
        ("model", installation.embedding_model.clone()),
        ("home", home.root().display().to_string()),
        ("registered", registered.join("\n              ")),
    ];
    for (name, value) in rows {
        printer.note(format_args!("  {name:<12}{value}"));
    }
    printer.note(if agents.is_empty() {
        "\nNext: `cargo xtask register`, then work as usual; `cargo xtask status` shows what is remembered."
    } else {
        "\nNext: start your agent anew and work as usual; `cargo xtask status` shows what is remembered."
    });
    Ok(())
}

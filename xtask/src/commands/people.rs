//! `people`: who records on this server beside its operator, and how much is theirs.

use anyhow::{Context, Result};
use memory::home::Home;
use memory::store;

use crate::cli::JsonArgs;
use crate::journal;
use crate::output::{HintExt, Printer};

pub(super) async fn run(arguments: &JsonArgs, home: &Home, printer: &Printer) -> Result<()> {
    let db = journal::open(home).await?;
    let read = store::people(&db).await.context("cannot read who records here");
    db.close().await;
    let people = read.hint("run `cargo xtask migrate` if the schema is older than this program")?;
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&people).context("cannot write the people as JSON")?);
        return Ok(());
    }
    if people.is_empty() {
        printer
            .data("Nobody but you records here: `cargo xtask token create NAME --person PERSON` lets somebody else.");
    }
    let width = people.iter().map(|person| person.name.chars().count()).max().unwrap_or_default();
    for person in people {
        let last = person.last_event_at.map_or_else(
            || "nothing recorded yet".to_owned(),
            |at| format!("last at {}", at.format("%Y-%m-%d %H:%M UTC")),
        );
        printer.data(format!(
            "{:<width$}  {} projects, {} sessions, {last}",
            person.name, person.projects, person.sessions
        ));
    }
    Ok(())
}

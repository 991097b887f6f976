//! `token`: makes, shows and revokes tokens, and shows the log of what was done with them and of what cannot be undone.

use std::fmt::Write;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use memory::home::Home;
use memory::store::audit::{self, AuditEntry};
use memory::store::tokens::{self, NewToken, TokenError, TokenOverview};
use memory::store::{Db, StoreError};

use crate::cli::{CreateTokenArgs, JsonArgs, TokenCommand, TokenLogArgs};
use crate::journal;
use crate::output::{HintExt, Printer, hinted};

/// Whom the log names for what is done here.
const ACTOR: &str = "operator";

pub(super) async fn run(command: TokenCommand, home: &Home, printer: &Printer) -> Result<()> {
    let db = journal::open(home).await?;
    let done = match command {
        TokenCommand::Create(arguments) => create(&arguments, &db, printer).await,
        TokenCommand::List(arguments) => list(&arguments, &db, printer).await,
        TokenCommand::Revoke(arguments) => tokens::revoke(&db, &arguments.name, ACTOR)
            .await
            .map_err(told)
            .map(|()| printer.note(format_args!("`{}` allows nothing any more", arguments.name))),
        TokenCommand::Log(arguments) => log(&arguments, &db, printer).await,
    };
    db.close().await;
    done
}

async fn create(arguments: &CreateTokenArgs, db: &Db, printer: &Printer) -> Result<()> {
    let CreateTokenArgs { name, scopes, person } = arguments;
    let new = NewToken { name, scopes, person: person.as_deref() };
    let token = tokens::create(db, new, ACTOR).await.map_err(told)?;
    match person {
        Some(person) => printer.note(format_args!("Made `{name}`, which is {person}'s. It is not shown again:")),
        None => {
            printer.note(format_args!("Made `{name}`, which is nobody's and sees everything. It is not shown again:"));
        }
    }
    printer.data(token);
    Ok(())
}

async fn list(arguments: &JsonArgs, db: &Db, printer: &Printer) -> Result<()> {
    let tokens = read(tokens::list(db).await)?;
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&tokens).context("cannot write the tokens as JSON")?);
    } else if tokens.is_empty() {
        printer.note("There is no token but the home's own: `cargo xtask token create NAME --scope ...` makes one");
    } else {
        printer.data(table(&tokens).trim_end());
    }
    Ok(())
}

async fn log(arguments: &TokenLogArgs, db: &Db, printer: &Printer) -> Result<()> {
    let mut entries = read(audit::list(db, arguments.lines.max(1)).await)?;
    entries.reverse();
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&entries).context("cannot write the log as JSON")?);
    } else {
        for entry in &entries {
            printer.data(line(entry));
        }
    }
    Ok(())
}

fn table(tokens: &[TokenOverview]) -> String {
    let width = tokens.iter().map(|token| token.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for token in tokens {
        let scopes = token.scopes.join(",");
        let whose = token.person.as_deref().unwrap_or("-");
        let state = match (token.revoked_at, token.last_used_at) {
            (Some(at), _) => format!("revoked {}", moment(at)),
            (None, Some(at)) => format!("last used {}", moment(at)),
            (None, None) => "never used".to_owned(),
        };
        let _ = writeln!(text, "{:<width$}  {scopes:<19}  {whose:<12}  {state}", token.name);
    }
    text
}

fn line(entry: &AuditEntry) -> String {
    let AuditEntry { actor, action, details, .. } = entry;
    let subject = entry.subject.as_deref().map(|subject| format!(" {subject}")).unwrap_or_default();
    let details =
        if details.as_object().is_some_and(serde_json::Map::is_empty) { String::new() } else { format!(" {details}") };
    format!("{}  {actor}  {action}{subject}{details}", moment(entry.occurred_at))
}

fn moment(at: DateTime<Utc>) -> impl std::fmt::Display {
    at.format("%Y-%m-%d %H:%M UTC")
}

fn told(error: TokenError) -> anyhow::Error {
    let hint = error.hint();
    hinted(anyhow::Error::new(error), hint)
}

fn read<T>(rows: Result<T, StoreError>) -> Result<T> {
    rows.context("cannot read the tokens and their log")
        .hint("run `cargo xtask migrate` if the schema is older than this program")
}

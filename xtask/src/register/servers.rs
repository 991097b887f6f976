//! Our MCP server among the user's, in a JSON file, at user scope. What an agent's entry looks like stands in `agents`.

use anyhow::anyhow;
use jsonc_parser::cst::CstObject;
use serde_json::Value;

use super::command::names_program;
use super::document::{Document, conform, conforms, input, object_in, string_in, strings_in};
use super::report::{Item, Outcome};
use super::state::EntryState;
use crate::output::hinted;

/// The name under which agents see our tools: `mcp__agent-memory__search`.
pub(super) const SERVER_NAME: &str = "agent-memory";

pub(super) const PROGRAM_NAME: &str = "agent-memory-mcp";

/// How an agent wants its MCP servers.
pub(super) struct ServerFormat {
    /// The object that holds them by name.
    pub(super) container: &'static str,
    /// The entry that starts this program.
    pub(super) entry: fn(program: &str) -> Value,
    /// What to do about another server of the same name.
    pub(super) removal: &'static str,
}

/// What the user may set otherwise.
const FREE: [&str; 4] = ["env", "environment", "enabled", "tools"];

pub(super) struct ServerEntry {
    pub(super) format: &'static ServerFormat,
    pub(super) program: String,
}

impl ServerEntry {
    pub(super) fn found_in(format: &'static ServerFormat, document: &Document) -> Option<Self> {
        let program = program_of(&our_server(format, document)?)?;
        Some(Self { format, program })
    }

    pub(super) fn add(&self, document: &Document) -> anyhow::Result<Item> {
        let servers = object_in(&document.object_or_new(), self.format.container)?;
        let entry = (self.format.entry)(&self.program);
        let outcome = if servers.get(SERVER_NAME).is_none() {
            servers.append(SERVER_NAME, input(entry));
            Outcome::Added
        } else if let Some(server) = our_server(self.format, document) {
            if conform(&server, &entry, &FREE) { Outcome::Corrected } else { Outcome::AlreadyThere }
        } else {
            return Err(other_of_that_name(self.format.removal));
        };
        Ok(item(outcome))
    }

    /// Removes it, and the container if that is left empty and the original did not have it.
    pub(super) fn remove(&self, document: &Document, original: Option<&Document>) -> Option<Item> {
        let container = self.format.container;
        our_server(self.format, document)?;
        let servers = document.object()?.object_value(container)?;
        servers.get(SERVER_NAME)?.remove();
        if servers.properties().is_empty() && !original.is_some_and(|original| original.has(&[container])) {
            document.remove(container);
        }
        Some(item(Outcome::Removed))
    }

    pub(super) fn state(&self, document: &Document) -> EntryState {
        let server = our_server(self.format, document);
        let found = server.and_then(|server| {
            let program = program_of(&server)?;
            let is_as_we_write_it = conforms(&server, &(self.format.entry)(&program), &FREE);
            Some((program, is_as_we_write_it))
        });
        EntryState::of(SERVER_NAME, found.as_ref().map(|(program, is_as)| (program.as_str(), *is_as)))
    }
}

pub(super) fn item(outcome: Outcome) -> Item {
    Item { name: format!("MCP server {SERVER_NAME}"), outcome }
}

pub(super) fn other_of_that_name(removal: &str) -> anyhow::Error {
    hinted(anyhow!("another MCP server has the name `{SERVER_NAME}`"), format!("{removal}, then try again"))
}

fn our_server(format: &ServerFormat, document: &Document) -> Option<CstObject> {
    let server = document.object()?.object_value(format.container)?.object_value(SERVER_NAME)?;
    let is_ours = names_program(&program_of(&server)?, PROGRAM_NAME);
    is_ours.then_some(server)
}

/// `command` is the program, or a list that begins with it.
fn program_of(server: &CstObject) -> Option<String> {
    string_in(server, "command").or_else(|| strings_in(server, "command")?.into_iter().next())
}

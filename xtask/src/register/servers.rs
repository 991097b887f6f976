//! Our MCP server among the user's, at user scope, in `.claude.json`.

use anyhow::anyhow;
use jsonc_parser::cst::CstObject;
use serde_json::json;

use super::document::{Document, input, object_in, set, string_in, strings_in};
use super::{Entries, Item, Outcome, names_program};
use crate::output::HintExt;

/// The name under which agents see our tools: `mcp__agent-memory__search`.
pub(super) const SERVER_NAME: &str = "agent-memory";

const PROGRAM_NAME: &str = "agent-memory-mcp";
const SERVERS: &str = "mcpServers";

pub(super) struct ServerEntry {
    pub(super) program: String,
}

impl Entries for ServerEntry {
    fn add(&self, document: &Document) -> anyhow::Result<Vec<Item>> {
        let servers = object_in(&document.object_or_new(), SERVERS)?;
        let outcome = if servers.get(SERVER_NAME).is_none() {
            servers
                .append(SERVER_NAME, input(json!({ "type": "stdio", "command": self.program, "args": [], "env": {} })));
            Outcome::Installed
        } else if let Some(server) = our_server(document) {
            if self.correct(&server) { Outcome::Updated } else { Outcome::AlreadyThere }
        } else {
            return Err(anyhow!("another MCP server has the name `{SERVER_NAME}`"))
                .hint(format!("remove it with `claude mcp remove --scope user {SERVER_NAME}`, then try again"));
        };
        Ok(vec![Item { name: format!("MCP server {SERVER_NAME}"), outcome }])
    }

    fn remove(&self, document: &Document, original: Option<&Document>) -> Vec<Item> {
        if our_server(document).is_none() {
            return Vec::new();
        }
        if let Some(servers) = document.object().and_then(|object| object.object_value(SERVERS))
            && let Some(server) = servers.get(SERVER_NAME)
        {
            server.remove();
            let is_left_over =
                servers.properties().is_empty() && !original.is_some_and(|original| original.has(&[SERVERS]));
            if is_left_over && let Some(servers) = document.object().and_then(|object| object.get(SERVERS)) {
                servers.remove();
            }
        }
        vec![Item { name: format!("MCP server {SERVER_NAME}"), outcome: Outcome::Removed }]
    }

    fn found_in(document: &Document) -> Option<Self> {
        registered(document).map(|program| Self { program })
    }
}

impl ServerEntry {
    /// Makes the entry start this program. Whether anything had to change.
    fn correct(&self, server: &CstObject) -> bool {
        let mut is_changed = false;
        if string_in(server, "type").as_deref() != Some("stdio") {
            set(server, "type", json!("stdio"));
            is_changed = true;
        }
        if string_in(server, "command").as_deref() != Some(&self.program) {
            set(server, "command", json!(self.program));
            is_changed = true;
        }
        if strings_in(server, "args").is_none_or(|arguments| !arguments.is_empty()) {
            set(server, "args", json!([]));
            is_changed = true;
        }
        is_changed
    }
}

/// The program of our server, if it is registered.
pub(super) fn registered(document: &Document) -> Option<String> {
    string_in(&our_server(document)?, "command")
}

fn our_server(document: &Document) -> Option<CstObject> {
    let server = document.object()?.object_value(SERVERS)?.object_value(SERVER_NAME)?;
    let is_ours = names_program(&string_in(&server, "command")?, PROGRAM_NAME);
    is_ours.then_some(server)
}

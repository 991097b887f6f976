//! What is ours in one file, whatever the file's language: each takes a text and gives the text with or without it.

use super::document::Document;
use super::hooks::{HookEntries, HookFormat};
use super::report::Item;
use super::script::Script;
use super::servers::{ServerEntry, ServerFormat};
use super::state::EntryState;
use super::toml::TomlServer;

pub(super) enum Content {
    /// Hooks, an MCP server or both in a file that may hold much else.
    Json { hooks: Option<HookEntries>, server: Option<ServerEntry> },
    /// Our MCP server in a file that may hold much else.
    Toml(TomlServer),
    /// A whole file of our own.
    Script(Script),
}

/// A text after a change.
pub(super) struct Edit {
    pub(super) text: String,
    pub(super) items: Vec<Item>,
}

impl Content {
    pub(super) fn hooks(format: &'static HookFormat, program: &str) -> Self {
        Self::Json { hooks: Some(HookEntries::all(format, program)), server: None }
    }

    pub(super) fn server(format: &'static ServerFormat, program: &str) -> Self {
        Self::Json { hooks: None, server: Some(ServerEntry { format, program: program.to_owned() }) }
    }

    /// What the file should be, for people.
    pub(super) fn language(&self) -> &'static str {
        match self {
            Self::Json { .. } => "JSON",
            Self::Toml(_) => "TOML",
            Self::Script(_) => "JavaScript",
        }
    }

    /// Fails where the text cannot be understood.
    pub(super) fn check(&self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::Json { .. } => Document::parse(text).map(drop),
            Self::Toml(_) => TomlServer::check(text),
            Self::Script(_) => Ok(()),
        }
    }

    /// Adds what is missing and corrects what is there.
    pub(super) fn add(&self, text: &str) -> anyhow::Result<Edit> {
        match self {
            Self::Json { hooks, server } => {
                let document = Document::parse(text)?;
                let mut items = Vec::new();
                if let Some(hooks) = hooks {
                    items.extend(hooks.add(&document)?);
                }
                if let Some(server) = server {
                    items.push(server.add(&document)?);
                }
                Ok(Edit { text: document.to_text(), items })
            }
            Self::Toml(server) => server.add(text),
            Self::Script(script) => script.add(text),
        }
    }

    /// Removes what is ours, and the containers that this leaves empty and the original did not have.
    pub(super) fn remove(&self, text: &str, original: Option<&str>) -> anyhow::Result<Edit> {
        match self {
            Self::Json { hooks, server } => {
                let document = Document::parse(text)?;
                let original = original.and_then(|text| Document::parse(text).ok());
                let mut items = Vec::new();
                if let Some(hooks) = hooks {
                    items.extend(hooks.remove(&document, original.as_ref()));
                }
                if let Some(server) = server {
                    items.extend(server.remove(&document, original.as_ref()));
                }
                Ok(Edit { text: document.to_text(), items })
            }
            Self::Toml(_) => TomlServer::remove(text),
            Self::Script(script) => Ok(script.remove(text)),
        }
    }

    /// The same entries with the programs that the text names; `None` if it has none of them.
    pub(super) fn found_in(&self, text: &str) -> anyhow::Result<Option<Self>> {
        match self {
            Self::Json { hooks, server } => {
                let document = Document::parse(text)?;
                let hooks = hooks.as_ref().and_then(|hooks| HookEntries::found_in(hooks.format, &document));
                let server = server.as_ref().and_then(|server| ServerEntry::found_in(server.format, &document));
                Ok((hooks.is_some() || server.is_some()).then_some(Self::Json { hooks, server }))
            }
            Self::Toml(_) => Ok(TomlServer::found_in(text)?.map(Self::Toml)),
            Self::Script(script) => Ok(script.found_in(text).map(Self::Script)),
        }
    }

    /// Whether nothing that anybody needs is in the text.
    pub(super) fn is_blank(&self, text: &str) -> anyhow::Result<bool> {
        match self {
            Self::Json { .. } => Ok(Document::parse(text)?.is_empty()),
            Self::Toml(_) | Self::Script(_) => Ok(text.trim().is_empty()),
        }
    }

    pub(super) fn state(&self, text: &str) -> anyhow::Result<States> {
        let mut states = States::default();
        match self {
            Self::Json { hooks, server } => {
                let document = Document::parse(text)?;
                states.hooks = hooks.as_ref().map(|hooks| hooks.state(&document)).unwrap_or_default();
                states.servers = server.iter().map(|server| server.state(&document)).collect();
            }
            Self::Toml(_) => states.servers = vec![TomlServer::state(text)?],
            Self::Script(script) => states.hooks = vec![script.state(text)],
        }
        Ok(states)
    }
}

/// What a file has of ours.
#[derive(Default)]
pub(super) struct States {
    pub(super) hooks: Vec<EntryState>,
    pub(super) servers: Vec<EntryState>,
}

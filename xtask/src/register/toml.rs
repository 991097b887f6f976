//! Our MCP server in Codex's `config.toml`: the table `[mcp_servers.agent-memory]`. All that is not ours stays byte for byte.

use anyhow::{Context, bail};
use toml_edit::{DocumentMut, Item as TomlItem, Table, TableLike, value};

use super::command::names_program;
use super::content::Edit;
use super::report::Outcome;
use super::servers::{self, PROGRAM_NAME, SERVER_NAME};
use super::state::EntryState;

const SERVERS: &str = "mcp_servers";
const BYTE_ORDER_MARK: &str = "\u{feff}";

pub(super) struct TomlServer {
    pub(super) program: String,
}

impl TomlServer {
    pub(super) fn check(text: &str) -> anyhow::Result<()> {
        TomlText::parse(text).map(drop)
    }

    pub(super) fn found_in(text: &str) -> anyhow::Result<Option<Self>> {
        let found = TomlText::parse(text)?;
        let server = found.server().filter(|server| is_ours(*server));
        Ok(server.and_then(program_of).map(|program| Self { program: program.to_owned() }))
    }

    pub(super) fn state(text: &str) -> anyhow::Result<EntryState> {
        let found = TomlText::parse(text)?;
        let server = found.server().filter(|server| is_ours(*server));
        let found = server.and_then(|server| Some((program_of(server)?, !server.contains_key("args"))));
        Ok(EntryState::of(SERVER_NAME, found))
    }

    pub(super) fn add(&self, text: &str) -> anyhow::Result<Edit> {
        let mut toml = TomlText::parse(text)?;
        let outcome = match toml.server_mut() {
            None => {
                toml.append_server(&self.program)?;
                Outcome::Added
            }
            Some(server) if !is_ours(server) => {
                return Err(servers::other_of_that_name("remove it with `codex mcp remove agent-memory`"));
            }
            Some(server) => {
                let is_moved = program_of(server) != Some(&self.program);
                if is_moved {
                    replace_value(server, "command", &self.program);
                }
                let had_arguments = server.remove("args").is_some();
                if is_moved || had_arguments { Outcome::Corrected } else { Outcome::AlreadyThere }
            }
        };
        Ok(Edit { text: toml.to_text()?, items: vec![servers::item(outcome)] })
    }

    pub(super) fn remove(text: &str) -> anyhow::Result<Edit> {
        let mut toml = TomlText::parse(text)?;
        if !toml.server().is_some_and(is_ours) {
            return Ok(Edit { text: text.to_owned(), items: Vec::new() });
        }
        toml.remove_server();
        Ok(Edit { text: toml.to_text()?, items: vec![servers::item(Outcome::Removed)] })
    }
}

/// A document, and what the parser does not keep: the mark before it and the kind of its line ends.
struct TomlText {
    document: DocumentMut,
    byte_order_mark: &'static str,
    line_end: &'static str,
}

impl TomlText {
    /// Refuses a text that would not come out again as it went in.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let (byte_order_mark, body) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (BYTE_ORDER_MARK, rest),
            None => ("", text),
        };
        let line_end = if body.contains("\r\n") { "\r\n" } else { "\n" };
        let document = body.replace("\r\n", "\n").parse::<DocumentMut>()?;
        let parsed = Self { document, byte_order_mark, line_end };
        let unfinished_line = if body.is_empty() || body.ends_with('\n') { "" } else { line_end };
        let is_kept = [text.to_owned(), format!("{text}{unfinished_line}")].contains(&parsed.to_text()?);
        if !is_kept {
            bail!("it mixes two kinds of line ends, which would not stay as they are");
        }
        Ok(parsed)
    }

    fn to_text(&self) -> anyhow::Result<String> {
        let body = self.document.to_string();
        // What we have put in must be understood by whoever reads it next.
        body.parse::<DocumentMut>().context("the change would not be valid TOML")?;
        Ok(format!("{}{}", self.byte_order_mark, body.replace('\n', self.line_end)))
    }

    fn server(&self) -> Option<&dyn TableLike> {
        self.document.get(SERVERS)?.as_table_like()?.get(SERVER_NAME)?.as_table_like()
    }

    fn server_mut(&mut self) -> Option<&mut dyn TableLike> {
        self.document.get_mut(SERVERS)?.as_table_like_mut()?.get_mut(SERVER_NAME)?.as_table_like_mut()
    }

    /// Behind everything else, comments at the end included.
    fn append_server(&mut self, program: &str) -> anyhow::Result<()> {
        let mut implicit = Table::new();
        implicit.set_implicit(true);
        let parent = self.document.entry(SERVERS).or_insert(TomlItem::Table(implicit));
        if parent.as_inline_table().is_some() {
            let mut server = toml_edit::InlineTable::new();
            server.insert("command", program.into());
            let parent = parent.as_inline_table_mut().context("it was one just now")?;
            parent.insert(SERVER_NAME, server.into());
            return Ok(());
        }
        let parent = parent.as_table_mut().with_context(|| format!("`{SERVERS}` is there, but is not a table"))?;
        if parent.contains_key(SERVER_NAME) {
            return Err(servers::other_of_that_name("remove it from the file"));
        }
        let mut server = Table::new();
        server.insert("command", value(program));
        server.set_position(usize::MAX >> 1);
        parent.insert(SERVER_NAME, TomlItem::Table(server));
        let comments = self.document.trailing().as_str().unwrap_or_default().to_owned();
        let is_first = self.document.to_string().trim_start().starts_with(&format!("[{SERVERS}.{SERVER_NAME}]"));
        self.document.set_trailing("");
        let distance = if comments.is_empty() && is_first { "" } else { "\n" };
        if let Some(server) = self.document[SERVERS][SERVER_NAME].as_table_mut() {
            server.decor_mut().set_prefix(format!("{comments}{distance}"));
        }
        Ok(())
    }

    /// The comments before our table are the user's.
    fn remove_server(&mut self) {
        let Some(servers) = self.document.get_mut(SERVERS).and_then(TomlItem::as_table_like_mut) else { return };
        let prefix = servers.get(SERVER_NAME).and_then(TomlItem::as_table).and_then(|table| {
            let prefix = table.decor().prefix()?.as_str()?;
            Some(prefix.strip_suffix('\n').unwrap_or(prefix).to_owned())
        });
        servers.remove(SERVER_NAME);
        // An explicit `[mcp_servers]` was not ours.
        let is_left_over = servers.is_empty()
            && self.document.get(SERVERS).and_then(TomlItem::as_table).is_some_and(Table::is_implicit);
        if is_left_over {
            self.document.remove(SERVERS);
        }
        if let Some(comments) = prefix.filter(|prefix| !prefix.is_empty()) {
            let rest = self.document.trailing().as_str().unwrap_or_default();
            let trailing = format!("{comments}{rest}");
            self.document.set_trailing(trailing);
        }
    }
}

/// Keeps the blanks and the comment around the value.
fn replace_value(table: &mut dyn TableLike, name: &str, text: &str) {
    if let Some(old) = table.get_mut(name).and_then(TomlItem::as_value_mut) {
        let decor = old.decor().clone();
        *old = text.into();
        *old.decor_mut() = decor;
    }
}

fn is_ours(server: &dyn TableLike) -> bool {
    program_of(server).is_some_and(|program| names_program(program, PROGRAM_NAME))
}

fn program_of(server: &dyn TableLike) -> Option<&str> {
    server.get("command")?.as_str()
}

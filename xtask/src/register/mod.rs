//! Registration with Claude Code: our hooks in its `settings.json`, our MCP server in its `.claude.json`.
//!
//! Both files are the user's. What is not ours stays byte for byte, a second run changes nothing, and `unregister` undoes
//! exactly what `register` did. `hooks` and `servers` know the entries, `document` the text, `file` the disk; which
//! files these are says `claude`.

mod claude;
mod document;
mod file;
mod hooks;
mod report;
mod servers;
mod state;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use self::document::Document;
use self::file::{Saved, TextFile};
use self::hooks::HookEntries;
use self::report::{FileReport, Item, Outcome};
use self::servers::ServerEntry;
use crate::output::{HintExt, hinted};

pub(crate) use self::claude::{ClaudeFiles, ClaudeSurroundings};
pub(crate) use self::report::Report;
pub(crate) use self::state::State;

/// What is registered, and where.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    /// `agent-memory-hook`, absolute.
    pub(crate) hook_program: PathBuf,
    /// `agent-memory-mcp`, absolute.
    pub(crate) mcp_program: PathBuf,
    pub(crate) claude: ClaudeFiles,
}

impl Registration {
    /// Adds what is missing and corrects what points elsewhere. Touches neither file if one of them cannot be understood.
    pub(crate) fn register(&self) -> anyhow::Result<Report> {
        let hooks = HookEntries { program: text_of(&self.hook_program)? };
        let server = ServerEntry { program: text_of(&self.mcp_program)? };
        plan_addition(&TextFile::read(&self.claude.settings)?, &hooks)?;
        plan_addition(&TextFile::read(&self.claude.servers)?, &server)?;
        Ok(Report { files: vec![add(&self.claude.settings, &hooks)?, add(&self.claude.servers, &server)?] })
    }

    /// Removes what is ours, whichever installation it belongs to.
    pub(crate) fn unregister(&self) -> anyhow::Result<Report> {
        let hooks = HookEntries { program: text_of(&self.hook_program)? };
        let server = ServerEntry { program: text_of(&self.mcp_program)? };
        plan_removal(&TextFile::read(&self.claude.settings)?, &hooks)?;
        plan_removal(&TextFile::read(&self.claude.servers)?, &server)?;
        Ok(Report { files: vec![remove(&self.claude.settings, &hooks)?, remove(&self.claude.servers, &server)?] })
    }

    /// What is registered now.
    pub(crate) fn state(&self) -> anyhow::Result<State> {
        let settings = TextFile::read(&self.claude.settings)?;
        let servers = TextFile::read(&self.claude.servers)?;
        Ok(State::of(&self.claude, &parse(&settings)?, &parse(&servers)?))
    }
}

/// Our entries in one of the files.
trait Entries: Sized {
    /// Adds or corrects them in the document.
    fn add(&self, document: &Document) -> anyhow::Result<Vec<Item>>;
    /// Removes them, and the containers that they leave empty and the original did not have.
    fn remove(&self, document: &Document, original: Option<&Document>) -> Vec<Item>;
    /// The same entries with the program that the document names; `None` if the document has none of them.
    fn found_in(document: &Document) -> Option<Self>;
}

/// What becomes of a file.
enum Plan {
    Leave,
    Write(String),
    Delete,
}

/// Another program may write the file at the same moment; Claude Code does so with `.claude.json`.
const MAX_ATTEMPTS: usize = 3;

fn add(path: &Path, entries: &impl Entries) -> anyhow::Result<FileReport> {
    for _ in 0..MAX_ATTEMPTS {
        let file = TextFile::read(path)?;
        let (plan, items) = plan_addition(&file, entries)?;
        let Plan::Write(text) = plan else {
            return Ok(FileReport { path: path.to_owned(), items, backup: None });
        };
        let backup = if has_entries_of(entries, &file)? { None } else { file.back_up()? };
        if file.save(&text)? == Saved::Done {
            return Ok(FileReport { path: path.to_owned(), items, backup });
        }
    }
    Err(kept_changing(path))
}

fn remove(path: &Path, entries: &impl Entries) -> anyhow::Result<FileReport> {
    for _ in 0..MAX_ATTEMPTS {
        let file = TextFile::read(path)?;
        let (plan, items) = plan_removal(&file, entries)?;
        let saved = match plan {
            Plan::Leave => return Ok(FileReport { path: path.to_owned(), items, backup: None }),
            Plan::Write(text) => file.save(&text)?,
            Plan::Delete => file.delete()?,
        };
        if saved == Saved::Done {
            file.delete_backup()?;
            return Ok(FileReport { path: path.to_owned(), items, backup: None });
        }
    }
    Err(kept_changing(path))
}

fn kept_changing(path: &Path) -> anyhow::Error {
    let error = anyhow!("`{}` is being changed by another program", path.display());
    hinted(error, "close the running Claude Code sessions and try again")
}

fn plan_addition(file: &TextFile, entries: &impl Entries) -> anyhow::Result<(Plan, Vec<Item>)> {
    let document = parse(file)?;
    let items = entries.add(&document).with_context(|| format!("cannot register in `{}`", file.path().display()))?;
    let is_changed = items.iter().any(|item| item.outcome != Outcome::AlreadyThere);
    Ok((if is_changed { Plan::Write(document.to_text()) } else { Plan::Leave }, items))
}

fn plan_removal<E: Entries>(file: &TextFile, entries: &E) -> anyhow::Result<(Plan, Vec<Item>)> {
    let original_text = file.backup_text()?;
    // A backup that cannot be understood any more is as good as none.
    let original = original_text.as_deref().and_then(|text| Document::parse(text).ok());
    let document = parse(file)?;
    let found = E::found_in(&document);
    let items = entries.remove(&document, original.as_ref());
    let Some(found) = found else {
        return Ok((Plan::Leave, items));
    };
    if let (Some(original), Some(original_text)) = (original, original_text) {
        // Nothing but our entries has been added since: then the file becomes again what it was, to the byte.
        if found.add(&original).is_ok() && Some(original.to_text().as_str()) == file.text() {
            return Ok((Plan::Write(original_text), items));
        }
    } else if document.is_empty() {
        return Ok((Plan::Delete, items));
    }
    Ok((Plan::Write(document.to_text()), items))
}

fn has_entries_of<E: Entries>(_entries: &E, file: &TextFile) -> anyhow::Result<bool> {
    Ok(E::found_in(&parse(file)?).is_some())
}

fn parse(file: &TextFile) -> anyhow::Result<Document> {
    Document::parse(file.text().unwrap_or_default())
        .with_context(|| format!("`{}` is not valid JSON and was left as it is", file.path().display()))
        .hint("repair the file, then run the command again")
}

/// A path that stands in JSON must be text.
fn text_of(program: &Path) -> anyhow::Result<String> {
    let text = program.to_str().with_context(|| format!("the path `{}` is not Unicode", program.display()))?;
    Ok(text.to_owned())
}

/// Whether a command's own program is the one of that name: a bare name or a path, quoted or not, with or without arguments
/// behind it. A command that only mentions it is somebody's own.
fn names_program(command: &str, name: &str) -> bool {
    let is_path = command.starts_with('/') || command.chars().nth(1) == Some(':');
    let program = match command.chars().next() {
        Some(quote @ ('"' | '\'')) => command[1..].split(quote).next(),
        // In exec form a path may hold blanks.
        _ if is_path && (command.ends_with(name) || command.ends_with(&format!("{name}.exe"))) => Some(command),
        _ => command.split_whitespace().next(),
    };
    let file = program.and_then(|program| program.rsplit(['/', '\\']).next()).unwrap_or_default();
    file.strip_suffix(".exe").unwrap_or(file) == name
}

#[cfg(test)]
mod tests;

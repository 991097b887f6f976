//! Where agents keep their transcripts.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use super::lines::{Line, Lines};
use crate::event::Agent;

/// A transcript on this machine's disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFile {
    pub path: PathBuf,
    pub size_bytes: u64,
    pub modified_at: Option<SystemTime>,
    /// Whether it is that of a subagent, which belongs to another file's session.
    pub is_subagent: bool,
}

/// The folder of an agent's own files, where its variables leave it to us: `.claude`, `.codex` or `.gemini` in the user's home.
pub fn usual_folder(agent: Agent, home: &Path) -> Option<PathBuf> {
    match agent {
        Agent::ClaudeCode => Some(home.join(".claude")),
        Agent::Codex => Some(home.join(".codex")),
        Agent::GeminiCli => Some(home.join(".gemini")),
        _ => None,
    }
}

/// The folders among an agent's own files that hold its transcripts, whether they are there or not.
pub fn folders(agent: Agent, folder: &Path) -> Vec<PathBuf> {
    match agent {
        Agent::ClaudeCode => vec![folder.join("projects")],
        Agent::Codex => vec![folder.join("sessions"), folder.join("archived_sessions")],
        Agent::GeminiCli => vec![folder.join("tmp")],
        _ => Vec::new(),
    }
}

/// All transcripts of an agent whose files lie in that folder: sessions before their subagents, oldest first.
pub fn find(agent: Agent, folder: &Path) -> Vec<TranscriptFile> {
    let mut found = Vec::new();
    for root in folders(agent, folder) {
        walk(&root, &mut |path| found.extend(transcript(agent, path)));
    }
    found.sort_by(|one, two| {
        (one.is_subagent, one.modified_at, &one.path).cmp(&(two.is_subagent, two.modified_at, &two.path))
    });
    found
}

/// That file as a transcript of an agent, if it can be one.
pub fn transcript(agent: Agent, path: &Path) -> Option<TranscriptFile> {
    let name = path.file_name()?.to_str()?;
    let is_jsonl = name.ends_with(".jsonl");
    let has_parent = |wanted: &str| path.parent().is_some_and(|parent| parent.ends_with(wanted));
    let is_transcript = match agent {
        Agent::ClaudeCode => is_jsonl && name != "journal.jsonl" && name != "history.jsonl",
        Agent::Codex => is_jsonl && name.starts_with("rollout-"),
        // Its folders hold logs and checkpoints too; a subagent's chat lies in a folder of its session.
        Agent::GeminiCli => {
            let in_chats =
                has_parent("chats") || path.ancestors().nth(2).is_some_and(|folder| folder.ends_with("chats"));
            in_chats && (is_jsonl || name.ends_with(".json"))
        }
        _ => false,
    };
    if is_transcript { of_path(agent, path) } else { None }
}

/// That file, whatever it is called: a person named it.
pub fn of_path(agent: Agent, path: &Path) -> Option<TranscriptFile> {
    let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let name = path.file_name()?.to_str()?;
    Some(TranscriptFile {
        path: path.to_owned(),
        size_bytes: file.len(),
        modified_at: file.modified().ok(),
        is_subagent: agent == Agent::ClaudeCode && name.starts_with("agent-"),
    })
}

/// Whose transcript a file is, by its first lines; `None` where they do not tell.
pub fn written_by(path: &Path) -> io::Result<Option<Agent>> {
    let mut lines = Lines::of(BufReader::new(File::open(path)?));
    for _ in 0..20 {
        let text = match lines.next()? {
            Some(Line::Whole(text) | Line::Unended(text)) => text,
            Some(Line::TooLong) => continue,
            None => break,
        };
        let Ok(line) = serde_json::from_slice::<Value>(text) else { continue };
        let has = |name: &str| line.get(name).is_some();
        if has("type") && has("payload") {
            return Ok(Some(Agent::Codex));
        }
        if has("sessionId") && (has("projectHash") || has("startTime")) {
            return Ok(Some(Agent::GeminiCli));
        }
        if has("type") && (has("sessionId") || has("leafUuid") || has("snapshot")) {
            return Ok(Some(Agent::ClaudeCode));
        }
    }
    Ok(None)
}

/// The subagents' transcripts of one of Claude Code's sessions, in the folder that is called like its file.
pub fn subagents_of(session_file: &Path) -> Vec<TranscriptFile> {
    let mut found = Vec::new();
    walk(&session_file.with_extension("").join("subagents"), &mut |path| {
        found.extend(transcript(Agent::ClaudeCode, path).filter(|file| file.is_subagent));
    });
    found.sort_by(|one, two| one.path.cmp(&two.path));
    found
}

fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    // A folder that is not there or may not be read holds nothing for us.
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        // Links are not followed: they could lead in a ring, or out of the agent's folder.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), visit),
            Ok(kind) if kind.is_file() => visit(&entry.path()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(agent: Agent, files: &[&str], expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "{}").unwrap();
        }
        let mut found: Vec<_> = find(agent, folder.path())
            .iter()
            .map(|file| file.path.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned())
            .collect();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn finds_sessions_and_subagents_of_claude_code() {
        check(
            Agent::ClaudeCode,
            &[
                "projects/-w/s.jsonl",
                "projects/-w/agent-1.jsonl",
                "projects/-w/s/subagents/agent-2.jsonl",
                "projects/-w/s/subagents/agent-2.meta.json",
                "projects/-w/s/subagents/workflows/r/agent-3.jsonl",
                "projects/-w/s/subagents/workflows/r/journal.jsonl",
                "projects/-w/memory/MEMORY.md",
                "history.jsonl",
            ],
            &[
                "projects/-w/agent-1.jsonl",
                "projects/-w/s.jsonl",
                "projects/-w/s/subagents/agent-2.jsonl",
                "projects/-w/s/subagents/workflows/r/agent-3.jsonl",
            ],
        );
    }

    #[test]
    fn finds_rollouts_of_codex_archived_or_not() {
        check(
            Agent::Codex,
            &["sessions/2026/11/29/rollout-a.jsonl", "archived_sessions/rollout-b.jsonl", "sessions/other.jsonl"],
            &["archived_sessions/rollout-b.jsonl", "sessions/2026/11/29/rollout-a.jsonl"],
        );
    }

    #[test]
    fn finds_chats_of_gemini_old_and_new() {
        check(
            Agent::GeminiCli,
            &["tmp/p/chats/session-a.jsonl", "tmp/p/chats/session-b.json", "tmp/p/chats/s/c.jsonl", "tmp/p/logs.json"],
            &["tmp/p/chats/s/c.jsonl", "tmp/p/chats/session-a.jsonl", "tmp/p/chats/session-b.json"],
        );
    }
}

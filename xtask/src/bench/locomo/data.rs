//! Conversations as they lie in a folder: `{"conversation": 26, "turns": [{"id", "session", "speaker", "text"}], "questions":
//! [{"question", "evidence": [turn id]}]}`, a file each.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) name: String,
    pub(super) turns: Vec<Turn>,
    questions: Vec<Question>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) session: String,
    pub(super) speaker: String,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Question {
    #[serde(rename = "question")]
    pub(super) text: String,
    pub(super) evidence: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    conversation: Value,
    turns: Vec<Turn>,
    questions: Vec<Question>,
}

pub(super) fn read(folder: &Path) -> Result<Vec<Conversation>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<_> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    ensure!(!paths.is_empty(), "{} holds no conversation (*.json)", folder.display());
    paths.iter().map(|path| one(path).with_context(|| format!("cannot read {}", path.display()))).collect()
}

fn one(path: &Path) -> Result<Conversation> {
    let File { conversation, turns, questions } = serde_json::from_slice(&std::fs::read(path)?)?;
    Ok(Conversation { name: conversation.to_string().trim_matches('"').to_owned(), turns, questions })
}

impl Conversation {
    /// Those whose evidence is in the conversation, with nothing else for evidence.
    pub(super) fn questions(&self) -> Vec<Question> {
        let known: HashSet<_> = self.turns.iter().map(|turn| turn.id.as_str()).collect();
        let there = |question: &Question| -> Vec<String> {
            let mut evidence: Vec<_> =
                question.evidence.iter().filter(|turn| known.contains(turn.as_str())).cloned().collect();
            evidence.sort();
            evidence.dedup();
            evidence
        };
        self.questions
            .iter()
            .map(|question| Question { text: question.text.clone(), evidence: there(question) })
            .filter(|question| !question.evidence.is_empty())
            .collect()
    }
}

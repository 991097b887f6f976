//! How much of what answers a question a search finds, on conversations and questions in the form of LoCoMo (Maharana et al., "Evaluating
//! Very Long-Term Conversational Memory of LLM Agents", ACL 2024): turns, and questions with the turns that hold their evidence.
//!
//! Each conversation becomes a project, each turn a prompt that is posted to the server; each question is asked over HTTP.

mod data;
mod report;

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use memory::store::bench as rows;
use serde::Deserialize;
use serde_json::{Value, json};

use super::asker::Asker;
use super::stage::{Stage, indexed};
use crate::output::Step;
use data::Conversation;
use report::Asked;
pub(crate) use report::LocomoBench;

/// Deep enough for recall@20 of every list: a hit that is among the first 20 of one is among these.
const DEPTH: usize = 100;
/// Measures against a stage whose server runs. `folder` holds the conversations, a JSON file each.
pub(crate) async fn run(stage: &Stage, folder: &Path, step: &Step) -> Result<LocomoBench> {
    let conversations = data::read(folder)?;
    let server = Asker::of(stage)?;
    for (number, conversation) in conversations.iter().enumerate() {
        step.say(format!("Storing conversation {} of {}", number + 1, conversations.len()));
        store(&server, conversation).await?;
    }
    stage.drained().await?;
    step.say("Waiting for the vectors");
    let db = stage.database().await?;
    indexed(&db).await?;
    let turns: HashMap<String, (String, String)> =
        rows::prompt_keys(&db).await.context("cannot read the journal")?.into_iter().collect();
    db.close().await;
    let mut asked = Vec::new();
    for (number, conversation) in conversations.iter().enumerate() {
        step.say(format!("Asking about conversation {} of {}", number + 1, conversations.len()));
        for question in conversation.questions() {
            let hits = ask(&server, &conversation.name, &question.text).await?;
            let hits = hits.into_iter().filter_map(|hit| {
                let (session, turn) = turns.get(&hit.id)?;
                // The project filter is part of what is measured.
                let is_own = session.starts_with(&format!("{}/", conversation.name));
                Some((if is_own { turn.clone() } else { format!("{session}:{turn}") }, hit.ranks()))
            });
            asked.push(Asked::of(&question.evidence, hits.collect()));
        }
    }
    Ok(LocomoBench::of(conversations.len(), &asked))
}

#[derive(Deserialize)]
struct Found {
    hits: Vec<Hit>,
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct Hit {
    id: String,
    /// Its ranks, which are whole numbers, and other measures.
    matched: HashMap<String, Value>,
}

impl Hit {
    fn ranks(self) -> HashMap<String, usize> {
        self.matched.into_iter().filter_map(|(list, rank)| Some((list, rank.as_u64()? as usize))).collect()
    }
}

async fn store(server: &Asker, conversation: &Conversation) -> Result<()> {
    for turn in &conversation.turns {
        let event = json!({
            "hook_event_name": "UserPromptSubmit",
            "session_id": format!("{}/{}", conversation.name, turn.session),
            "cwd": format!("/locomo/{}", conversation.name),
            "prompt_id": turn.id,
            "prompt": format!("{}: {}", turn.speaker, turn.text),
        });
        server.post("/api/hooks/custom", &event).await?;
    }
    Ok(())
}

async fn ask(server: &Asker, project: &str, question: &str) -> Result<Vec<Hit>> {
    let search = json!({ "query": question, "project": project, "limit": DEPTH });
    let found: Found = server.ask("/api/observations/search", &search).await?;
    ensure!(
        found.notes.iter().all(|note| !note.contains("words alone")),
        "the search went without a model: {:?}",
        found.notes
    );
    Ok(found.hits)
}

//! How much of what answers a question a search finds, on conversations and questions in the form of LoCoMo (Maharana et al., "Evaluating
//! Very Long-Term Conversational Memory of LLM Agents", ACL 2024): turns, and questions with the turns that hold their evidence.
//!
//! Each conversation becomes a project, each turn a prompt that is posted to the server; each question is asked over HTTP.

mod data;
mod report;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use memory::home::Home;
use memory::store::bench as rows;
use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::stage::Stage;
use crate::output::Step;
use data::Conversation;
use report::Asked;
pub(crate) use report::LocomoBench;

/// Deep enough for recall@20 of every list: a hit that is among the first 20 of one is among these.
const DEPTH: usize = 100;
const POLL: Duration = Duration::from_millis(200);
const DEADLINE: Duration = Duration::from_mins(30);

/// Measures against a stage whose server runs. `folder` holds the conversations, a JSON file each.
pub(crate) async fn run(stage: &Stage, folder: &Path, step: &Step) -> Result<LocomoBench> {
    let conversations = data::read(folder)?;
    let server = Server::of(stage.home(), stage.addresses()?[0].to_string())?;
    for (number, conversation) in conversations.iter().enumerate() {
        step.say(format!("Storing conversation {} of {}", number + 1, conversations.len()));
        server.store(conversation).await?;
    }
    stage.drained().await?;
    step.say("Waiting for the vectors");
    let db = stage.database().await?;
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while !rows::is_indexed(&db).await.context("cannot read the index")? {
        ensure!(
            tokio::time::Instant::now() < deadline,
            "the documents have no vectors after {} min",
            DEADLINE.as_secs() / 60
        );
        tokio::time::sleep(POLL).await;
    }
    let turns: HashMap<String, (String, String)> =
        rows::prompt_keys(&db).await.context("cannot read the journal")?.into_iter().collect();
    db.close().await;
    let mut asked = Vec::new();
    for (number, conversation) in conversations.iter().enumerate() {
        step.say(format!("Asking about conversation {} of {}", number + 1, conversations.len()));
        for question in conversation.questions() {
            let hits = server.ask(&conversation.name, &question.text).await?;
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

struct Server {
    address: String,
    token: String,
    client: Client,
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

impl Server {
    fn of(home: &Home, address: String) -> Result<Self> {
        let token = home.token().context("the token is not there")?;
        Ok(Self { address, token, client: Client::new() })
    }

    async fn store(&self, conversation: &Conversation) -> Result<()> {
        for turn in &conversation.turns {
            let event = json!({
                "hook_event_name": "UserPromptSubmit",
                "session_id": format!("{}/{}", conversation.name, turn.session),
                "cwd": format!("/locomo/{}", conversation.name),
                "prompt_id": turn.id,
                "prompt": format!("{}: {}", turn.speaker, turn.text),
            });
            self.post("/api/hooks/custom", &event).await?;
        }
        Ok(())
    }

    async fn ask(&self, project: &str, question: &str) -> Result<Vec<Hit>> {
        let search = json!({ "query": question, "project": project, "limit": DEPTH });
        let body = self.post("/api/observations/search", &search).await?;
        let found: Found = serde_json::from_slice(&body).context("cannot read the server's answer")?;
        ensure!(
            found.notes.iter().all(|note| !note.contains("words alone")),
            "the search went without a model: {:?}",
            found.notes
        );
        Ok(found.hits)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Vec<u8>> {
        let answer = self
            .client
            .post(format!("http://{}{path}", self.address))
            .bearer_auth(&self.token)
            .json(body)
            .send()
            .await
            .context("the server does not answer")?;
        let status = answer.status();
        let body = answer.bytes().await.context("the server broke off its answer")?;
        ensure!(status.is_success(), "the server answered {status}: {}", String::from_utf8_lossy(&body));
        Ok(body.to_vec())
    }
}

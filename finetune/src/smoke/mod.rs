//! The proof that a GGUF works outside of what made it: mistralrs loads it and continues prompts that were rendered here.
//!
//! Prompts go to the engine as they are. What an engine makes of messages and tools by itself is not the text that was trained: mistralrs
//! sorts the keys of a tool's schema and writes it without spaces, and a small model then answers something else.

mod engine;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::dataset::row::Function;
use crate::eval::parse;

pub use engine::{Completion, Engine};

/// More than a turn that was trained needs: who does not stop before this does not stop.
const MAX_TOKENS: usize = 256;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SmokeReport {
    pub engine: String,
    pub loading_ms: u64,
    /// One for each prompt, in their order.
    pub answers: Vec<Answer>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Without the token that ended it.
    pub text: String,
    /// Whether the model ended it, and not the limit.
    pub stopped: bool,
    pub calls: Vec<Function>,
    pub prompt_tokens: usize,
    pub tokens: usize,
    pub duration_ms: u64,
}

impl SmokeReport {
    /// Whether every answer says something and comes to an end.
    pub fn passed(&self) -> bool {
        self.answers.iter().all(|answer| answer.stopped && !answer.text.is_empty())
    }
}

/// Loads the file and continues each prompt by what is most likely.
pub async fn run(gguf: &Path, prompts: &[String]) -> Result<SmokeReport> {
    let start = Instant::now();
    let engine = Engine::load(gguf).await?;
    let loading_ms = start.elapsed().as_millis() as u64;
    let mut answers = Vec::with_capacity(prompts.len());
    for (number, prompt) in prompts.iter().enumerate() {
        let start = Instant::now();
        let completion = engine.complete(prompt, MAX_TOKENS).await;
        let Completion { text, stopped, prompt_tokens, tokens } =
            completion.with_context(|| format!("continuing prompt {number}"))?;
        let duration_ms = start.elapsed().as_millis() as u64;
        answers.push(Answer { calls: parse(&text).calls, text, stopped, prompt_tokens, tokens, duration_ms });
    }
    Ok(SmokeReport { engine: Engine::NAME.to_owned(), loading_ms, answers })
}

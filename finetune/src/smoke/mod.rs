//! The proof that a GGUF works outside of what made it: mistralrs loads it and continues prompts that were rendered here.
//!
//! Prompts go to the engine as they are. What an engine makes of messages and tools by itself is not the text that was trained: mistralrs
//! sorts the keys of a tool's schema and writes it without spaces, and a small model then answers something else.

mod engine;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dataset::row::Function;

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
        answers.push(Answer { calls: calls(&text), text, stopped, prompt_tokens, tokens, duration_ms });
    }
    Ok(SmokeReport { engine: Engine::NAME.to_owned(), loading_ms, answers })
}

/// The calls of an answer, as Hermes' format has them. What is no call is left out.
fn calls(answer: &str) -> Vec<Function> {
    let blocks = answer.split("<tool_call>").skip(1).filter_map(|rest| rest.split_once("</tool_call>"));
    let call = |(block, _): (&str, &str)| {
        let call: Value = serde_json::from_str(block.trim()).ok()?;
        serde_json::from_value(call).ok()
    };
    blocks.filter_map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_calls_between_words() {
        let call = r#"{"name": "Read", "arguments": {"file_path": "a.rs"}}"#;
        let answer = format!("I look.\n<tool_call>\n{call}\n</tool_call>\n<tool_call>\n{call}\n</tool_call>");
        let found = calls(&answer);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].name, "Read");
        assert!(calls("<tool_call>\nRead it\n</tool_call>").is_empty());
        assert!(calls(&format!("<tool_call>\n{call}")).is_empty(), "a call that was cut off is none");
    }
}

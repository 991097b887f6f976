//! Two engines on questions that a person chose, their answers in an order that does not tell whose they are. Which side was which
//! lies apart, in the key.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Engines;
use crate::dataset::render::{ChatTemplate, Thinking};
use crate::dataset::row::{Message, draw};

/// A line of a file of prompts: what a person asks (`{"prompt": "..."}`), or a conversation (`{"messages": [...]}`) that the model is to
/// go on with; with `tools`, in OpenAI's form, it may call them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    prompt: Option<String>,
    messages: Option<Vec<Message>>,
    #[serde(default)]
    tools: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub messages: Vec<Message>,
    pub tools: Vec<Value>,
}

#[derive(Debug, Clone, Copy)]
pub struct BlindOptions {
    pub max_tokens: usize,
    pub seed: u64,
}

/// The answers to be judged, and what tells whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blind {
    /// Markdown, with a row for each question.
    pub table: String,
    pub key: Key,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub seed: u64,
    /// Who stood left, by row; the other one stood right.
    pub left: Vec<Who>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    Base,
    Tuned,
}

/// The questions of a file, one JSON object a line.
pub fn read_questions(jsonl: &str) -> Result<Vec<Question>> {
    let lines = jsonl.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let questions = lines.map(|(number, line)| question(line).with_context(|| format!("reading line {}", number + 1)));
    questions.collect()
}

fn question(line: &str) -> Result<Question> {
    let Line { prompt, messages, tools } = serde_json::from_str(line)?;
    ensure!(prompt.is_some() != messages.is_some(), "either `prompt` or `messages` is expected");
    let asked = prompt.map(|content| vec![Message::User { content }]);
    let messages = asked.or(messages).unwrap_or_default();
    ensure!(messages.last().is_some_and(|last| !last.is_assistant()), "the last message must be one to answer");
    Ok(Question { messages, tools })
}

/// Both engines' answers. The same questions, engines and seed give the same table.
pub fn compare_blind(
    questions: &[Question],
    template: &ChatTemplate,
    engines: Engines<'_>,
    options: BlindOptions,
) -> Result<Blind> {
    let Engines { base: base_engine, tuned: tuned_engine } = engines;
    let mut table = "| row | asked | left | right |\n| ---: | --- | --- | --- |\n".to_owned();
    let mut left = Vec::with_capacity(questions.len());
    for (place, question) in questions.iter().enumerate() {
        let number = place + 1;
        let prompt = template.render(&question.messages, &question.tools, true, Thinking::Off);
        let prompt = prompt.with_context(|| format!("rendering row {number}"))?;
        let asking = || format!("answering row {number}");
        let base = base_engine.generate(&prompt, options.max_tokens).with_context(asking)?;
        let tuned = tuned_engine.generate(&prompt, options.max_tokens).with_context(asking)?;
        let who = who_is_left(number, options.seed);
        let (one, other) = if who == Who::Base { (&base, &tuned) } else { (&tuned, &base) };
        let asked = question.messages.last().map_or("", Message::content);
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {number} | {} | {} | {} |", cell(asked), cell(&one.text), cell(&other.text));
        left.push(who);
    }
    Ok(Blind { table, key: Key { seed: options.seed, left } })
}

fn who_is_left(row: usize, seed: u64) -> Who {
    if draw(seed, &["left", &row.to_string()]).is_multiple_of(2) { Who::Base } else { Who::Tuned }
}

/// A text in one cell of a table: what would end the cell, or be taken for HTML, is escaped.
fn cell(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('|', "&#124;").replace('\\', "&#92;");
    escaped.lines().collect::<Vec<_>>().join("<br>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::fake::{FakeEngine, read, template};

    fn compare(count: usize, seed: u64) -> Blind {
        let questions: Vec<_> = (0..count)
            .map(|number| Question {
                messages: vec![Message::User { content: format!("question {number}") }],
                tools: Vec::new(),
            })
            .collect();
        let mut base = FakeEngine::scripted((0..count).map(|number| format!("base {number}")));
        let mut tuned = FakeEngine::scripted((0..count).map(|number| format!("tuned {number}")));
        let engines = Engines { base: &mut base, tuned: &mut tuned };
        let blind = compare_blind(&questions, &template(), engines, BlindOptions { max_tokens: 64, seed }).unwrap();
        assert_eq!(base.prompts, tuned.prompts, "both are asked the same");
        assert!(
            base.prompts[0].ends_with("user question 0<|im_end|><|im_start|>assistant <think></think>"),
            "{}",
            base.prompts[0]
        );
        blind
    }

    #[test]
    fn the_key_tells_who_stood_where_and_the_table_does_not() {
        let Blind { table, key } = compare(40, 7);
        for (number, (line, who)) in table.lines().skip(2).zip(&key.left).enumerate() {
            let (left, right) = match who {
                Who::Base => ("base", "tuned"),
                Who::Tuned => ("tuned", "base"),
            };
            assert_eq!(line, format!("| {} | question {number} | {left} {number} | {right} {number} |", number + 1));
        }
        let of_base = key.left.iter().filter(|who| **who == Who::Base).count();
        assert!((10..=30).contains(&of_base), "{of_base} of 40");
        assert!(!table.lines().take(2).any(|line| line.contains("base")));
    }

    #[test]
    fn draws_the_same_order_from_the_same_seed() {
        assert_eq!(compare(20, 7), compare(20, 7));
        assert_ne!(compare(20, 7).key.left, compare(20, 8).key.left);
        let key = compare(3, 7).key;
        assert_eq!(serde_json::from_str::<Key>(&serde_json::to_string(&key).unwrap()).unwrap(), key);
    }

    #[test]
    fn keeps_an_answer_in_one_cell() {
        assert_eq!(cell("a | b\\\n<tool_call>&"), "a &#124; b&#92;<br>&lt;tool_call>&amp;");
        assert!(!cell(&read("a")).contains('\n'));
    }

    #[test]
    fn reads_prompts_and_conversations() {
        let text = "{\"prompt\": \"list\", \"tools\": [{}]}\n\n{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": \"u\"}]}\n";
        let questions = read_questions(text).unwrap();
        assert_eq!(questions[0].messages, [Message::User { content: "list".into() }]);
        assert_eq!((questions[0].tools.len(), questions[1].messages.len()), (1, 2));
    }

    #[test]
    fn says_which_line_is_no_question() {
        for line in [
            "no JSON",
            "{}",
            "{\"prompt\": \"a\", \"messages\": []}",
            "{\"messages\": []}",
            "{\"prompt\": \"a\", \"other\": 1}",
            "{\"messages\": [{\"role\": \"assistant\", \"content\": \"done\"}]}",
        ] {
            let error = read_questions(&format!("{{\"prompt\": \"a\"}}\n{line}\n")).unwrap_err();
            assert_eq!(error.to_string(), "reading line 2", "{line}");
        }
    }
}

//! The same rows in the forms of the trainers that people use with GPUs, each with a configuration that is ready to run. The test
//! set is in none of them: it is for the final comparison.
//!
//! Axolotl, TRL and Unsloth get the very tokens that were audited, and which of them carry loss. LLaMA-Factory and mlx-lm render by
//! themselves and cannot be told which of a conversation's turns carry loss: there each trained turn is a line of its own that ends
//! with it.

mod configuration;
mod recipe;

use serde_json::{Value, json};

pub(super) use configuration::CONFIGURATIONS;
pub(crate) use configuration::{AXOLOTL, Configuration, Filling, LLAMA_FACTORY, MLX, TRL, UNSLOTH};
pub use recipe::Recipe;

use super::render::Sample;
use super::row::{Message, Row};

/// What a label is where there is no loss.
const NO_LOSS: i64 = -100;

/// A trainer's data: where a split's file lies, and the lines that a row becomes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format {
    /// With `{split}` for the split's name.
    pub(super) path: &'static str,
    /// What the trainer calls the validation set.
    pub(super) validation: &'static str,
    pub(super) lines: fn(&Row, &[Sample]) -> Vec<Value>,
}

pub(super) const FORMATS: [Format; 6] = [
    Format { path: "formats/axolotl/{split}.jsonl", validation: "validation", lines: axolotl },
    Format { path: "formats/axolotl/tokens/{split}.jsonl", validation: "validation", lines: tokens },
    Format { path: "formats/trl/data/{split}.jsonl", validation: "validation", lines: trl },
    Format { path: "formats/unsloth/{split}.jsonl", validation: "validation", lines: tokens },
    Format { path: "formats/llama-factory/{split}.jsonl", validation: "validation", lines: llama_factory },
    Format { path: "formats/mlx/{split}.jsonl", validation: "valid", lines: mlx },
];

/// Whole conversations; each message says whether it is trained on. Arguments and schemas are texts, for tables of Arrow want the
/// same members in every line.
fn axolotl(row: &Row, _samples: &[Sample]) -> Vec<Value> {
    let mut messages = messages(&row.messages, as_text);
    for (index, message) in messages.iter_mut().enumerate() {
        message["training"] = json!(row.trained.contains(&index));
    }
    vec![json!({ "messages": messages, "tools": tools_as_text(row) })]
}

/// The very tokens, and labels that are -100 where there is no loss.
fn tokens(_row: &Row, samples: &[Sample]) -> Vec<Value> {
    let line = |sample: &Sample| {
        let labels = sample.ids.iter().zip(&sample.carries_loss);
        let labels: Vec<_> = labels.map(|(id, carries)| if *carries { i64::from(*id) } else { NO_LOSS }).collect();
        json!({ "input_ids": sample.ids, "attention_mask": vec![1; sample.ids.len()], "labels": labels })
    };
    samples.iter().map(line).collect()
}

/// The very tokens, and a mask that is 1 where there is loss.
fn trl(_row: &Row, samples: &[Sample]) -> Vec<Value> {
    let line = |sample: &Sample| {
        let mask: Vec<_> = sample.carries_loss.iter().map(|carries| u8::from(*carries)).collect();
        json!({ "input_ids": sample.ids, "completion_mask": mask })
    };
    samples.iter().map(line).collect()
}

/// One line a trained turn, for `--mask-prompt` trains on the last message.
fn mlx(row: &Row, _samples: &[Sample]) -> Vec<Value> {
    let line = |(asked, answer): (&[Message], &Message)| {
        let mut messages = messages(asked, Value::Object);
        messages.extend(self::messages(std::slice::from_ref(answer), Value::Object));
        json!({ "messages": messages, "tools": row.tools })
    };
    turns(row).map(line).collect()
}

/// ShareGPT with `function_call` and `observation`; `mask_history` trains on the last turn.
fn llama_factory(row: &Row, _samples: &[Sample]) -> Vec<Value> {
    let said = |message: &Message| match message {
        Message::System { .. } => None,
        Message::User { content } => Some(json!({ "from": "human", "value": content })),
        Message::Tool { content, .. } => Some(json!({ "from": "observation", "value": content })),
        Message::Assistant { content, tool_calls } => Some(match tool_calls.first() {
            None => json!({ "from": "gpt", "value": content }),
            Some(call) => {
                let call = json!({ "name": call.function.name, "arguments": call.function.arguments });
                json!({ "from": "function_call", "value": call.to_string() })
            }
        }),
    };
    let line = |(asked, answer): (&[Message], &Message)| {
        let system = asked.iter().find(|message| matches!(message, Message::System { .. })).map(Message::content);
        let conversations: Vec<_> = asked.iter().chain(std::iter::once(answer)).filter_map(said).collect();
        let tools: Vec<_> = row.tools.iter().map(|tool| &tool["function"]).collect();
        json!({
            "conversations": conversations,
            "system": system.unwrap_or_default(),
            "tools": serde_json::to_string(&tools).unwrap_or_default(),
        })
    };
    turns(row).map(line).collect()
}

/// Each trained turn, and all that was before it.
fn turns(row: &Row) -> impl Iterator<Item = (&[Message], &Message)> {
    row.trained.iter().map(|index| (&row.messages[..*index], &row.messages[*index]))
}

fn as_text(arguments: serde_json::Map<String, Value>) -> Value {
    Value::String(Value::Object(arguments).to_string())
}

fn messages(messages: &[Message], arguments: fn(serde_json::Map<String, Value>) -> Value) -> Vec<Value> {
    let value = |message: &Message| match message {
        Message::System { content } => json!({ "role": "system", "content": content }),
        Message::User { content } => json!({ "role": "user", "content": content }),
        Message::Tool { name, content } => json!({ "role": "tool", "name": name, "content": content }),
        Message::Assistant { content, tool_calls } => {
            let calls: Vec<_> = tool_calls
                .iter()
                .map(|call| {
                    let function = &call.function;
                    let arguments = arguments(function.arguments.clone());
                    json!({ "type": "function", "function": { "name": function.name, "arguments": arguments } })
                })
                .collect();
            let mut message = json!({ "role": "assistant", "content": content });
            if !calls.is_empty() {
                message["tool_calls"] = Value::Array(calls);
            }
            message
        }
    };
    messages.iter().map(value).collect()
}

fn tools_as_text(row: &Row) -> String {
    Value::Array(row.tools.clone()).to_string()
}

//! A training row: a conversation in the neutral form that every trainer reads (OpenAI-style messages with tool calls, arguments
//! as objects), which of its messages are trained on, and where it came from.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::sources::Licence;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Twelve hex digits, the same in every build: of the agent, its session, the prompt, and the part of the turn.
    pub id: String,
    pub ending: Ending,
    pub messages: Vec<Message>,
    /// What the model is offered, in OpenAI's form.
    pub tools: Vec<Value>,
    /// Indexes of the messages that carry loss; all of them are the assistant's.
    pub trained: Vec<usize>,
    pub source: Provenance,
}

/// What the last message of a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// A tool call.
    Call,
    /// The closing text after calls and their results.
    Answered,
    /// Text where no tool was needed.
    Text,
}

impl Ending {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Answered => "answered",
            Self::Text => "text",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    System {
        content: String,
    },
    User {
        content: String,
    },
    Assistant {
        content: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call>,
    },
    Tool {
        name: String,
        content: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    #[serde(rename = "type")]
    pub kind: CallKind,
    pub function: Function,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    Function,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    pub name: String,
    pub arguments: Map<String, Value>,
}

/// Where a row came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    pub agent: String,
    pub session: String,
    pub project: String,
    /// The prompts in the row, the one it is about last.
    pub prompts: Vec<String>,
    /// One id for each call in the row, in their order.
    pub calls: Vec<String>,
    pub source_model: Option<String>,
    pub licence: Licence,
}

impl Row {
    /// The names of the tools that the row calls, in the order of the calls.
    pub fn called(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().flat_map(Message::calls).map(|call| call.function.name.as_str())
    }

    /// The calls that carry loss.
    pub fn trained_calls(&self) -> impl Iterator<Item = &Call> {
        self.trained.iter().flat_map(|index| self.messages[*index].calls())
    }

    /// The texts that carry loss; what is empty is none.
    pub fn trained_texts(&self) -> impl Iterator<Item = &str> {
        self.trained.iter().map(|index| self.messages[*index].content()).filter(|text| !text.is_empty())
    }

    /// Lets the row end with the last message that carries loss, for what follows teaches nothing. Without any such message there is
    /// no row.
    #[must_use]
    pub fn ends_where_trained(mut self) -> Option<Self> {
        let last = *self.trained.last()?;
        self.messages.truncate(last + 1);
        let calls = self.messages.iter().map(|message| message.calls().len()).sum();
        self.source.calls.truncate(calls);
        self.ending = if !self.messages[last].calls().is_empty() {
            Ending::Call
        } else if matches!(self.messages[last.saturating_sub(1)], Message::Tool { .. }) {
            Ending::Answered
        } else {
            Ending::Text
        };
        Some(self)
    }

    /// What a person asked last.
    pub fn prompt(&self) -> &str {
        self.messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::User { content } => Some(content.as_str()),
                _ => None,
            })
            .unwrap_or_default()
    }
}

impl Message {
    pub fn call(name: &str, arguments: Map<String, Value>) -> Self {
        let function = Function { name: name.to_owned(), arguments };
        Self::Assistant { content: String::new(), tool_calls: vec![Call { kind: CallKind::Function, function }] }
    }

    pub const fn answer(content: String) -> Self {
        Self::Assistant { content, tool_calls: Vec::new() }
    }

    pub const fn is_assistant(&self) -> bool {
        matches!(self, Self::Assistant { .. })
    }

    pub fn content(&self) -> &str {
        match self {
            Self::System { content }
            | Self::User { content }
            | Self::Assistant { content, .. }
            | Self::Tool { content, .. } => content,
        }
    }

    pub fn calls(&self) -> &[Call] {
        match self {
            Self::Assistant { tool_calls, .. } => tool_calls,
            _ => &[],
        }
    }

    /// The arguments of its calls.
    pub fn arguments(&self) -> impl Iterator<Item = &Value> {
        self.calls().iter().flat_map(|call| call.function.arguments.values())
    }

    /// What it claims about the world: its text, and the commands that it runs. Files that it writes claim nothing.
    pub fn claims(&self) -> impl Iterator<Item = &str> {
        let commands = self.calls().iter().filter_map(|call| call.function.arguments.get("command")?.as_str());
        commands.chain([self.content()])
    }
}

/// Names the turn that a row is about, or a part of it.
pub fn turn_of(row: &Row) -> u64 {
    draw(0, &[&row.source.agent, &row.source.session, row.source.prompts.last().map_or("", String::as_str)])
}

/// The id of the row that a part of a turn becomes.
pub fn id_of(agent: &str, session: &str, prompt: &str, part: usize) -> String {
    const KEPT_BYTES: usize = 6;
    let digest = Sha256::digest(format!("{agent}\n{session}\n{prompt}\n{part}"));
    hex(&digest[..KEPT_BYTES])
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A number that looks random and is the same for the same seed and words, on every machine.
pub fn draw(seed: u64, words: &[&str]) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(seed.to_le_bytes());
    for word in words {
        hasher.update((word.len() as u64).to_le_bytes());
        hasher.update(word);
    }
    let digest = hasher.finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes"))
}

/// The same as a share between zero and one.
pub fn draw_share(seed: u64, words: &[&str]) -> f64 {
    (draw(seed, words) >> 11) as f64 / (1_u64 << 53) as f64
}

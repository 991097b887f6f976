//! What the tests of this module share: an engine that answers from a script, and rows for it.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::{Answer, Generate};
use crate::dataset::Licence;
use crate::dataset::render::{Base, ChatTemplate};
use crate::dataset::row::{Ending, Message, Provenance, Row};

/// Answers from a script, whatever it is asked, and keeps what it was asked.
#[derive(Debug, Default)]
pub(super) struct FakeEngine {
    answers: VecDeque<Answer>,
    pub(super) prompts: Vec<String>,
}

impl FakeEngine {
    pub(super) fn scripted<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        let answer = |text: T| Answer { text: text.into(), stopped: true, tokens: 7 };
        Self { answers: texts.into_iter().map(answer).collect(), prompts: Vec::new() }
    }

    /// How many answers of the script were not asked for.
    pub(super) fn left(&self) -> usize {
        self.answers.len()
    }
}

impl Generate for FakeEngine {
    fn generate(&mut self, prompt: &str, _max_tokens: usize) -> anyhow::Result<Answer> {
        self.prompts.push(prompt.to_owned());
        self.answers.pop_front().ok_or_else(|| anyhow::anyhow!("the script has no answer {}", self.prompts.len()))
    }
}

const TEMPLATE: &str = "\
{% for tool in tools %}<tools>{{ tool.function.name }}</tools>{% endfor %}\
{% for message in messages %}<|im_start|>{{ message.role }} {{ message.content }}\
{% for call in message.tool_calls %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}<|im_end|>{% endfor %}\
{% if add_generation_prompt %}<|im_start|>assistant {% if enable_thinking is false %}<think></think>{% endif %}{% endif %}{# <tool_response> #}";

pub(super) fn template() -> ChatTemplate {
    ChatTemplate::new(TEMPLATE.into()).unwrap()
}

/// A base model of that template, with a tokenizer that knows one word.
pub(super) fn base() -> Base {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"word": 0}, "unk_token": "word"}});
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(folder.path().join("chat_template.jinja"), TEMPLATE).unwrap();
    Base::load(folder.path()).unwrap()
}

pub(super) fn members(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A call as a model writes it.
pub(super) fn call(name: &str, arguments: &Value) -> String {
    format!("<tool_call>\n{}\n</tool_call>", json!({"name": name, "arguments": arguments}))
}

pub(super) fn read(path: &str) -> String {
    call("Read", &json!({"file_path": path}))
}

pub(super) fn tools() -> Vec<Value> {
    let tool = |name: &str, properties: Value, required: Value| {
        let parameters = json!({"type": "object", "properties": properties, "required": required});
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    };
    let path = json!({"file_path": {"type": "string"}, "limit": {"type": "integer"}});
    vec![
        tool("Read", path, json!(["file_path"])),
        tool("Bash", json!({"command": {"type": "string"}}), json!(["command"])),
        tool("List", json!({}), json!([])),
    ]
}

/// Asked for `src/a.rs` and `src/b.rs`, reads both and answers: three trained turns.
pub(super) fn row(id: &str) -> Row {
    let result = |content: &str| Message::Tool { name: "Read".into(), content: content.into() };
    let messages = vec![
        Message::User { content: "read src/a.rs and src/b.rs".into() },
        Message::call("Read", members(&json!({"file_path": "src/a.rs"}))),
        result("this is a"),
        Message::call("Read", members(&json!({"file_path": "src/b.rs"}))),
        result("this is b"),
        Message::answer("Both are read.".into()),
    ];
    let source = Provenance {
        agent: String::new(),
        session: String::new(),
        project: String::new(),
        prompts: Vec::new(),
        calls: Vec::new(),
        source_model: None,
        licence: Licence::Open,
    };
    Row { id: id.into(), ending: Ending::Answered, messages, tools: tools(), trained: vec![1, 3, 5], source }
}

/// What the recorded agent said in that row.
pub(super) fn recorded() -> [String; 3] {
    [read("src/a.rs"), read("src/b.rs"), "Both are read.".into()]
}

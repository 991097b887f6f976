//! Gemini CLI's chats: one JSON object a line, or in older versions one document. A message is written again whenever it
//! grows, so each call is told once, when it has ended. Its hooks send no ids; what they send is told alike here, so that
//! both find each other by content.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::emit::{Emitter, Moment, Told, hash_of, time};
use super::json::{Text, value_of};
use super::places::Noted;
use crate::event::{
    Capped, Key, MAX_OUTPUT_BYTES, Outcome, Subagent, ToolCall, bounded_id, cap_input, output_of_tool,
    without_gemini_context, without_nul,
};

#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(rename = "sessionId", borrow, default)]
    session_id: Text<'a>,
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    messages: Option<&'a RawValue>,
    #[serde(rename = "$set", borrow, default)]
    set: Option<&'a RawValue>,
    #[serde(rename = "$rewindTo", borrow, default)]
    rewind_to: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    timestamp: Text<'a>,
    #[serde(rename = "type", borrow, default)]
    sort: Text<'a>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(rename = "toolCalls", borrow, default)]
    tool_calls: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Set<'a> {
    #[serde(borrow, default)]
    messages: Option<&'a RawValue>,
}

#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The session's folder, from the file that Gemini keeps above its chats.
    folder: Option<String>,
    /// A subagent's chat lies in a folder that is called like its session.
    parent_session: Option<String>,
    session: Option<String>,
    subagent: Option<Subagent>,
    model: Option<String>,
    prompt: Option<String>,
    answer: Option<(String, DateTime<Utc>)>,
    /// Messages and calls that were told.
    told: HashSet<u64>,
    unfinished: HashSet<u64>,
}

impl Reader {
    pub(super) fn of_file(path: &Path) -> Self {
        let folder = path.parent().unwrap_or(path);
        let (chats, parent_session) = match folder.file_name().and_then(|name| name.to_str()) {
            Some("chats") | None => (folder, None),
            Some(name) => (folder.parent().unwrap_or(folder), Some(name.to_owned())),
        };
        let root = chats.parent().and_then(|above| std::fs::read_to_string(above.join(".project_root")).ok());
        let folder = root.map(|root| root.trim().to_owned()).filter(|root| !root.is_empty());
        Self { folder, parent_session, ..Self::default() }
    }

    pub(super) fn line(&mut self, line: &Line<'_>, emit: &mut Emitter<'_, '_>) {
        if let Some(session) = line.session_id.get() {
            self.session = Some(session.to_owned());
            if line.kind.is("subagent") {
                self.subagent = Some(Subagent { id: bounded_id(without_nul(session)), kind: None });
                self.session = self.parent_session.clone().or(self.session.take());
            }
        }
        if let Some(messages) = line.messages {
            return self.messages(messages, emit);
        }
        if let Some(set) = line.set {
            let set: Set<'_> = serde_json::from_str(set.get()).unwrap_or_default();
            return match set.messages {
                Some(messages) => self.messages(messages, emit),
                None => emit.skip("the client's own notes"),
            };
        }
        if line.rewind_to.is_some() {
            return emit.skip("the client's own notes");
        }
        if line.session_id.get().is_none() {
            self.message(line, emit);
        }
    }

    pub(super) fn end(mut self, emit: &mut Emitter<'_, '_>) {
        emit.report.unfinished_calls += self.unfinished.len() as u64;
        self.close_turn(emit);
    }

    fn messages(&mut self, messages: &RawValue, emit: &mut Emitter<'_, '_>) {
        let messages: Vec<&RawValue> = serde_json::from_str(messages.get()).unwrap_or_default();
        for message in messages {
            match serde_json::from_str::<Line<'_>>(message.get()) {
                Ok(message) => self.message(&message, emit),
                Err(_) => emit.skip("a message that is not understood"),
            }
        }
    }

    fn message(&mut self, line: &Line<'_>, emit: &mut Emitter<'_, '_>) {
        if self.session.is_none() {
            return emit.skip("before the session's first line");
        }
        let Some(at) = time(line.timestamp.get()) else { return emit.skip("no time") };
        match line.sort.get().unwrap_or_default() {
            "user" => self.user(line, at, emit),
            "gemini" => self.gemini(line, at, emit),
            "info" | "error" | "warning" => emit.skip("the client's own notes"),
            "" => emit.skip("no type"),
            other => emit.skip(&format!("unknown type `{}`", other.chars().take(40).collect::<String>())),
        }
    }

    fn user(&mut self, line: &Line<'_>, at: DateTime<Utc>, emit: &mut Emitter<'_, '_>) {
        let content = line.content.and_then(value_of).unwrap_or_default();
        let text = text_of(&content);
        if text.trim_start().starts_with("<session_context>") {
            if self.folder.is_none() {
                self.folder = folder_in(&text);
            }
            return emit.skip("injected text");
        }
        let text = without_gemini_context(&text);
        let Some(id) = line.id.get().filter(|_| !text.trim().is_empty()) else {
            return emit.skip("what tools gave back");
        };
        if !self.told.insert(hash_of(id)) {
            return emit.skip("told before");
        }
        if self.subagent.is_some() {
            return emit.skip("a subagent's task");
        }
        self.close_turn(emit);
        let told = Told { key: id, own_id: id, text, source: None };
        if let Some(key) = emit.prompt(&self.moment(at), &told) {
            self.prompt = Some(key);
        }
    }

    fn gemini(&mut self, line: &Line<'_>, at: DateTime<Utc>, emit: &mut Emitter<'_, '_>) {
        self.model = line.model.to_owned().or(self.model.take());
        let id = line.id.get().unwrap_or_default();
        let text = line.content.and_then(value_of).map(|content| text_of(&content)).unwrap_or_default();
        if !text.trim().is_empty() && self.told.insert(hash_of(("said", id))) {
            // The hook gives everything that was said in the turn.
            let said = self.answer.take().map(|(said, _)| said + "\n").unwrap_or_default();
            self.answer = Some((said + &text, at));
        }
        let calls = line.tool_calls.and_then(value_of).unwrap_or_default();
        for call in calls.as_array().into_iter().flatten() {
            self.call(call, at, emit);
        }
    }

    fn call(&mut self, call: &Value, at: DateTime<Utc>, emit: &mut Emitter<'_, '_>) {
        let text = |name: &str| call.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (Some(id), Some(name)) = (text("id"), text("name")) else {
            return emit.skip("a call that is not understood");
        };
        let hash = hash_of(("call", id));
        let status = text("status").unwrap_or_default();
        if self.told.contains(&hash) {
            return;
        }
        if !matches!(status, "success" | "error" | "cancelled") {
            self.unfinished.insert(hash);
            return;
        }
        self.unfinished.remove(&hash);
        self.told.insert(hash);
        let at = time(text("timestamp")).unwrap_or(at);
        let mut input = call.get("args").cloned().unwrap_or_else(|| serde_json::json!({}));
        let input_cut = cap_input(&mut input);
        let given = given_back(call.get("result").unwrap_or(&Value::Null));
        let shown = text("resultDisplay").map(str::to_owned);
        let outcome = outcome_of(status, given.as_ref(), shown.as_deref());
        let output = given.map(|given| given.text).or(shown).map(Value::String);
        let output = output.as_ref().and_then(|output| output_of_tool(name, output));
        let output_cut = output.as_ref().and_then(|output| output.preview.truncated_at_bytes);
        let (output_preview, output) = output.map(|output| (output.preview.text, output.whole)).unzip();
        let tool_call = ToolCall {
            key: Key::Given(bounded_id(without_nul(id))),
            prompt_id: self.prompt.clone(),
            tool_name: bounded_id(without_nul(name)),
            input,
            output_preview,
            output: output.flatten(),
            outcome,
            duration_ms: None,
            subagent: self.subagent.clone(),
            commit_sha: None,
            truncated_at_bytes: input_cut.max(output_cut),
        };
        emit.call(&self.moment(at), tool_call);
    }

    fn close_turn(&mut self, emit: &mut Emitter<'_, '_>) {
        let Some((answer, at)) = self.answer.take() else { return };
        if self.subagent.is_none() {
            emit.answer(&self.moment(at), self.prompt.clone(), &answer);
        }
    }

    fn moment(&self, at: DateTime<Utc>) -> Moment<'_> {
        Moment {
            session: Cow::Borrowed(self.session.as_deref().unwrap_or_default()),
            at,
            folder: self.folder.as_deref().map(Cow::Borrowed),
            noted: Noted::default(),
            model: self.model.clone(),
        }
    }
}

struct GivenBack {
    text: String,
    is_error: bool,
}

/// What the model was given: the `response` of a function's response, whose member says whether it is an error.
fn given_back(result: &Value) -> Option<GivenBack> {
    let parts = result.as_array()?;
    let responses = parts.iter().filter_map(|part| part.pointer("/functionResponse/response"));
    let mut found: Option<GivenBack> = None;
    for response in responses {
        let part = match (response.get("output"), response.get("error")) {
            (Some(output), _) => GivenBack { text: plain(output), is_error: false },
            (None, Some(error)) => GivenBack { text: plain(error), is_error: true },
            (None, None) => GivenBack { text: plain(response), is_error: false },
        };
        found = Some(match found {
            None => part,
            Some(before) => GivenBack {
                text: format!("{}\n{}", before.text, part.text),
                is_error: before.is_error || part.is_error,
            },
        });
    }
    found
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A command that fails counts as a success of the tool; its code stands in what the model was given.
fn outcome_of(status: &str, given: Option<&GivenBack>, shown: Option<&str>) -> Outcome {
    let text = given.map(|given| given.text.as_str());
    let code = text.and_then(exit_code).filter(|code| *code != 0);
    let has_failed = status != "success" || given.is_some_and(|given| given.is_error) || code.is_some();
    if !has_failed {
        return Outcome::Succeeded;
    }
    let error = text.or(shown).map(str::trim).filter(|text| !text.is_empty()).unwrap_or(status);
    Outcome::Failed { error: Capped::new(error, MAX_OUTPUT_BYTES).text }
}

fn exit_code(text: &str) -> Option<i64> {
    text.lines().find_map(|line| line.strip_prefix("Exit Code: "))?.trim().parse().ok()
}

/// The text of a content: a string, a part or parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect(),
        Value::Object(part) => part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

/// The first folder that Gemini tells its model to work in.
fn folder_in(context: &str) -> Option<String> {
    let after = context.split_once("Workspace Directories:**").or(context.split_once("Workspace Directories:"))?.1;
    let line = after.lines().find_map(|line| line.trim().strip_prefix("- "))?;
    Some(line.trim().to_owned()).filter(|folder| folder.starts_with('/') || folder.contains(":\\"))
}

#[cfg(test)]
mod tests;

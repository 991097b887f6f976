//! Codex' rollouts. Content stands in `response_item` lines; which of it a person wrote, and how a command ended, in `event_msg`
//! lines beside them. Prompts and calls get the keys and the form that Codex' hooks give them.

mod line;
mod tools;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::emit::{Emitter, Moment, Told, hash_of, time};
use super::json::value_of;
use super::places::Noted;
use crate::event::{
    Capped, Happening, HappeningKind, Key, MAX_OUTPUT_BYTES, Outcome, Subagent, ToolCall, bounded_id, cap_input,
    output_of_tool, without_nul,
};
use line::{Git, PassedThrough, Payload, Span};
use tools::{Ending, call_of, ending_of};

pub(super) use line::Line;

/// What Codex writes as a user's message although no person sent it.
const INJECTED: [&str; 7] = [
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<skill>",
    "<user_shell_command>",
    "# AGENTS.md instructions",
];
/// Line types that are known and give no event by themselves.
const BOOKKEEPING: [&str; 8] = [
    "dynamic_tools_updated",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
    "token_usage_record",
    "world_state",
    "security_risk_score",
    "realtime_item",
    "compacted",
];

#[derive(Default)]
pub(super) struct Reader {
    session: Option<String>,
    subagent: Option<Subagent>,
    folder: Option<String>,
    noted: Noted,
    model: Option<String>,
    turn: Option<String>,
    pending: HashMap<String, Pending>,
    /// Endings that came before their call's output.
    endings: HashMap<String, Ending>,
    finished: HashSet<u64>,
    lines: u64,
    passed: u64,
}

struct Pending {
    line: u64,
    moment: Moment<'static>,
    turn: Option<String>,
    tool_name: String,
    input: Value,
    truncated_at_bytes: Option<i64>,
    /// What the model was given back, where the command went on in the background.
    ending: Option<Ending>,
}

impl Reader {
    pub(super) fn line(&mut self, line: &Line<'_>, emit: &mut Emitter<'_, '_>) {
        self.lines += 1;
        let payload: Payload<'_> =
            line.payload.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let kind = line.kind.get().unwrap_or_default();
        if kind == "session_meta" {
            return self.session_meta(&payload, emit);
        }
        if self.session.is_none() {
            return emit.skip("before the session's first line");
        }
        let Some(at) = time(line.timestamp.get()) else { return emit.skip("no time") };
        match kind {
            "turn_context" => {
                self.begin_turn(payload.turn_id.to_owned());
                self.folder = payload.cwd.to_owned().or(self.folder.take());
                self.model = payload.model.to_owned().or(self.model.take());
            }
            "response_item" => self.response_item(&payload, at, emit),
            "event_msg" => self.event(&payload, at, emit),
            "" => emit.skip("no type"),
            kind if BOOKKEEPING.contains(&kind) => emit.skip("the client's own notes"),
            kind => emit.skip(&format!("unknown type `{}`", kind.chars().take(40).collect::<String>())),
        }
    }

    pub(super) fn end(mut self, emit: &mut Emitter<'_, '_>) {
        let mut pending: Vec<_> = std::mem::take(&mut self.pending).into_iter().collect();
        pending.sort_by_key(|(_, call)| call.line);
        for (id, mut call) in pending {
            if let Some(ending) = call.ending.take() {
                self.emit_call(&id, call, ending, emit);
            } else if self.passed > call.line {
                let output = Some("interrupted: the transcript holds no result".to_owned());
                self.emit_call(&id, call, Ending { success: Some(false), output, ..Ending::default() }, emit);
            } else {
                emit.report.unfinished_calls += 1;
            }
        }
    }

    fn session_meta(&mut self, payload: &Payload<'_>, emit: &mut Emitter<'_, '_>) {
        let Some(id) = payload.id.get().or(payload.session_id.get()) else { return emit.skip("no session") };
        // A forked session begins with its own and then repeats that of the session it came from.
        if self.session.is_some() {
            return emit.skip("copied from another session");
        }
        let session = payload.session_id.get().unwrap_or(id);
        if session != id {
            let kind = payload.agent_role.to_owned();
            self.subagent = Some(Subagent { id: bounded_id(without_nul(id)), kind });
        }
        self.session = Some(session.to_owned());
        self.folder = payload.cwd.to_owned();
        let git: Git<'_> = payload.git.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        self.noted = Noted {
            remote_url: git.repository_url.to_owned(),
            branch: git.branch.to_owned(),
            head: git.commit_hash.to_owned(),
        };
    }

    fn begin_turn(&mut self, id: Option<String>) {
        if id.is_some() && id != self.turn {
            self.turn = id.map(|id| bounded_id(without_nul(&id)));
            self.passed = self.lines;
        }
    }

    fn response_item(&mut self, payload: &Payload<'_>, at: DateTime<Utc>, emit: &mut Emitter<'_, '_>) {
        match payload.kind.get().unwrap_or_default() {
            "function_call" | "custom_tool_call" | "local_shell_call" => self.call(payload, at, emit),
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                self.output(payload, at, emit);
            }
            "message" | "reasoning" | "agent_message" => emit.skip("told by an event"),
            "web_search_call"
            | "image_generation_call"
            | "tool_search_call"
            | "tool_search_output"
            | "compaction"
            | "compaction_summary"
            | "context_compaction"
            | "ghost_snapshot"
            | "other" => {
                emit.skip("the client's own notes");
            }
            other => emit.skip(&format!("unknown item `{}`", other.chars().take(40).collect::<String>())),
        }
    }

    fn call(&mut self, payload: &Payload<'_>, at: DateTime<Utc>, emit: &mut Emitter<'_, '_>) {
        let id = payload.call_id.get().or(payload.id.get());
        let (Some(id), Some((tool_name, mut input))) = (id, call_of(payload)) else {
            return emit.skip("a call that is not understood");
        };
        if self.finished.contains(&hash_of(id)) || self.pending.contains_key(id) {
            return emit.skip("told before");
        }
        let truncated_at_bytes = cap_input(&mut input);
        let passed_through: PassedThrough<'_> =
            payload.passed_through.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let turn = passed_through.turn_id.get().map(|id| bounded_id(without_nul(id))).or_else(|| self.turn.clone());
        let pending = Pending {
            line: self.lines,
            moment: self.moment(at).into_owned(),
            turn,
            tool_name: bounded_id(without_nul(&tool_name)),
            input,
            truncated_at_bytes,
            ending: None,
        };
        self.pending.insert(id.to_owned(), pending);
    }

    fn output(&mut self, payload: &Payload<'_>, at: DateTime<Utc>, emit: &mut Emitter<'_, '_>) {
        let Some(id) = payload.call_id.get() else { return emit.skip("a result without its call") };
        let Some(mut call) = self.pending.remove(id) else {
            let was_told = self.finished.contains(&hash_of(id));
            return emit.skip(if was_told { "told before" } else { "a result without its call" });
        };
        let told = ending_of(&payload.output.and_then(value_of).unwrap_or_default());
        let ending = match self.endings.remove(id) {
            Some(known) => known.or(told),
            None => told,
        };
        call.moment.at = at;
        // Only a command is told of again when it ends.
        if ending.is_running && call.tool_name == "Bash" {
            call.ending = Some(ending);
            self.pending.insert(id.to_owned(), call);
        } else {
            self.emit_call(id, call, Ending { is_running: false, ..ending }, emit);
        }
    }

    fn event(&mut self, payload: &Payload<'_>, at: DateTime<Utc>, emit: &mut Emitter<'_, '_>) {
        match payload.kind.get().unwrap_or_default() {
            "task_started" | "turn_started" => self.begin_turn(payload.turn_id.to_owned()),
            "task_complete" | "turn_complete" => {
                let turn = payload.turn_id.get().map(|id| bounded_id(without_nul(id))).or_else(|| self.turn.clone());
                match (payload.last_agent_message.get(), self.subagent.is_some()) {
                    (Some(answer), false) => emit.answer(&self.moment(at), turn, answer),
                    _ => emit.skip("the client's own notes"),
                }
            }
            "turn_aborted" => {
                self.passed = self.lines;
                emit.skip("interruption");
            }
            "user_message" => self.prompt(payload.message.get(), payload, at, emit),
            "item_completed" => {
                let item: Payload<'_> =
                    payload.item.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                match item.kind.get().unwrap_or_default() {
                    "UserMessage" => {
                        let text = item.content.and_then(value_of).map(|content| text_of(&content));
                        self.prompt(text.as_deref(), payload, at, emit);
                    }
                    _ => self.ended(item.id.get(), &item, at, emit),
                }
            }
            "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" => {
                self.ended(payload.call_id.get(), payload, at, emit);
            }
            _ => emit.skip("the client's own notes"),
        }
    }

    fn prompt(&mut self, text: Option<&str>, payload: &Payload<'_>, at: DateTime<Utc>, emit: &mut Emitter<'_, '_>) {
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return emit.skip("no text") };
        if self.subagent.is_some() {
            return emit.skip("a subagent's task");
        }
        if INJECTED.iter().any(|mark| text.trim_start().starts_with(mark)) {
            return emit.skip("injected text");
        }
        self.begin_turn(payload.turn_id.to_owned());
        // Versions without turns: their hooks, if any, had no id either.
        let own_id = format!("at:{}", at.timestamp_micros());
        let key = self.turn.clone().unwrap_or_else(|| own_id.clone());
        let told = Told { key: &key, own_id: &own_id, text, source: None };
        emit.prompt(&self.moment(at), &told);
        self.passed = self.lines;
    }

    /// How a call ended, from a line of its own, which may come before its output or, from the background, long after.
    fn ended(&mut self, id: Option<&str>, payload: &Payload<'_>, at: DateTime<Utc>, emit: &mut Emitter<'_, '_>) {
        let Some(id) = id.filter(|id| !self.finished.contains(&hash_of(*id))) else {
            return emit.skip("the client's own notes");
        };
        let ending = ending_of_event(payload);
        match self.pending.remove(id) {
            Some(mut call) if call.ending.is_some() => {
                let told = call.ending.take().unwrap_or_default();
                call.moment.at = at;
                self.emit_call(id, call, Ending { is_running: false, ..ending.or(told) }, emit);
            }
            Some(call) => {
                self.pending.insert(id.to_owned(), call);
                self.endings.insert(id.to_owned(), ending);
            }
            None => emit.skip("the client's own notes"),
        }
    }

    fn emit_call(&mut self, id: &str, call: Pending, ending: Ending, emit: &mut Emitter<'_, '_>) {
        self.finished.insert(hash_of(id));
        let id = bounded_id(without_nul(id));
        let output = ending.output.unwrap_or_default();
        if ending.is_refused {
            let refusal = Happening {
                key: format!("permission_denied:{id}"),
                kind: HappeningKind::PermissionDenied,
                prompt_id: call.turn,
                subject: Some(call.tool_name),
                text: Some(Capped::new(&output, MAX_OUTPUT_BYTES)),
                details: json!({ "tool_use_id": id, "input": call.input }),
            };
            return emit.happening(&call.moment, refusal);
        }
        let outcome = match (ending.exit_code, ending.success) {
            (Some(0) | None, Some(true) | None) if !ending.is_running => Outcome::Succeeded,
            _ if ending.is_running => Outcome::Assumed,
            (code, _) => {
                let head = code.map(|code| format!("Exit code {code}\n")).unwrap_or_default();
                let error = format!("{head}{output}");
                let error =
                    if error.trim().is_empty() { "the tool failed without a message" } else { error.trim_end() };
                Outcome::Failed { error: Capped::new(error, MAX_OUTPUT_BYTES).text }
            }
        };
        let output = output_of_tool(&call.tool_name, &Value::String(output));
        let output_cut = output.as_ref().and_then(|output| output.preview.truncated_at_bytes);
        let (output_preview, output) = output.map(|output| (output.preview.text, output.whole)).unzip();
        let tool_call = ToolCall {
            key: Key::Given(id),
            prompt_id: call.turn,
            tool_name: call.tool_name,
            input: call.input,
            output_preview,
            output: output.flatten(),
            outcome,
            duration_ms: ending.duration_ms.filter(|ms| *ms >= 0),
            subagent: self.subagent.clone(),
            commit_sha: None,
            truncated_at_bytes: call.truncated_at_bytes.max(output_cut),
        };
        emit.call(&call.moment, tool_call);
    }

    fn moment(&self, at: DateTime<Utc>) -> Moment<'_> {
        Moment {
            session: Cow::Borrowed(self.session.as_deref().unwrap_or_default()),
            at,
            folder: self.folder.as_deref().map(Cow::Borrowed),
            noted: self.noted.clone(),
            model: self.model.clone(),
        }
    }
}

fn ending_of_event(payload: &Payload<'_>) -> Ending {
    let span: Span = payload.duration.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let printed = [payload.stdout.get(), payload.stderr.get()].into_iter().flatten().collect::<Vec<_>>().join("\n");
    let status = payload.status.get();
    Ending {
        exit_code: payload.exit_code.0.map(|code| code as i64),
        success: payload.success.map(|success| success.0).or((status == Some("failed")).then_some(false)),
        output: payload.aggregated_output.to_owned().or((!printed.is_empty()).then_some(printed)),
        duration_ms: span.ms(),
        is_running: false,
        is_refused: status == Some("declined"),
    }
}

fn text_of(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;

//! Claude Code's transcripts: lines as they were written, calls paired with their results by id, prompts told from all else that
//! stands in user lines. The keys are those that its hooks send.

mod line;
mod results;
mod typed;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::emit::{Emitter, Moment, Told, hash_of, time};
use super::json::value_of;
use super::places::Noted;
use crate::event::{
    Capped, Happening, HappeningKind, MAX_PROMPT_BYTES, Outcome, Subagent, bounded_id, cap_input, without_nul,
};
use crate::store::QUEUED;
use line::{Attachment, BOOKKEEPING, Block, Compaction, Message, blocks, part};
use results::happened_to;
pub(in crate::transcripts) use typed::typed_by_person;
use typed::{Typed, compact_summary, typed};

pub(super) use line::Line;

/// What is read of one file, and what waits for later lines.
#[derive(Default)]
pub(super) struct Reader {
    /// The kind of the subagent whose file this is, from the file beside it.
    subagent_kind: Option<String>,
    is_subagent_file: bool,
    pending: HashMap<String, Pending>,
    finished: HashSet<u64>,
    turns: HashMap<String, Turn>,
    command: Option<SlashCommand>,
    subagents: HashSet<u64>,
    compaction_trigger: Option<String>,
    lines: u64,
}

/// A call that waits for its result.
struct Pending {
    line: u64,
    moment: Moment<'static>,
    tool_name: String,
    input: Value,
    truncated_at_bytes: Option<i64>,
    prompt_id: Option<String>,
    subagent: Option<Subagent>,
}

/// Where a session stands.
#[derive(Default)]
struct Turn {
    /// The key of the latest prompt.
    prompt: Option<String>,
    answer: Option<Answer>,
    model: Option<String>,
    /// The line of the latest sign that what was before it is over: a prompt or an interruption.
    passed: u64,
}

struct Answer {
    message_id: String,
    subagent: Option<Subagent>,
    text: String,
    moment: Moment<'static>,
}

struct SlashCommand {
    uuid: String,
    text: String,
    key: String,
    moment: Moment<'static>,
}

impl Reader {
    pub(super) fn of_session() -> Self {
        Self::default()
    }

    pub(super) fn of_subagent(kind: Option<String>) -> Self {
        Self { subagent_kind: kind, is_subagent_file: true, ..Self::default() }
    }

    pub(super) fn line(&mut self, line: &Line<'_>, emit: &mut Emitter<'_, '_>) {
        self.lines += 1;
        let kind = line.kind.get().unwrap_or_default();
        if kind == "system" {
            let compaction: Compaction<'_> = part(line.compact_metadata);
            self.compaction_trigger = compaction.trigger.to_owned().or(self.compaction_trigger.take());
        }
        if !matches!(kind, "user" | "assistant" | "attachment") {
            return match kind {
                "" => emit.skip("no type"),
                kind if BOOKKEEPING.contains(&kind) => emit.skip("the client's own notes"),
                kind => emit.skip(&format!("unknown type `{}`", kind.chars().take(40).collect::<String>())),
            };
        }
        if line.forked_from.0 {
            return emit.skip("copied from another session");
        }
        let Some(session) = line.session_id.get() else { return emit.skip("no session") };
        let Some(at) = time(line.timestamp.get()) else { return emit.skip("no time") };
        let model = self.turns.get(session).and_then(|turn| turn.model.clone());
        let moment = Moment {
            session: Cow::Borrowed(session),
            at,
            folder: line.cwd.get().map(Cow::Borrowed),
            noted: Noted { branch: line.git_branch.to_owned(), ..Noted::default() },
            model,
        };
        match kind {
            "user" => self.user(line, &moment, emit),
            "assistant" => self.assistant(line, moment, emit),
            _ => Self::attachment(line, &moment, emit),
        }
    }

    /// What is left when the file ends: closing answers, and calls whose result never came.
    pub(super) fn end(mut self, emit: &mut Emitter<'_, '_>) {
        if self.command.take().is_some() {
            emit.skip("slash or local command");
        }
        let mut pending: Vec<_> = std::mem::take(&mut self.pending).into_iter().collect();
        pending.sort_by_key(|(_, call)| call.line);
        for (id, call) in pending {
            let passed = self.turns.get(&*call.moment.session).map_or(0, |turn| turn.passed);
            if passed < call.line {
                emit.report.unfinished_calls += 1;
                continue;
            }
            let error = "interrupted: the transcript holds no result".to_owned();
            let moment = call.moment.clone();
            emit.call(&moment, call.finished(&id, None, Outcome::Failed { error }));
        }
        let sessions: Vec<String> = self.turns.keys().cloned().collect();
        for session in sessions {
            self.close_turn(&session, emit);
        }
    }

    fn user(&mut self, line: &Line<'_>, moment: &Moment<'_>, emit: &mut Emitter<'_, '_>) {
        let message: Message<'_> = part(line.message);
        let blocks = blocks(message.content);
        self.note_subagent(line, moment, emit);
        let has_results = blocks.iter().any(|block| block.kind.is("tool_result"));
        if has_results {
            self.results(line, &blocks, moment, emit);
        }
        let texts = || blocks.iter().filter(|block| block.kind.is("text")).filter_map(|block| block.text.get());
        if line.is_compact_summary.0 {
            return self.compacted(&texts().collect::<Vec<_>>().join("\n"), line, moment, emit);
        }
        if line.is_meta.0 {
            return self.expansion(line, emit);
        }
        let typed = typed(texts());
        match typed {
            Typed::Interruption => {
                self.turn(&moment.session).passed = self.lines;
                self.turn(&moment.session).answer = None;
                emit.skip("interruption");
            }
            // Beside a result, text is what Claude Code adds to it.
            _ if has_results => {}
            _ if line.is_sidechain.0 || self.is_subagent_file => {
                if let Some(id) = line.prompt_id.get() {
                    self.turn(&moment.session).prompt = Some(bounded_id(without_nul(id)));
                }
                emit.skip("a subagent's task");
            }
            Typed::Prompt(text) => self.prompt(&text, line, moment, emit),
            Typed::SlashCommand(text) => {
                self.drop_command(emit);
                let uuid = line.uuid.to_owned().unwrap_or_default();
                let key = line.prompt_id.to_owned().unwrap_or_else(|| uuid.clone());
                self.command = Some(SlashCommand { uuid, text, key, moment: moment.clone().into_owned() });
            }
            Typed::LocalCommand => {
                self.drop_command(emit);
                emit.skip("slash or local command");
            }
            Typed::Injected => emit.skip("injected text"),
        }
    }

    fn prompt(&mut self, text: &str, line: &Line<'_>, moment: &Moment<'_>, emit: &mut Emitter<'_, '_>) {
        self.drop_command(emit);
        let Some(uuid) = line.uuid.get().or(line.prompt_id.get()) else { return emit.skip("no id") };
        let told = Told { key: line.prompt_id.get().unwrap_or(uuid), own_id: uuid, text, source: None };
        self.begin_turn(moment, &told, emit);
    }

    fn begin_turn(&mut self, moment: &Moment<'_>, told: &Told<'_>, emit: &mut Emitter<'_, '_>) {
        self.close_turn(&moment.session, emit);
        if let Some(key) = emit.prompt(moment, told) {
            let passed = self.lines;
            let turn = self.turn(&moment.session);
            turn.prompt = Some(key);
            turn.passed = passed;
        }
    }

    /// A line that Claude Code wrote for the model: the text of a slash command makes a prompt of the command.
    fn expansion(&mut self, line: &Line<'_>, emit: &mut Emitter<'_, '_>) {
        match self.command.take() {
            Some(command) if line.parent_uuid.is(&command.uuid) => {
                let told = Told {
                    key: &command.key,
                    own_id: &command.uuid,
                    text: &command.text,
                    source: Some("slash_command"),
                };
                self.begin_turn(&command.moment, &told, emit);
                emit.skip("the text of a slash command");
            }
            command => {
                self.command = command;
                emit.skip("injected text");
            }
        }
    }

    fn drop_command(&mut self, emit: &mut Emitter<'_, '_>) {
        if self.command.take().is_some() {
            emit.skip("slash or local command");
        }
    }

    fn assistant(&mut self, line: &Line<'_>, mut moment: Moment<'_>, emit: &mut Emitter<'_, '_>) {
        let message: Message<'_> = part(line.message);
        if line.is_api_error_message.0 || message.model.is("<synthetic>") {
            return emit.skip("API error");
        }
        let is_main = !line.is_sidechain.0 || self.is_subagent_file;
        if let Some(model) = message.model.get() {
            moment.model = Some(without_nul(model));
            if is_main {
                self.turn(&moment.session).model.clone_from(&moment.model);
            }
        }
        for block in blocks(message.content) {
            if block.kind.is("tool_use") {
                self.tool_use(&block, line, &moment);
            } else if let Some(text) = block.text.get().filter(|_| is_main && block.kind.is("text")) {
                let subagent = self.subagent_of(line);
                self.said(message.id.get().unwrap_or_default(), text, subagent, &moment);
            }
        }
    }

    /// Text of an assistant's message, which may be spread over several lines. It is the turn's answer unless more follows.
    fn said(&mut self, message_id: &str, text: &str, subagent: Option<Subagent>, moment: &Moment<'_>) {
        match &mut self.turn(&moment.session).answer {
            Some(answer) if answer.message_id == message_id && !message_id.is_empty() => {
                answer.text.push('\n');
                answer.text.push_str(text);
                answer.moment = moment.clone().into_owned();
            }
            answer => {
                *answer = Some(Answer {
                    message_id: message_id.to_owned(),
                    subagent,
                    text: text.to_owned(),
                    moment: moment.clone().into_owned(),
                });
            }
        }
    }

    fn tool_use(&mut self, block: &Block<'_>, line: &Line<'_>, moment: &Moment<'_>) {
        let (Some(id), Some(name)) = (block.id.get(), block.name.get()) else { return };
        if self.finished.contains(&hash_of(id)) || self.pending.contains_key(id) {
            return;
        }
        let mut input = block.input.and_then(value_of).unwrap_or_else(|| json!({}));
        let truncated_at_bytes = cap_input(&mut input);
        let subagent = self.subagent_of(line);
        let line_number = self.lines;
        let turn = self.turn(&moment.session);
        if subagent.is_none() && !line.is_sidechain.0 {
            turn.answer = None;
        }
        let pending = Pending {
            line: line_number,
            moment: moment.clone().into_owned(),
            tool_name: bounded_id(without_nul(name)),
            input,
            truncated_at_bytes,
            prompt_id: turn.prompt.clone(),
            subagent,
        };
        self.pending.insert(id.to_owned(), pending);
    }

    /// A message that a person sent while the agent worked stands in an attachment.
    fn attachment(line: &Line<'_>, moment: &Moment<'_>, emit: &mut Emitter<'_, '_>) {
        let attachment: Attachment<'_> = part(line.attachment);
        let is_prompt = attachment.kind.is("queued_command")
            && attachment.command_mode.get().is_none_or(|mode| mode == "prompt")
            && !line.is_sidechain.0;
        if !is_prompt {
            return emit.skip("the client's own notes");
        }
        let texts = blocks(attachment.prompt);
        let texts = texts.iter().filter(|block| block.kind.is("text")).filter_map(|block| block.text.get());
        let (Typed::Prompt(text), Some(uuid)) = (typed(texts), line.uuid.get()) else {
            return emit.skip("injected text");
        };
        // The turn goes on under the prompt that began it: calls after this one carry that prompt's id.
        emit.prompt(moment, &Told { key: uuid, own_id: uuid, text: &text, source: Some(QUEUED) });
    }

    fn compacted(&mut self, text: &str, line: &Line<'_>, moment: &Moment<'_>, emit: &mut Emitter<'_, '_>) {
        let summary = compact_summary(text);
        if summary.is_empty() {
            return emit.skip("injected text");
        }
        let trigger = self.compaction_trigger.take();
        let happening = Happening {
            key: Happening::compaction_key(summary),
            kind: HappeningKind::Compacted,
            prompt_id: line.prompt_id.get().map(|id| bounded_id(without_nul(id))),
            subject: trigger.clone(),
            text: Some(Capped::new(summary, MAX_PROMPT_BYTES)),
            details: trigger.map_or_else(|| json!({}), |trigger| json!({ "trigger": trigger })),
        };
        emit.happening(moment, happening);
    }

    /// A subagent's first line.
    fn note_subagent(&mut self, line: &Line<'_>, moment: &Moment<'_>, emit: &mut Emitter<'_, '_>) {
        let Some(subagent) = self.subagent_of(line) else { return };
        if self.subagents.insert(hash_of(&subagent.id)) {
            let key = format!("subagent_started:{}", subagent.id);
            emit.happening(moment, happened_to(&subagent, key, HappeningKind::SubagentStarted, None));
        }
    }

    fn subagent_of(&self, line: &Line<'_>) -> Option<Subagent> {
        let id = line.agent_id.get().map(|id| bounded_id(without_nul(id)))?;
        Some(Subagent { id, kind: self.subagent_kind.clone() })
    }

    fn close_turn(&mut self, session: &str, emit: &mut Emitter<'_, '_>) {
        let is_subagent_file = self.is_subagent_file;
        let Some(turn) = self.turns.get_mut(session) else { return };
        let Some(answer) = turn.answer.take() else { return };
        if !is_subagent_file {
            if let Some(prompt) = turn.prompt.clone() {
                emit.answer(&answer.moment, Some(prompt), &answer.text);
            }
            return;
        }
        if let Some(subagent) = answer.subagent {
            let text = Some(Capped::new(&answer.text, MAX_PROMPT_BYTES));
            let key = format!("subagent_ended:{}", subagent.id);
            emit.happening(&answer.moment, happened_to(&subagent, key, HappeningKind::SubagentEnded, text));
        }
    }

    fn turn(&mut self, session: &str) -> &mut Turn {
        if !self.turns.contains_key(session) {
            self.turns.insert(session.to_owned(), Turn::default());
        }
        self.turns.get_mut(session).expect("it was put there above")
    }
}

#[cfg(test)]
mod tests;

//! From what a transcript tells to events: ids, places, filters and counts, the same for every agent.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::places::{Noted, Places};
use super::report::Report;
use crate::access::Who;
use crate::event::{
    Agent, Capped, Event, EventKind, Happening, Key, MAX_PROMPT_BYTES, Origin, Outcome, ToolCall, bounded_id,
    without_nul,
};
use crate::ids::BackfillRunId;

/// The namespace of the ids of events that were read from transcripts.
const EVENT_NAMESPACE: Uuid = Uuid::from_u128(0x6b0c_5c0a_9d1e_4a8e_8f6d_3377_0000_0002);

/// What is wanted, and what was read so far: shared by all files of one run.
pub struct Context {
    pub agent: Agent,
    /// The backfill that reads, if a person started one.
    pub run: Option<BackfillRunId>,
    /// Nothing from before that.
    pub since: Option<DateTime<Utc>>,
    /// Nothing of another session.
    pub session: Option<String>,
    pub places: Places,
    /// How much was read of all files, in bytes, for whoever watches.
    pub read_bytes: Arc<AtomicU64>,
    /// Prompts by session and key, with their text's hash: files repeat each other.
    prompts: HashMap<u64, u64>,
    sessions_with_prompt: HashSet<u64>,
}

impl Context {
    pub fn new(agent: Agent, places: Places) -> Self {
        Self {
            agent,
            run: None,
            since: None,
            session: None,
            places,
            read_bytes: Arc::default(),
            prompts: HashMap::new(),
            sessions_with_prompt: HashSet::new(),
        }
    }
}

/// Takes events as they are read; `Break` ends the reading.
pub type Sink<'a> = dyn FnMut(Event) -> ControlFlow<()> + 'a;

/// When, where and in which session something happened.
#[derive(Debug, Clone)]
pub(super) struct Moment<'a> {
    pub(super) session: Cow<'a, str>,
    pub(super) at: DateTime<Utc>,
    pub(super) folder: Option<Cow<'a, str>>,
    pub(super) noted: Noted,
    pub(super) model: Option<String>,
}

impl Moment<'_> {
    pub(super) fn into_owned(self) -> Moment<'static> {
        Moment {
            session: Cow::Owned(self.session.into_owned()),
            folder: self.folder.map(|folder| Cow::Owned(folder.into_owned())),
            at: self.at,
            noted: self.noted,
            model: self.model,
        }
    }
}

/// A prompt as a transcript tells it.
pub(super) struct Told<'a> {
    /// The agent's id of the turn, or else of the message.
    pub(super) key: &'a str,
    /// What tells this prompt from another one of the same turn.
    pub(super) own_id: &'a str,
    pub(super) text: &'a str,
    pub(super) source: Option<&'static str>,
}

pub(super) struct Emitter<'a, 'sink> {
    pub(super) context: &'a mut Context,
    pub(super) transcript_path: Option<String>,
    pub(super) report: Report,
    pub(super) sink: &'a mut Sink<'sink>,
    pub(super) flow: ControlFlow<()>,
}

impl Emitter<'_, '_> {
    pub(super) fn skip(&mut self, reason: &str) {
        self.report.skip(reason);
    }

    /// Gives the prompt's key; `None` if it was told before.
    pub(super) fn prompt(&mut self, moment: &Moment<'_>, told: &Told<'_>) -> Option<String> {
        let text_hash = hash_of(told.text);
        let given = bounded_id(without_nul(told.key));
        let mut key = given.clone();
        match self.context.prompts.get(&hash_of((&*moment.session, &given))) {
            None => {}
            Some(known) if *known == text_hash => return self.repeated(),
            // Another prompt in the same turn: a message that was sent while the agent worked.
            Some(_) => key = bounded_id(format!("{given}:{}", without_nul(told.own_id))),
        }
        // After a resumption, lines are written again with ids of their own.
        let replay = hash_of((&*moment.session, moment.at, text_hash));
        let by_key = hash_of((&*moment.session, &key));
        if self.context.prompts.contains_key(&by_key) || self.context.prompts.contains_key(&replay) {
            return self.repeated();
        }
        let kind = EventKind::PromptSubmitted {
            key: Key::Given(key.clone()),
            prompt: Capped::new(told.text, MAX_PROMPT_BYTES),
            source: told.source.map(str::to_owned),
        };
        if self.send(moment, &key, kind) {
            self.report.prompts += 1;
            self.context.prompts.insert(by_key, text_hash);
            self.context.prompts.insert(replay, text_hash);
            self.context.sessions_with_prompt.insert(hash_of(&*moment.session));
        }
        Some(key)
    }

    fn repeated(&mut self) -> Option<String> {
        self.report.skip("told before");
        None
    }

    /// Whether that prompt was among what was read so far.
    pub(super) fn knows_prompt(&self, session: &str, key: &str) -> bool {
        self.context.prompts.contains_key(&hash_of((session, key)))
    }

    pub(super) fn answer(&mut self, moment: &Moment<'_>, prompt_id: Option<String>, text: &str) {
        // An answer to a prompt that is no person's would make a turn of its own.
        let is_known = match &prompt_id {
            Some(id) => self.knows_prompt(&moment.session, id),
            None => self.context.sessions_with_prompt.contains(&hash_of(&*moment.session)),
        };
        if !is_known || text.trim().is_empty() {
            return;
        }
        let answer = Capped::new(text, MAX_PROMPT_BYTES);
        let own_id = prompt_id.clone().unwrap_or_default();
        if self.send(moment, &own_id, EventKind::TurnEnded { prompt_id, answer }) {
            self.report.answers += 1;
        }
    }

    pub(super) fn call(&mut self, moment: &Moment<'_>, call: ToolCall) {
        let is_joined = match &call.prompt_id {
            Some(id) => self.knows_prompt(&moment.session, id),
            None => self.context.sessions_with_prompt.contains(&hash_of(&*moment.session)),
        };
        let has_failed = matches!(call.outcome, Outcome::Failed { .. });
        let (Key::Given(key) | Key::Derived(key)) = call.key.clone();
        if self.send(moment, &key, EventKind::ToolCalled(Box::new(call))) {
            self.report.calls += 1;
            self.report.joined_calls += u64::from(is_joined);
            self.report.failed_calls += u64::from(has_failed);
        }
    }

    pub(super) fn happening(&mut self, moment: &Moment<'_>, happening: Happening) {
        let key = happening.key.clone();
        if self.send(moment, &key, EventKind::Happened(Box::new(happening))) {
            self.report.happenings += 1;
        }
    }

    fn send(&mut self, moment: &Moment<'_>, own_id: &str, kind: EventKind) -> bool {
        let context = &mut *self.context;
        if context.session.as_deref().is_some_and(|wanted| wanted != moment.session) {
            self.report.leave_out("other session");
            return false;
        }
        if context.since.is_some_and(|since| moment.at < since) {
            self.report.leave_out("before the date");
            return false;
        }
        let checkout = match context.places.checkout(moment.folder.as_deref(), &moment.noted) {
            Ok(checkout) => checkout,
            Err(unwanted) => {
                self.report.leave_out(unwanted.reason());
                return false;
            }
        };
        let sort = match &kind {
            EventKind::PromptSubmitted { .. } => "prompt",
            EventKind::TurnEnded { .. } => "answer",
            EventKind::ToolCalled(_) => "call",
            _ => "event",
        };
        let name = format!("{}\0{}\0{sort}\0{own_id}", context.agent, moment.session);
        let event = Event {
            id: Uuid::new_v5(&EVENT_NAMESPACE, name.as_bytes()),
            agent: context.agent,
            who: Who::Operator,
            session: bounded_id(without_nul(&moment.session)),
            occurred_at: moment.at,
            checkout,
            transcript_path: self.transcript_path.clone(),
            model: moment.model.clone(),
            origin: Origin::Transcript { run: context.run },
            kind,
        };
        if self.flow.is_continue() {
            self.flow = (self.sink)(event);
        }
        true
    }
}

pub(super) fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A time as transcripts write it.
pub(super) fn time(text: Option<&str>) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text?).ok().map(|time| time.to_utc())
}

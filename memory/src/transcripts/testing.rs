//! Reading a transcript that a test writes, and looking at what came of it.

use std::ops::ControlFlow;
use std::path::Path;

use serde_json::Value;

use super::{Context, Places, Report, find, read};
use crate::event::{Agent, Event, EventKind, Happening, Key, ToolCall};
use crate::project::Checkout;

/// What a transcript told.
pub(super) struct Told {
    pub(super) events: Vec<Event>,
    pub(super) report: Report,
}

impl Told {
    pub(super) fn of(agent: Agent, lines: &[Value]) -> Self {
        Self::of_text(agent, &written(lines))
    }

    pub(super) fn of_text(agent: Agent, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        std::fs::write(&path, text).unwrap();
        Self::of_file(agent, &path)
    }

    pub(super) fn of_file(agent: Agent, path: &Path) -> Self {
        let mut context = context(agent);
        Self::of_file_after(&mut context, path)
    }

    /// Of a further file of the same run.
    pub(super) fn of_file_after(context: &mut Context, path: &Path) -> Self {
        let file = find::of_path(context.agent, path).unwrap();
        let mut events = Vec::new();
        let report = read(&file, context, &mut |event| {
            events.push(event);
            ControlFlow::Continue(())
        });
        Self { events, report: report.unwrap() }
    }

    /// Key and text of each prompt.
    pub(super) fn prompts(&self) -> Vec<(&str, &str)> {
        let prompts = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::PromptSubmitted { key: Key::Given(key), prompt, .. } => {
                Some((key.as_str(), prompt.text.as_str()))
            }
            _ => None,
        });
        prompts.collect()
    }

    pub(super) fn texts(&self) -> Vec<&str> {
        self.prompts().into_iter().map(|(_, text)| text).collect()
    }

    pub(super) fn answers(&self) -> Vec<(Option<&str>, &str)> {
        let answers = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::TurnEnded { prompt_id, answer } => Some((prompt_id.as_deref(), answer.text.as_str())),
            _ => None,
        });
        answers.collect()
    }

    pub(super) fn calls(&self) -> Vec<&ToolCall> {
        let calls = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::ToolCalled(call) => Some(&**call),
            _ => None,
        });
        calls.collect()
    }

    pub(super) fn happenings(&self) -> Vec<&Happening> {
        let happenings = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Happened(happening) => Some(&**happening),
            _ => None,
        });
        happenings.collect()
    }

    pub(super) fn skipped(&self, reason: &str) -> u64 {
        self.report.skipped.get(reason).copied().unwrap_or_default()
    }
}

pub(super) fn context(agent: Agent) -> Context {
    let inspect = |folder: &Path| Checkout { folder: Some(folder.display().to_string()), git: None };
    Context::new(agent, Places::new(inspect, |_| Ok(())))
}

pub(super) fn written(lines: &[Value]) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text
}

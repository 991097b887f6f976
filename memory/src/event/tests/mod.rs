//! Every event of every agent, read: invented ones (`examples`), recorded ones where the machine has them (`recordings`), and
//! whatever else may come (`properties`).

mod claude_code;
mod examples;
mod properties;
mod recordings;
mod registrations;

use std::fmt::Write as _;

use chrono::DateTime;
use serde_json::Value;
use uuid::Uuid;

use super::*;

/// An envelope of a hook that was registered for that agent and event.
pub(super) fn envelope(agent: Agent, event: &str, payload: Value) -> Envelope {
    Envelope {
        event_id: Uuid::from_u128(7),
        agent,
        event: Some(event.to_owned()),
        occurred_at: DateTime::from_timestamp(1_795_971_828, 0).unwrap(),
        cwd: Some("/home/dev/widgets".into()),
        git: None,
        payload,
    }
}

/// What was read, on one line: what it is, how it is keyed, and its main members.
fn summary(reading: &Reading) -> String {
    let event = match reading {
        Reading::Kept(event) => event,
        Reading::Ignored { event, reason } => return format!("not kept, {event}: {reason}"),
        Reading::AboutToRun(upcoming) => {
            let Upcoming { agent, session, tool_name, tool_use_id, input, .. } = &**upcoming;
            return format!("about to run, {agent} {session}: {tool_name} {tool_use_id:?} input={input}");
        }
    };
    let mut line = format!("{} {} ", event.agent, event.session);
    let model = event.model.as_ref().map(|model| format!(" model={model}")).unwrap_or_default();
    // Writing to a String does not fail.
    let _ = match &event.kind {
        EventKind::SessionStarted { source } => write!(line, "started source={source:?}"),
        EventKind::SessionEnded { reason } => write!(line, "ended reason={reason:?}"),
        EventKind::PromptSubmitted { key, prompt, source } => {
            write!(line, "prompt {} {:?} source={source:?}", key_of(key), prompt.text)
        }
        EventKind::TurnEnded { prompt_id, answer } => write!(line, "answer prompt={prompt_id:?} {:?}", answer.text),
        EventKind::ToolCalled(call) => write!(
            line,
            "call {} {} prompt={:?} input={} {:?} output={:?} ms={:?} subagent={:?} commit={:?}",
            call.tool_name,
            key_of(&call.key),
            call.prompt_id,
            call.input,
            call.outcome,
            call.output_preview,
            call.duration_ms,
            call.subagent.as_ref().map(|subagent| (&subagent.id, &subagent.kind)),
            call.commit_sha,
        ),
        EventKind::Happened(happening) => write!(
            line,
            "{} prompt={:?} subject={:?} {:?} {}",
            happening.key,
            happening.prompt_id,
            happening.subject,
            happening.text.as_ref().map(|capped| &capped.text),
            happening.details,
        ),
    };
    format!("{line}{model} in {}", event.checkout.folder.as_deref().unwrap_or_default()).replace("Some(", "(")
}

fn key_of(key: &Key) -> String {
    match key {
        Key::Given(id) => id.clone(),
        Key::Derived(id) => format!("derived:{}", &id[..8]),
    }
}

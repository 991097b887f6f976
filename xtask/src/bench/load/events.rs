//! Sessions of Claude Code that never were: a prompt, then nine calls, over and over, each event about two kilobytes.
//!
//! The words come from a small generator with a seed, so that every run sends the same text; ids are new each time.

use std::fmt::Write as _;

use serde_json::{Value, json};
use uuid::Uuid;

/// One prompt, then calls.
const EVENTS_A_TURN: usize = 10;
/// What a command prints, which makes the whole envelope about two kilobytes.
const OUTPUT_BYTES: usize = 1_200;

const FOLDER: &str = "/home/dev/widgets";

/// Nouns and verbs of an imaginary code base.
const WORDS: [&str; 24] = [
    "parse", "config", "widget", "layout", "render", "cache", "index", "token", "stream", "buffer", "schema", "router",
    "session", "retry", "backoff", "deadline", "lease", "journal", "commit", "branch", "merge", "migrate", "encode",
    "decode",
];

/// What a row of the journal is known by: the session and the id of the prompt or call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) session: String,
    pub(crate) id: String,
}

/// An event that is ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) key: Key,
    /// The event's name, as a hook is registered for it.
    pub(crate) event: &'static str,
    /// What the agent writes to the hook's stdin.
    pub(crate) payload: String,
    /// What the hook would post.
    pub(crate) envelope: String,
}

/// The time that envelopes bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The machine's own.
    Right,
    /// Each event is earlier than the one before it.
    Backwards,
}

/// One session, event after event.
#[derive(Debug)]
pub(crate) struct Session {
    id: String,
    clock: Clock,
    started_at_us: i64,
    sent: usize,
    prompt_id: String,
    seed: u64,
}

impl Session {
    pub(crate) fn new(name: &str, clock: Clock) -> Self {
        let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self {
            id: format!("{name}-{}", Uuid::new_v4().simple()),
            clock,
            started_at_us: chrono::Utc::now().timestamp_micros(),
            sent: 0,
            prompt_id: String::new(),
            seed,
        }
    }

    pub(crate) fn next(&mut self) -> Outgoing {
        let is_prompt = self.sent.is_multiple_of(EVENTS_A_TURN);
        let (event, id, payload) = if is_prompt { self.prompt() } else { self.call() };
        let occurred_at_us = match self.clock {
            Clock::Right => chrono::Utc::now().timestamp_micros(),
            Clock::Backwards => self.started_at_us - self.sent as i64 * 1_000_000,
        };
        self.sent += 1;
        let envelope = json!({
            "envelope": 1,
            "event_id": Uuid::new_v4(),
            "agent": "claude-code",
            "event": event,
            "occurred_at_us": occurred_at_us,
            "cwd": FOLDER,
            "git": {
                "root": FOLDER,
                "common_dir": format!("{FOLDER}/.git"),
                "remote_url": "git@example.com:acme/widgets.git",
                "branch": "main",
                "head": "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
            },
            "payload": payload,
        });
        Outgoing {
            key: Key { session: self.id.clone(), id },
            event,
            payload: payload.to_string(),
            envelope: envelope.to_string(),
        }
    }

    fn prompt(&mut self) -> (&'static str, String, Value) {
        self.prompt_id = Uuid::new_v4().to_string();
        let prompt = format!("Please {}", self.text(400));
        let payload = json!({
            "session_id": self.id,
            "transcript_path": format!("/home/dev/.claude/projects/-home-dev-widgets/{}.jsonl", self.id),
            "cwd": FOLDER,
            "prompt_id": self.prompt_id,
            "permission_mode": "default",
            "hook_event_name": "UserPromptSubmit",
            "prompt": prompt,
        });
        ("UserPromptSubmit", self.prompt_id.clone(), payload)
    }

    fn call(&mut self) -> (&'static str, String, Value) {
        let id = format!("toolu_{}", Uuid::new_v4().simple());
        let command = format!("cargo test -p widgets {}", self.text(60));
        let payload = json!({
            "session_id": self.id,
            "transcript_path": format!("/home/dev/.claude/projects/-home-dev-widgets/{}.jsonl", self.id),
            "cwd": FOLDER,
            "prompt_id": self.prompt_id,
            "permission_mode": "default",
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": { "command": command, "description": self.text(40) },
            "tool_response": {
                "stdout": self.output(),
                "stderr": "",
                "interrupted": false,
                "isImage": false
            },
            "tool_use_id": id,
            "duration_ms": 218
        });
        ("PostToolUse", id, payload)
    }

    fn output(&mut self) -> String {
        let mut output = String::with_capacity(OUTPUT_BYTES + 80);
        while output.len() < OUTPUT_BYTES {
            let (module, test, number) = (self.word(), self.word(), self.draw() % 10_000);
            let _ = writeln!(output, "test {module}::tests::{test}_{number} ... ok (src/{module}.rs:{})", number % 400);
        }
        output
    }

    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            text.push_str(self.word());
            text.push(' ');
        }
        text
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.draw() as usize % WORDS.len()]
    }

    /// xorshift64*
    fn draw(&mut self) -> u64 {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_a_prompt_and_then_its_calls_each_with_a_key_of_its_own() {
        let mut session = Session::new("s", Clock::Right);
        let events: Vec<_> = (0..20).map(|_| session.next()).collect();
        let prompts: Vec<_> = events.iter().map(|event| event.event == "UserPromptSubmit").collect();
        assert_eq!(prompts.iter().filter(|is_prompt| **is_prompt).count(), 2);
        assert!(prompts[0] && prompts[10]);
        let keys: std::collections::HashSet<_> = events.iter().map(|event| &event.key).collect();
        assert_eq!(keys.len(), 20);
        assert!((1_500..3_000).contains(&events[1].envelope.len()), "{}", events[1].envelope.len());
    }

    #[test]
    fn a_clock_that_runs_backwards_makes_every_event_earlier() {
        let mut session = Session::new("s", Clock::Backwards);
        let times: Vec<i64> = (0..5)
            .map(|_| {
                serde_json::from_str::<Value>(&session.next().envelope).unwrap()["occurred_at_us"].as_i64().unwrap()
            })
            .collect();
        assert!(times.is_sorted_by(|one, two| one > two), "{times:?}");
    }
}

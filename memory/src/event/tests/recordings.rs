//! Payloads that real clients were seen to send, where the machine has them: what each is read as, in a line. Of their texts only
//! the names of tools stand here.

use std::path::PathBuf;

use serde_json::Value;

use super::super::*;
use super::envelope;

#[test]
fn reads_a_session_of_claude_code() {
    check(
        Agent::ClaudeCode,
        "claude-code-2.1.332/hooks",
        "started; prompt given; -; call Write given linked ok; -; call Bash given linked ok; -; call Read given linked ok; \
         -; -; call Bash given linked failed; answer linked; ended",
    );
}

#[test]
fn reads_a_session_of_claude_code_with_a_subagent_a_compaction_and_a_resumption() {
    check(
        Agent::ClaudeCode,
        "claude-code-2.1.332/hooks-subagent-compact-resume",
        "started; prompt given; -; subagent_started linked; -; call Read given linked ok; -; subagent_ended linked; \
         call Agent given linked ok; -; -; call Edit given linked ok; -; call Bash given linked ok; folder_changed linked; -; \
         answer linked; ended; started; -; -; -; started; compacted linked; ended; started; prompt given; answer linked; ended",
    );
}

#[test]
fn reads_a_session_of_codex() {
    check(
        Agent::Codex,
        "codex-0.171.0/hooks",
        "started; prompt given; -; call Bash given linked assumed; -; call Bash given linked assumed; answer linked; ended",
    );
}

#[test]
fn reads_a_session_of_gemini_cli() {
    check(
        Agent::GeminiCli,
        "gemini-cli-0.61.0/hooks",
        "started; prompt derived; -; -; call run_shell_command derived by order ok; -; -; \
         call run_shell_command derived by order failed; -; -; call read_file derived by order ok; -; answer by order; ended",
    );
}

/// Reads the recorded payloads of a folder as its agent's and, where others run its registrations, still as its own.
fn check(agent: Agent, folder: &str, expected: &str) {
    let Some(payloads) = payloads(folder) else { return };
    let read = payloads.into_iter().map(|payload| line(&read(envelope(agent, "Registered", payload)), agent));
    assert_eq!(read.collect::<Vec<_>>().join("; "), expected, "{folder}");
}

fn line(reading: &Reading, agent: Agent) -> String {
    let Reading::Kept(event) = reading else { return "-".into() };
    assert_eq!(event.agent, agent);
    match &event.kind {
        EventKind::SessionStarted { .. } => "started".into(),
        EventKind::SessionEnded { .. } => "ended".into(),
        EventKind::PromptSubmitted { key, .. } => format!("prompt {}", key_of(key)),
        EventKind::TurnEnded { prompt_id, .. } => format!("answer {}", link(prompt_id.as_ref())),
        EventKind::Happened(happening) => {
            format!("{} {}", happening.kind.as_str(), link(happening.prompt_id.as_ref()))
        }
        EventKind::ToolCalled(call) => {
            let outcome = match call.outcome {
                Outcome::Succeeded => "ok",
                Outcome::Failed { .. } => "failed",
                Outcome::Assumed => "assumed",
            };
            format!("call {} {} {} {outcome}", call.tool_name, key_of(&call.key), link(call.prompt_id.as_ref()))
        }
    }
}

fn key_of(key: &Key) -> &'static str {
    match key {
        Key::Given(_) => "given",
        Key::Derived(_) => "derived",
    }
}

fn link(prompt_id: Option<&String>) -> &'static str {
    if prompt_id.is_some() { "linked" } else { "by order" }
}

/// The folder's payloads in the order in which they were sent; `None` where this machine has no recordings.
#[allow(clippy::disallowed_methods, reason = "a test's own setting, the same as that of the `tests` room")]
fn payloads(folder: &str) -> Option<Vec<Value>> {
    let beside_the_checkout = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let recordings =
        std::env::var("AGENT_MEMORY_TEST_RECORDINGS").map_or_else(|_| beside_the_checkout(), PathBuf::from);
    let mut files =
        std::fs::read_dir(recordings.join(folder)).ok()?.map(|file| file.unwrap().path()).collect::<Vec<_>>();
    files.sort();
    Some(files.iter().map(|file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()).collect())
}

//! Rollouts of both generations, with lines written for each case.

use serde_json::{Value, json};

use super::super::testing::Told;
use crate::event::{Agent, HappeningKind, Outcome};

fn line(second: u32, kind: &str, payload: &Value) -> Value {
    json!({ "timestamp": format!("2026-11-29T10:00:{second:02}.000Z"), "type": kind, "payload": payload })
}

fn item(second: u32, payload: &Value) -> Value {
    line(second, "response_item", payload)
}

fn event(second: u32, payload: &Value) -> Value {
    line(second, "event_msg", payload)
}

fn begin() -> Vec<Value> {
    vec![
        line(0, "session_meta", &json!({ "id": "s", "cwd": "/w", "git": { "branch": "main" } })),
        line(0, "turn_context", &json!({ "turn_id": "t", "cwd": "/w", "model": "model-1" })),
    ]
}

fn command(second: u32, id: &str, cmd: &str) -> Value {
    let arguments = json!({ "cmd": cmd }).to_string();
    item(second, &json!({ "type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": id }))
}

fn output(second: u32, id: &str, output: &str) -> Value {
    item(second, &json!({ "type": "function_call_output", "call_id": id, "output": output }))
}

fn told(more: Vec<Value>) -> Told {
    let mut lines = begin();
    lines.extend(more);
    Told::of(Agent::Codex, &lines)
}

#[test]
fn reads_a_turn_of_the_older_kind() {
    let told = told(vec![
        item(1, &json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "list" }] })),
        event(1, &json!({ "type": "user_message", "message": "list" })),
        command(2, "c", "ls"),
        output(3, "c", "Chunk ID: 1\nWall time: 0.5000 seconds\nProcess exited with code 2\nOutput:\nno such\n"),
        event(4, &json!({ "type": "task_complete", "turn_id": "t", "last_agent_message": "Done." })),
    ]);
    assert_eq!(told.prompts(), [("t", "list")]);
    assert_eq!(told.answers(), [(Some("t"), "Done.")]);
    let call = told.calls()[0];
    assert_eq!((call.tool_name.as_str(), &call.input), ("Bash", &json!({ "command": "ls" })));
    assert_eq!(call.outcome, Outcome::Failed { error: "Exit code 2\nno such".into() });
    assert_eq!((call.output_preview.as_deref(), call.duration_ms), (Some("no such"), Some(500)));
    assert_eq!(told.events[0].checkout.folder.as_deref(), Some("/w"));
}

#[test]
fn reads_a_turn_of_the_newer_kind() {
    let user = json!({ "type": "UserMessage", "id": "i1", "content": [{ "type": "text", "text": "list" }] });
    let execution = json!({ "type": "CommandExecution", "id": "c", "status": "failed", "exit_code": 1,
                            "aggregated_output": "no\n", "duration": { "secs": 1, "nanos": 500_000_000 } });
    let told = told(vec![
        event(1, &json!({ "type": "item_completed", "turn_id": "t", "item": user })),
        command(2, "c", "false"),
        event(3, &json!({ "type": "item_completed", "turn_id": "t", "item": execution })),
        output(4, "c", "Wall time: 0.0000 seconds\nProcess exited with code 1\nOutput:\nno\n"),
        line(5, "world_state", &json!({ "full": true })),
    ]);
    assert_eq!(told.prompts(), [("t", "list")]);
    let call = told.calls()[0];
    assert_eq!(call.outcome, Outcome::Failed { error: "Exit code 1\nno".into() });
    assert_eq!((call.output_preview.as_deref(), call.duration_ms), (Some("no"), Some(1_500)));
    assert_eq!(told.report.joined_calls, 1);
}

#[test]
fn takes_no_context_for_a_prompt_and_keeps_a_further_message_of_a_turn() {
    let told = told(vec![
        event(1, &json!({ "type": "user_message", "message": "<environment_context>x</environment_context>" })),
        event(2, &json!({ "type": "user_message", "message": "list" })),
        event(3, &json!({ "type": "user_message", "message": "and count" })),
        event(3, &json!({ "type": "user_message", "message": "and count" })),
    ]);
    assert_eq!(told.texts(), ["list", "and count"]);
    assert_eq!(told.prompts()[0].0, "t");
    assert!(told.prompts()[1].0.starts_with("t:at:"), "{:?}", told.prompts());
}

#[test]
fn waits_for_the_end_of_a_command_in_the_background() {
    let running = "Wall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\nstarted\n";
    let ended =
        json!({ "type": "CommandExecution", "id": "c", "exit_code": 3, "aggregated_output": "started\nbroke\n" });
    let told_end = told(vec![
        command(1, "c", "serve"),
        output(2, "c", running),
        event(9, &json!({ "type": "item_completed", "turn_id": "t", "item": ended })),
    ]);
    assert_eq!(told_end.calls()[0].outcome, Outcome::Failed { error: "Exit code 3\nstarted\nbroke".into() });

    let open = told(vec![command(1, "c", "serve"), output(2, "c", running)]);
    assert_eq!(open.calls()[0].outcome, Outcome::Assumed);
}

#[test]
fn tells_refused_interrupted_and_unsupported_calls_apart() {
    let told = told(vec![
        command(1, "c1", "rm"),
        output(2, "c1", "exec command rejected by user"),
        command(3, "c2", "sleep"),
        output(4, "c2", "aborted by user after 1.0s"),
        item(
            5,
            &json!({ "type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "c3" }),
        ),
        item(
            6,
            &json!({ "type": "custom_tool_call_output", "call_id": "c3", "output": "unsupported call: apply_patch" }),
        ),
        command(7, "c4", "make"),
        event(8, &json!({ "type": "turn_aborted", "reason": "interrupted" })),
        command(9, "c5", "make again"),
    ]);
    assert_eq!(told.happenings()[0].kind, HappeningKind::PermissionDenied);
    let failed: Vec<_> = told.calls().iter().map(|call| matches!(call.outcome, Outcome::Failed { .. })).collect();
    assert_eq!(failed, [true, true, true]);
    assert_eq!(told.report.unfinished_calls, 1);
}

#[test]
fn reads_a_forked_session_under_its_own_id() {
    let told = told(vec![
        line(1, "session_meta", &json!({ "id": "parent", "cwd": "/elsewhere" })),
        event(2, &json!({ "type": "user_message", "message": "go on" })),
    ]);
    assert_eq!(told.events[0].session, "s");
    assert_eq!(told.skipped("copied from another session"), 1);
}

#[test]
fn keeps_the_remote_that_a_rollout_notes() {
    let git = json!({ "repository_url": "git@example.com:acme/widgets.git", "branch": "main", "commit_hash": "abc" });
    let lines = [
        line(0, "session_meta", &json!({ "id": "s", "cwd": "/gone", "git": git })),
        event(1, &json!({ "type": "user_message", "message": "x" })),
    ];
    let told = Told::of(Agent::Codex, &lines);
    let git = told.events[0].checkout.git.as_ref().unwrap();
    assert_eq!(git.remote_url.as_deref(), Some("git@example.com:acme/widgets.git"));
    assert_eq!((git.branch.as_deref(), git.head.as_deref()), (Some("main"), Some("abc")));
    // Versions without turns.
    assert!(told.prompts()[0].0.starts_with("at:"));
}

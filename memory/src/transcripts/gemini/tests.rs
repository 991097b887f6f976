//! Chats of Gemini CLI, new and old, with lines written for each case.

use serde_json::{Value, json};

use super::super::testing::Told;
use crate::event::{Agent, Outcome};

fn message(second: u32, id: &str, kind: &str, members: Value) -> Value {
    let mut line = json!({ "id": id, "timestamp": format!("2026-11-29T10:00:{second:02}.000Z"), "type": kind });
    let Value::Object(members) = members else { panic!("{members} is no object") };
    line.as_object_mut().unwrap().extend(members);
    line
}

fn user(second: u32, id: &str, text: &str) -> Value {
    message(second, id, "user", json!({ "content": [{ "text": text }] }))
}

fn call(id: &str, command: &str, output: &str, status: &str) -> Value {
    let response = json!({ "functionResponse": { "id": id, "response": { "output": output } } });
    json!({ "id": id, "name": "run_shell_command", "args": { "command": command }, "result": [response], "status": status })
}

fn chat() -> Vec<Value> {
    let context = "<session_context>\n- **Workspace Directories:**\n  - /home/dev/widgets\n- more\n</session_context>";
    let pending =
        json!({ "id": "c1", "name": "run_shell_command", "args": { "command": "ls" }, "status": "executing" });
    vec![
        json!({ "sessionId": "s", "projectHash": "h", "startTime": "2026-11-29T10:00:00.000Z", "kind": "main" }),
        json!({ "$set": { "messages": [user(0, "m0", context)] } }),
        user(1, "m1", "list the files"),
        message(2, "m2", "gemini", json!({ "content": "Listing.", "model": "model-1" })),
        message(2, "m2", "gemini", json!({ "content": "Listing.", "toolCalls": [pending] })),
        message(
            2,
            "m2",
            "gemini",
            json!({ "content": "Listing.", "toolCalls": [call("c1", "ls", "Output: a", "success")] }),
        ),
        message(3, "m3", "user", json!({ "content": [{ "functionResponse": { "id": "c1" } }] })),
        message(
            4,
            "m4",
            "gemini",
            json!({
                "content": "", "toolCalls": [call("c2", "false", "Output: (empty)\nExit Code: 1\n", "success")],
            }),
        ),
        json!({ "$set": { "lastUpdated": "2026-11-29T10:00:05.000Z" } }),
        message(5, "m5", "gemini", json!({ "content": "Done." })),
        json!({ "$rewindTo": "m1" }),
        message(6, "m6", "info", json!({ "content": "Update available" })),
        user(7, "m7", "thanks"),
    ]
}

fn check(told: &Told) {
    assert_eq!(told.prompts(), [("m1", "list the files"), ("m7", "thanks")]);
    assert_eq!(told.answers(), [(Some("m1"), "Listing.\nDone.")]);
    let calls = told.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!((&calls[0].input, &calls[0].outcome), (&json!({ "command": "ls" }), &Outcome::Succeeded));
    assert!(matches!(&calls[1].outcome, Outcome::Failed { error } if error.contains("Exit Code: 1")), "{:?}", calls[1]);
    assert_eq!((told.report.joined_calls, told.report.unfinished_calls), (2, 0));
    assert_eq!(told.events[0].checkout.folder.as_deref(), Some("/home/dev/widgets"));
}

#[test]
fn reads_a_chat_whose_messages_are_written_again_as_they_grow() {
    check(&Told::of(Agent::GeminiCli, &chat()));
}

#[test]
fn reads_a_chat_of_the_older_kind_that_is_one_document() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    let messages: Vec<Value> = chat()
        .into_iter()
        .flat_map(|line| match line["$set"]["messages"].as_array() {
            Some(messages) => messages.clone(),
            None => vec![line],
        })
        .filter(|line| line.get("type").is_some())
        .collect();
    let document = json!({ "sessionId": "s", "projectHash": "h", "messages": messages });
    std::fs::write(&path, serde_json::to_string_pretty(&document).unwrap()).unwrap();
    check(&Told::of_file(Agent::GeminiCli, &path));
}

#[test]
fn leaves_a_call_that_still_runs_to_the_next_run() {
    let mut lines = chat();
    let pending = json!({ "id": "c9", "name": "read_file", "args": {}, "status": "executing" });
    lines.push(message(8, "m8", "gemini", json!({ "content": "", "toolCalls": [pending] })));
    assert_eq!(Told::of(Agent::GeminiCli, &lines).report.unfinished_calls, 1);
}

#[test]
fn files_a_subagents_calls_under_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chats/parent/sub.jsonl");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(folder.path().join(".project_root"), "/home/dev/widgets\n").unwrap();
    let mut lines = chat();
    lines[0]["sessionId"] = json!("sub");
    lines[0]["kind"] = json!("subagent");
    std::fs::write(&path, super::super::testing::written(&lines)).unwrap();
    let told = Told::of_file(Agent::GeminiCli, &path);
    assert!(told.texts().is_empty());
    assert_eq!(told.events[0].session, "parent");
    assert_eq!(told.calls()[0].subagent.as_ref().map(|subagent| subagent.id.as_str()), Some("sub"));
}

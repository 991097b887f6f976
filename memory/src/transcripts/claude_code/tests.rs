//! Each irregularity of Claude Code's transcripts, with lines written for it.

use serde_json::{Value, json};

use super::super::testing::{Told, context, written};
use crate::event::{Agent, HappeningKind, Outcome};

/// A chained line; times follow the number, so that lines are in order.
fn line(number: u32, kind: &str, members: Value) -> Value {
    let mut line = json!({
        "type": kind, "uuid": format!("u{number}"), "sessionId": "s", "cwd": "/w", "isSidechain": false,
        "timestamp": format!("2026-11-29T10:{:02}:{:02}.000Z", number / 60, number % 60), "gitBranch": "main",
    });
    let Value::Object(members) = members else { panic!("{members} is no object") };
    line.as_object_mut().unwrap().extend(members);
    line
}

fn user(number: u32, content: impl Into<Value>) -> Value {
    let content: Value = content.into();
    line(number, "user", json!({ "message": { "role": "user", "content": content } }))
}

fn prompt(number: u32, id: &str, text: &str) -> Value {
    with(user(number, text), json!({ "promptId": id }))
}

fn assistant(number: u32, message: &str, block: &Value) -> Value {
    let message = json!({ "id": message, "role": "assistant", "model": "model-1", "content": [block] });
    line(number, "assistant", json!({ "message": message }))
}

fn says(number: u32, message: &str, text: &str) -> Value {
    assistant(number, message, &json!({ "type": "text", "text": text }))
}

fn calls(number: u32, message: &str, id: &str, command: &str) -> Value {
    let block = json!({ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": command } });
    assistant(number, message, &block)
}

fn result(number: u32, id: &str, stdout: &str) -> Value {
    let block = json!({ "type": "tool_result", "tool_use_id": id, "content": stdout });
    with(user(number, json!([block])), json!({ "toolUseResult": { "stdout": stdout, "stderr": "" } }))
}

fn failure(number: u32, id: &str, error: &str) -> Value {
    let block = json!({ "type": "tool_result", "tool_use_id": id, "content": error, "is_error": true });
    with(user(number, json!([block])), json!({ "toolUseResult": format!("Error: {error}") }))
}

fn with(mut line: Value, members: Value) -> Value {
    let Value::Object(members) = members else { panic!("{members} is no object") };
    line.as_object_mut().unwrap().extend(members);
    line
}

fn told(lines: &[Value]) -> Told {
    Told::of(Agent::ClaudeCode, lines)
}

#[test]
fn keeps_a_turn_with_its_calls_and_its_answer() {
    let told = told(&[
        prompt(1, "p1", "count the files"),
        says(2, "m1", "Counting."),
        calls(3, "m1", "t1", "ls | wc -l"),
        with(result(4, "t1", "7"), json!({ "promptId": "p1" })),
        says(5, "m2", "Seven."),
    ]);
    assert_eq!(told.prompts(), [("p1", "count the files")]);
    assert_eq!(told.answers(), [(Some("p1"), "Seven.")]);
    let call = told.calls()[0];
    assert_eq!((call.tool_name.as_str(), &call.input), ("Bash", &json!({ "command": "ls | wc -l" })));
    assert_eq!((call.output_preview.as_deref(), call.prompt_id.as_deref()), (Some("7"), Some("p1")));
    assert_eq!(call.outcome, Outcome::Succeeded);
    assert_eq!((told.report.calls, told.report.joined_calls), (1, 1));
    let event = told.events.last().unwrap();
    assert_eq!((event.model.as_deref(), event.checkout.folder.as_deref()), (Some("model-1"), Some("/w")));
}

#[test]
fn puts_an_answer_together_that_was_written_over_several_lines() {
    let told = told(&[prompt(1, "p", "x"), says(2, "m", "One."), says(3, "m", "Two."), says(4, "m", "")]);
    assert_eq!(told.answers(), [(Some("p"), "One.\nTwo.")]);
}

#[test]
fn pairs_parallel_calls_with_their_results_by_id() {
    let told = told(&[
        prompt(1, "p", "x"),
        calls(2, "m", "t1", "one"),
        calls(3, "m", "t2", "two"),
        result(4, "t2", "second"),
        result(5, "t1", "first"),
    ]);
    let outputs: Vec<_> =
        told.calls().iter().map(|call| (call.input["command"].clone(), call.output_preview.clone())).collect();
    assert_eq!(outputs, [(json!("two"), Some("second".into())), (json!("one"), Some("first".into()))]);
}

#[test]
fn tells_a_failed_call_as_the_hook_does() {
    let told = told(&[prompt(1, "p", "x"), calls(2, "m", "t", "false"), failure(3, "t", "Exit code 1\nno")]);
    let call = told.calls()[0];
    assert_eq!(call.outcome, Outcome::Failed { error: "Exit code 1\nno".into() });
    assert_eq!(call.output_preview, None);
}

#[test]
fn keeps_a_refused_call_as_what_it_is_and_not_as_a_call() {
    let refusal = "PreToolUse:Bash hook error: not on a Friday";
    let marked = with(failure(5, "t2", "no"), json!({ "toolDenialKind": "permission-rule" }));
    let told = told(&[
        prompt(1, "p", "x"),
        calls(2, "m", "t1", "push"),
        failure(3, "t1", refusal),
        calls(4, "m", "t2", "rm"),
        marked,
    ]);
    assert!(told.calls().is_empty());
    let happenings = told.happenings();
    assert_eq!(happenings.len(), 2);
    assert_eq!(happenings[0].kind, HappeningKind::PermissionDenied);
    assert_eq!(happenings[0].text.as_ref().map(|text| text.text.as_str()), Some(refusal));
}

#[test]
fn takes_a_slash_command_for_a_prompt_only_where_it_became_one() {
    let command = "<command-message>count</command-message>\n<command-name>/count</command-name>\n<command-args>the stars</command-args>";
    let expansion = with(
        user(2, json!([{ "type": "text", "text": "Count the files for the stars please." }])),
        json!({ "isMeta": true, "parentUuid": "u1", "promptId": "p" }),
    );
    let expanded = told(&[prompt(1, "p", command), expansion, calls(3, "m", "t", "ls"), result(4, "t", "")]);
    assert_eq!(expanded.prompts(), [("p", "/count the stars")]);
    assert_eq!(expanded.report.joined_calls, 1);

    let caveat = with(user(1, "<local-command-caveat>x</local-command-caveat>"), json!({ "isMeta": true }));
    let local = told(&[
        caveat,
        prompt(2, "p", "<command-name>/model</command-name>\n<command-message>model</command-message>"),
        prompt(3, "p", "<local-command-stdout>Set model</local-command-stdout>"),
        user(4, "<bash-input>ls</bash-input>"),
        user(5, "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>"),
        prompt(6, "q", "go on"),
    ]);
    assert_eq!(local.prompts(), [("q", "go on")]);
    assert_eq!(local.skipped("slash or local command"), 4);
}

#[test]
fn keeps_what_was_typed_beside_injected_text() {
    let told = told(&[
        user(
            1,
            json!([
                { "type": "text", "text": "<ide_opened_file>a.rs</ide_opened_file>" },
                { "type": "text", "text": "explain it" },
            ]),
        ),
        user(2, "<task-notification>done</task-notification>"),
        with(user(3, "Continue."), json!({ "isMeta": true })),
    ]);
    assert_eq!(told.texts(), ["explain it"]);
    assert_eq!(told.skipped("injected text"), 2);
}

#[test]
fn tells_an_interrupted_call_from_one_that_still_runs() {
    let told = told(&[
        prompt(1, "p", "x"),
        calls(2, "m", "t1", "sleep 100"),
        user(3, json!([{ "type": "text", "text": "[Request interrupted by user for tool use]" }])),
        prompt(4, "q", "y"),
        calls(5, "n", "t2", "make"),
    ]);
    assert_eq!(told.texts(), ["x", "y"]);
    assert_eq!((told.calls().len(), told.report.unfinished_calls), (1, 1));
    assert!(matches!(&told.calls()[0].outcome, Outcome::Failed { error } if error.starts_with("interrupted")));
    assert_eq!(told.answers(), []);
}

#[test]
fn keeps_what_several_roots_and_a_rewind_left() {
    let told = told(&[
        with(prompt(1, "p", "first"), json!({ "parentUuid": null })),
        says(2, "m", "Done."),
        with(prompt(3, "q", "again, from before"), json!({ "parentUuid": null })),
        says(4, "n", "Done anew."),
    ]);
    assert_eq!(told.texts(), ["first", "again, from before"]);
    assert_eq!(told.answers(), [(Some("p"), "Done."), (Some("q"), "Done anew.")]);
}

#[test]
fn keeps_a_compaction_under_the_key_that_its_hook_gives() {
    let boundary =
        line(1, "system", json!({ "subtype": "compact_boundary", "compactMetadata": { "trigger": "auto" } }));
    let text = "This session is being continued from a previous conversation that ran out of context. The summary below \
                covers the earlier portion of the conversation.\n\nAll done.\n\nIf you need specific details from before \
                compaction, read the transcript.";
    let summary = with(user(2, text), json!({ "isCompactSummary": true, "promptId": "c" }));
    let told = told(&[boundary, summary]);
    let [compaction] = told.happenings()[..] else { panic!("one compaction") };
    assert_eq!(compaction.key, crate::event::Happening::compaction_key("All done."));
    assert_eq!((compaction.kind, compaction.subject.as_deref()), (HappeningKind::Compacted, Some("auto")));
    assert!(told.texts().is_empty());
}

#[test]
fn tells_what_is_written_twice_once() {
    let replayed = with(prompt(1, "p2", "old versions have no ids"), json!({ "uuid": "v1", "promptId": null }));
    let original = with(prompt(1, "p2", "old versions have no ids"), json!({ "promptId": null }));
    let told = told(&[
        original.clone(),
        original,
        replayed,
        prompt(2, "p", "x"),
        with(prompt(3, "p", "x"), json!({ "gitBranch": "other" })),
        calls(4, "m", "t", "ls"),
        calls(4, "m", "t", "ls"),
        result(5, "t", "a"),
        result(5, "t", "a"),
        calls(4, "m", "t", "ls"),
    ]);
    assert_eq!(told.prompts(), [("u1", "old versions have no ids"), ("p", "x")]);
    assert_eq!((told.calls().len(), told.report.unfinished_calls), (1, 0));
    assert_eq!(told.skipped("told before"), 4);
}

#[test]
fn files_each_line_under_the_session_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.jsonl"), folder.path().join("two.jsonl"));
    let other = with(prompt(2, "q", "in another session"), json!({ "sessionId": "other" }));
    let copied = with(prompt(3, "r", "copied"), json!({ "sessionId": "other", "forkedFrom": { "sessionId": "s" } }));
    std::fs::write(&one, written(&[prompt(1, "p", "old")])).unwrap();
    std::fs::write(&two, written(&[prompt(1, "p", "old"), other, copied])).unwrap();
    let mut context = context(Agent::ClaudeCode);
    assert_eq!(Told::of_file_after(&mut context, &one).texts(), ["old"]);
    let second = Told::of_file_after(&mut context, &two);
    assert_eq!(second.texts(), ["in another session"]);
    assert_eq!(second.events[0].session, "other");
    assert_eq!((second.skipped("told before"), second.skipped("copied from another session")), (1, 1));
}

#[test]
fn finds_what_was_sent_while_the_agent_worked() {
    let queued = |number, mode, prompt: Value| {
        let attachment = json!({ "type": "queued_command", "commandMode": mode, "prompt": prompt });
        line(number, "attachment", json!({ "attachment": attachment }))
    };
    let removed = json!({ "type": "queue-operation", "operation": "remove", "content": null, "sessionId": "s" });
    let told = told(&[
        prompt(1, "p", "x"),
        removed,
        queued(2, "prompt", json!("also the tests")),
        queued(3, "prompt", json!([{ "type": "text", "text": "and the docs" }])),
        queued(4, "task-notification", json!("<task-notification>x</task-notification>")),
        calls(5, "m", "t", "ls"),
        result(6, "t", ""),
    ]);
    assert_eq!(told.prompts(), [("p", "x"), ("u2", "also the tests"), ("u3", "and the docs")]);
    assert_eq!(told.calls()[0].prompt_id.as_deref(), Some("p"));
}

#[test]
fn counts_what_it_cannot_read_and_reads_on() {
    let text = [
        written(&[prompt(1, "p", "x")]),
        "{ not json\n\n".to_owned(),
        json!({ "type": "tea-break", "kettle": true }).to_string() + "\n",
        json!({ "type": 7 }).to_string() + "\n[1]\n",
        written(&[with(prompt(2, "q", "y"), json!({ "timestamp": "tomorrow" })), prompt(3, "r", "z")]),
        r#"{"type":"user","uuid":"u9","mess"#.to_owned(),
    ];
    let told = Told::of_text(Agent::ClaudeCode, &text.concat());
    assert_eq!(told.texts(), ["x", "z"]);
    for reason in ["empty", "unknown type `tea-break`", "no type", "no time", "still being written"] {
        assert_eq!(told.skipped(reason), 1, "{reason}: {:?}", told.report.skipped);
    }
    assert_eq!(told.skipped("not JSON"), 2);
}

#[test]
fn reads_contents_of_every_shape() {
    let blocks = json!([{ "type": "text", "text": "one" }, { "type": "image", "source": {} }]);
    let block = json!({ "type": "tool_result", "tool_use_id": "t", "content": blocks });
    let told = told(&[
        user(1, json!(["bare", { "type": "text", "text": "block" }])),
        with(user(2, 7), json!({})),
        calls(3, "m", "t", "ls"),
        user(4, json!([block])),
    ]);
    assert_eq!(told.texts(), ["bare\nblock"]);
    assert_eq!(told.calls()[0].output_preview.as_deref(), Some("one\n[image]"));
}

#[test]
fn takes_no_error_of_the_api_for_an_answer() {
    let flagged = with(says(3, "m2", "API Error: overloaded"), json!({ "isApiErrorMessage": true }));
    let mut synthetic = says(4, "m3", "No response requested.");
    synthetic["message"]["model"] = json!("<synthetic>");
    let told = told(&[prompt(1, "p", "x"), says(2, "m1", "Real."), flagged, synthetic]);
    assert_eq!(told.answers(), [(Some("p"), "Real.")]);
    assert_eq!(told.skipped("API error"), 2);
}

#[test]
fn never_keeps_the_clients_own_prompt() {
    let snapshot =
        line(1, "attachment", json!({ "attachment": { "type": "prompt_snapshot", "prompt": "You are a client." } }));
    let told = told(&[snapshot, prompt(2, "p", "x")]);
    assert!(!format!("{:?}", told.events).contains("You are a client"));
}

#[test]
fn gives_a_subagents_calls_to_it_and_to_the_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let (main, sub) = (folder.path().join("s.jsonl"), folder.path().join("s/subagents/agent-a1.jsonl"));
    std::fs::create_dir_all(sub.parent().unwrap()).unwrap();
    let side = |line| with(line, json!({ "isSidechain": true, "agentId": "a1" }));
    std::fs::write(&main, written(&[prompt(1, "p", "explore")])).unwrap();
    std::fs::write(sub.with_extension("meta.json"), r#"{"agentType": "Explore"}"#).unwrap();
    let lines = [
        side(prompt(2, "p", "Read it")),
        side(calls(3, "m", "t", "cat a")),
        side(result(4, "t", "a")),
        side(says(5, "n", "It says a.")),
    ];
    std::fs::write(&sub, written(&lines)).unwrap();

    let mut context = context(Agent::ClaudeCode);
    Told::of_file_after(&mut context, &main);
    let told = Told::of_file_after(&mut context, &sub);
    let call = told.calls()[0];
    let subagent = call.subagent.as_ref().unwrap();
    assert_eq!((subagent.id.as_str(), subagent.kind.as_deref()), ("a1", Some("Explore")));
    assert_eq!((call.prompt_id.as_deref(), told.report.joined_calls), (Some("p"), 1));
    assert!(told.texts().is_empty() && told.answers().is_empty());
    let happened: Vec<_> = told.happenings().iter().map(|happening| happening.key.as_str()).collect();
    assert_eq!(happened, ["subagent_started:a1", "subagent_ended:a1"]);
}

#[test]
fn keeps_nothing_private() {
    let told = told(&[
        prompt(1, "p", "use <private>hunter2</private>"),
        calls(2, "m", "t", "login <private>hunter2"),
        result(3, "t", "ok <private>hunter2</private>"),
        says(4, "m", "Logged in with <private>hunter2</private>."),
    ]);
    assert!(!format!("{:?}", told.events).contains("hunter2"));
}

//! What there is to make rows of: some days of work through the real server, and transcripts as Claude Code writes them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use tests::conversation::{Call, Conversation, Outcome};
use tests::stack::Stack;

use crate::unasked::repository;

/// Whose outputs may be trained on.
pub(super) const OPEN_MODEL: &str = "qwen3-coder";
/// Whose home the checkout lies in.
pub(super) const HOME_OWNER: &str = "alicewonder";

pub(super) async fn start(stack: &Stack, name: &str) -> Result<Conversation> {
    let folder = repository(&stack.scratch().join("home").join(HOME_OWNER).join("widgets")).await?;
    let mut session = Conversation::new(folder);
    session.session_id = format!("{name}-{}", session.session_id);
    let started = session.event("SessionStart", json!({"source": "startup", "model": OPEN_MODEL}));
    // Through the hook, which says which repository the folder is.
    stack.hook(&started).await?;
    Ok(session)
}

/// Some days of work: each session asks, has files read and commands run, and gets answers.
pub(crate) async fn work(stack: &Stack, sessions: usize) -> Result<()> {
    const SUBJECTS: [&str; 8] =
        ["the lexer", "the cache", "the parser", "the queue", "the router", "the index", "the logger", "the planner"];
    const VERBS: [&str; 6] = ["Explain", "Measure", "Mend", "Review", "Rename", "Test"];
    for number in 0..sessions {
        let mut session = start(stack, &format!("s{number:03}")).await?;
        let root = session.folder.display().to_string();
        for turn in 0..4 {
            let (subject, verb) = (SUBJECTS[(number + turn) % 8], VERBS[(number / 8 + turn) % 6]);
            let noun = subject.trim_start_matches("the ");
            let prompt = format!(
                "{verb} {subject} in module m{number}x{turn} and tell me how case {} behaves",
                number * 7 + turn
            );
            stack.hook(&session.asks(&prompt)).await?;
            if turn == 3 && number % 2 == 0 {
                let thanks =
                    format!("Case {} of {subject} keeps its order because of m{number}x{turn}.", number * 7 + turn);
                stack.post_bare(&session.stops(&thanks)).await?;
                continue;
            }
            for call in calls(&root, noun, number, turn) {
                stack.post_bare(&session.calls(call).1).await?;
            }
            let answer =
                format!("{subject} of m{number}x{turn} holds: case {} behaves as its test says.", number * 7 + turn);
            stack.post_bare(&session.stops(&answer)).await?;
        }
        stack.post_bare(&session.ends()).await?;
    }
    stack.drained().await
}

fn calls(root: &str, noun: &str, number: usize, turn: usize) -> Vec<Call> {
    let path = format!("{root}/src/{noun}_{number}_{turn}.rs");
    let read = json!({"type": "text", "file": {"filePath": path, "content": format!("fn {noun}_{number}() {{}}\n")}});
    let log = format!(
        "test {noun}_{number} ... ok\nby {HOME_OWNER} <alice@widgets.dev>, with /home/{HOME_OWNER}/.cargo/bin/cargo\n"
    );
    let ran = json!({"stdout": log, "stderr": "", "interrupted": false, "isImage": false});
    let call = |tool, input, response| Call { tool, input, outcome: Outcome::Response(response) };
    let all = [
        call("Read", json!({"file_path": path}), read),
        call(
            "Grep",
            json!({"pattern": format!("{noun}_{number}"), "path": format!("{root}/src")}),
            json!({"content": path}),
        ),
        call(
            "Bash",
            json!({"command": format!("cargo test {noun}_{number}_{turn}"), "description": "Run the test"}),
            ran,
        ),
        call("Glob", json!({"pattern": format!("**/{noun}_{turn}*.rs")}), json!({"filenames": [path]})),
    ];
    // Every turn uses other tools, and some a failing one.
    let mut all: Vec<_> = all
        .into_iter()
        .enumerate()
        .filter(|(at, _)| !(number + turn + at).is_multiple_of(4))
        .map(|(_, call)| call)
        .collect();
    if (number + turn).is_multiple_of(5) {
        let input = json!({"command": format!("cargo bench {noun}_{number}"), "description": "Measure"});
        all.push(Call { tool: "Bash", input, outcome: Outcome::Error("Exit code 101\nno bench target".into()) });
    }
    all
}

/// Two sessions as Claude Code writes them down.
pub(super) fn generate_transcripts(folder: &Path) -> Result<Vec<PathBuf>> {
    let project = folder.join("-srv-code-gadgets");
    std::fs::create_dir_all(&project)?;
    let mut files = Vec::new();
    for number in 0..2 {
        let session = format!("generated-{number}");
        let line = |uuid: &str, kind: &str, message: Value, extra: Value| {
            let mut line = json!({
                "type": kind, "uuid": format!("{session}-{uuid}"), "sessionId": session, "cwd": "/srv/code/gadgets",
                "timestamp": format!("2026-11-0{}T10:00:0{}Z", number + 1, uuid.len()), "version": "2.1.332", "message": message,
            });
            if let (Some(line), Value::Object(extra)) = (line.as_object_mut(), extra) {
                line.extend(extra);
            }
            line.to_string()
        };
        let tool = json!({"role": "assistant", "model": OPEN_MODEL, "content": [
            {"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash", "input": {"command": format!("make part{number}")}}]});
        let result = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": format!("toolu_{number}"), "content": "built"}]});
        let answer = json!({"role": "assistant", "model": OPEN_MODEL, "content": [
            {"type": "text", "text": format!("Part {number} is built.")}]});
        let text = [
            line(
                "a",
                "user",
                json!({"role": "user", "content": format!("Build part {number} of the gadget")}),
                json!({}),
            ),
            line("bb", "assistant", tool, json!({})),
            line("ccc", "user", result, json!({"toolUseResult": {"stdout": "built", "stderr": ""}})),
            line("dddd", "assistant", answer, json!({})),
        ];
        let file = project.join(format!("{session}.jsonl"));
        std::fs::write(&file, text.join("\n") + "\n")?;
        files.push(file);
    }
    Ok(files)
}

//! Questions about code, asked over HTTP of a journal that was filled by events: who touched a file, what mended a failure, which
//! commands worked; and how long a reply may be.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::conversation::{Call, Conversation, Outcome};
use tests::stack::Stack;

#[tokio::test]
async fn tells_what_mended_a_failure_and_what_was_done_in_between() -> Result<()> {
    let stack = Stack::running().await?;
    let mut session = Conversation::new("/home/dev/widgets");
    stack.post_bare(&session.asks("The migration test is flaky, mend it")).await?;
    let error = "thread 'migrates' panicked: port 5432 is already in use (os error 98)";
    fails(&stack, &session, "cargo test migration", error).await?;
    stack.post_bare(&session.runs("cat tests/db.rs | head -20").1).await?;
    fails(&stack, &session, "cd /home/dev/widgets && cargo test migration 2>&1 | tail -5", error).await?;
    edits(&stack, &session, "/home/dev/widgets/tests/db.rs", "bind port 0").await?;
    stack.post_bare(&session.runs("docker compose up -d db").1).await?;
    stack.post_bare(&session.runs("cargo fmt").1).await?;
    stack.post_bare(&session.runs("cargo test migration -- --test-threads=1").1).await?;
    // Failures of another kind, and a success elsewhere.
    fails(&stack, &session, "npm run lint", "eslint: 3 problems").await?;
    let other = Conversation::new("/home/dev/gadgets");
    stack.post_bare(&other.runs("cargo test migration").1).await?;

    for question in ["port 5432 is already in use", "how did we fix the flaky migration?"] {
        let reply = ask(&stack, "find_fix", &json!({"error": question})).await?;
        let fix = &reply["fixes"][0];
        assert_eq!(
            fix["worked"]["input"]["command"], "cargo test migration -- --test-threads=1",
            "{question}: {reply:#}"
        );
        let steps: Vec<_> = fix["steps"].as_array().context("steps")?.iter().collect();
        let did: Vec<_> = steps.iter().filter_map(|step| step["did"].as_str()).collect();
        assert!(did.starts_with(&["edited", "ran", "ran"]) || did.starts_with(&["ran", "edited"]), "{reply:#}");
        assert!(steps.iter().any(|step| step["input"]["new_string"] == "bind port 0"), "the edit itself: {reply:#}");
        assert!(!reply.to_string().contains("head -20"), "who looked around is left out: {reply:#}");
        assert_eq!(fix["prompt"], "The migration test is flaky, mend it");
        let alike = reply["fixes"].as_array().into_iter().flatten().filter(|fix| fix["error"] == error).count();
        assert_eq!(alike, 1, "two attempts are one story: {reply:#}");
    }
    let reply = ask(&stack, "find_fix", &json!({"error": "eslint problems"})).await?;
    assert!(reply["fixes"][0].get("worked").is_none(), "nothing is known to have worked: {reply:#}");
    let reply = ask(&stack, "find_fix", &json!({"error": "quokka"})).await?;
    assert_eq!(reply["fixes"], json!([]), "{reply:#}");
    Ok(())
}

#[tokio::test]
async fn tells_who_touched_a_file_edits_first() -> Result<()> {
    let stack = Stack::running().await?;
    let mut session = Conversation::new("/home/dev/widgets");
    stack.post_bare(&session.asks("Make the importer keep empty rows")).await?;
    edits(&stack, &session, "/home/dev/widgets/src/lib.rs", "keep_empty").await?;
    let read = Call {
        tool: "Read",
        input: json!({"file_path": "/home/dev/widgets/src/lib.rs"}),
        outcome: Outcome::Response(json!("fn main() {}")),
    };
    stack.post_bare(&session.calls(read).1).await?;
    stack.post_bare(&session.runs("rustfmt src/lib.rs").1).await?;
    edits(&stack, &session, "/home/dev/widgets/tests/lib.rs", "another file").await?;
    // A long file is found by its path too.
    let written = json!({"content": "x ".repeat(60_000), "file_path": "/home/dev/widgets/src/long.rs"});
    let write = Call { tool: "Write", input: written, outcome: Outcome::Response(json!("written")) };
    stack.post_bare(&session.calls(write).1).await?;

    for path in ["src/lib.rs", "/home/dev/widgets/src/lib.rs", "widgets/src/lib.rs"] {
        let reply = ask(&stack, "file_history", &json!({"path": path})).await?;
        let did: Vec<_> = touches(&reply).map(|touch| touch["did"].as_str().unwrap_or_default().to_owned()).collect();
        assert_eq!(did, ["edited", "ran", "read"], "{path}: {reply:#}");
        assert!(touches(&reply).all(|touch| touch["prompt"] == "Make the importer keep empty rows"), "{reply:#}");
    }
    assert_eq!(touches(&ask(&stack, "file_history", &json!({"path": "lib.rs"})).await?).count(), 4);
    assert_eq!(touches(&ask(&stack, "file_history", &json!({"path": "src/long.rs"})).await?).count(), 1);
    assert_eq!(touches(&ask(&stack, "file_history", &json!({"path": "src/nothing.rs"})).await?).count(), 0);
    Ok(())
}

#[tokio::test]
async fn tells_commands_that_worked_once_each_with_how_they_fared() -> Result<()> {
    let stack = Stack::running().await?;
    let mut session = Conversation::new("/home/dev/widgets");
    stack.post_bare(&session.asks("Deploy the pelican to staging")).await?;
    fails(&stack, &session, "fly deploy --config staging.toml", "no token").await?;
    stack.post_bare(&session.runs("cd /home/dev/widgets && fly deploy --config staging.toml 2>&1 | tail -3").1).await?;
    stack.post_bare(&session.runs("fly deploy  --config staging.toml").1).await?;
    stack.post_bare(&session.runs("ls -la").1).await?;

    let reply = ask(&stack, "how", &json!({"what": "deploy the pelican to staging"})).await?;
    let best = &reply["commands"][0];
    assert_eq!(best["command"], "fly deploy --config staging.toml", "{reply:#}");
    assert_eq!((&best["worked"], &best["failed"]), (&json!(2), &json!(1)), "{reply:#}");
    let same = reply["commands"].as_array().into_iter().flatten().filter(|found| found["command"] == best["command"]);
    assert_eq!(same.count(), 1);
    Ok(())
}

#[tokio::test]
async fn withholds_what_a_file_lost_and_cuts_what_is_too_long() -> Result<()> {
    let stack = Stack::running().await?;
    let session = Conversation::new("/home/dev/widgets");
    fails(&stack, &session, "./start.sh", "the pelican has no password").await?;
    edits(&stack, &session, "/home/dev/widgets/.env", &format!("DB_PASSWORD={}-Zx81-qq", "hunter2")).await?;
    stack.post_bare(&session.runs("./start.sh").1).await?;
    let reply = ask(&stack, "find_fix", &json!({"error": "the pelican has no password"})).await?;
    let step = &reply["fixes"][0]["steps"][0];
    assert!(step["input"]["new_string"].as_str().is_some_and(|text| text.contains("left out")), "{reply:#}");

    let long = Call {
        tool: "Write",
        input: json!({"file_path": "/home/dev/widgets/a.txt", "content": "walrus ".repeat(9_000)}),
        outcome: Outcome::Response(json!("written")),
    };
    stack.post_bare(&session.calls(long).1).await?;
    let found = ask(&stack, "search", &json!({"query": "walrus", "max_tokens": 300})).await?;
    assert!(found["shown"].as_u64() >= Some(1), "however little there is, the best hit is shown: {found:#}");
    let history = ask(&stack, "file_history", &json!({"path": "widgets/a.txt"})).await?;
    let id = history["touches"][0]["id"].as_str().context("the call that wrote it")?;
    let url = stack.url(&format!("/api/observations/{id}?max_tokens=500"));
    let shown: Value = stack.client().get(url).bearer_auth(stack.token()).send().await?.json().await?;
    let call = &shown["observations"][0];
    assert_eq!(call["input"]["file_path"], "/home/dev/widgets/a.txt", "{shown:#}");
    assert!(
        call["input"]["content"].as_str().is_some_and(|text| text.len() < 2_000 && text.contains("bytes left out"))
    );
    assert!(call["cut"][0].as_str().is_some_and(|cut| cut.starts_with("input.content: ")), "{shown:#}");
    Ok(())
}

fn touches(reply: &Value) -> impl Iterator<Item = &Value> {
    reply["touches"].as_array().into_iter().flatten()
}

async fn fails(stack: &Stack, session: &Conversation, command: &str, error: &str) -> Result<()> {
    let call = Call { tool: "Bash", input: json!({"command": command}), outcome: Outcome::Error(error.to_owned()) };
    stack.post_bare(&session.calls(call).1).await?;
    Ok(())
}

async fn edits(stack: &Stack, session: &Conversation, path: &str, new: &str) -> Result<()> {
    let input = json!({"file_path": path, "old_string": "old", "new_string": new});
    let call = Call { tool: "Edit", input, outcome: Outcome::Response(json!({"filePath": path})) };
    stack.post_bare(&session.calls(call).1).await?;
    Ok(())
}

async fn ask(stack: &Stack, tool: &str, arguments: &Value) -> Result<Value> {
    let answer = stack.post(&format!("/api/observations/{tool}")).json(arguments).send().await?;
    anyhow::ensure!(answer.status().is_success(), "{tool}: {}", answer.text().await?);
    answer.json().await.context("reading a reply")
}

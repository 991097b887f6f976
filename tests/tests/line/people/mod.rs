//! Several people on one server: what is recorded in the same repository is each one's own until the operator shares it, whichever way
//! it is asked for.

mod asked;
mod whose;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use chrono::Utc;
use memory::access::Scope;
use memory::store::tokens::{self, NewToken};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tests::conversation::{Call, Conversation, Event, Outcome};
use tests::stack::Stack;
use uuid::Uuid;

use asked::{Person, check_each_finds, check_every_way};

/// What all of them have cloned, each to the same place on a machine of their own.
const REMOTE: &str = "git@git.example:team/ledger.git";
const ROOT: &str = "/home/dev/ledger";
const ADAS_KEY: &str = "person:1/remote:git.example/team/ledger";
const KEY: &str = "remote:git.example/team/ledger";

/// The operator, ada and bob, each with a word that nobody else says.
async fn people(stack: &Stack) -> Result<[Person; 3]> {
    let mut persons = Vec::new();
    for (name, secret) in [("ada", "zebrafinch"), ("bob", "quokkapod")] {
        let new = NewToken { name, scopes: &[Scope::Ingest, Scope::Recall], person: Some(name) };
        let token = tokens::create(stack.database().pool(), new, "operator").await?;
        persons.push(Person { name, secret, token });
    }
    let bob = persons.pop().context("two persons")?;
    let ada = persons.pop().context("two persons")?;
    Ok([Person { name: "operator", secret: "nutcracker", token: stack.token().to_owned() }, ada, bob])
}

/// Posts an event as that one's hook does, from a checkout with a remote.
async fn post(stack: &Stack, token: &str, event: &Event, prefer: &str) -> Result<Response> {
    let body = json!({
        "envelope": 1, "event_id": Uuid::new_v4(), "agent": "claude-code", "event": event.name,
        "occurred_at_us": Utc::now().timestamp_micros(), "cwd": ROOT,
        "git": {"root": ROOT, "common_dir": format!("{ROOT}/.git"), "remote_url": REMOTE, "branch": "main", "head": null,
                "created_at_us": 1_700_000_000_000_001_i64, "inode": 42},
        // What a client says of this is not believed.
        "person": 1, "person_id": 1, "who": "operator",
        "payload": event.payload,
    });
    let request = stack.client().post(stack.url("/api/hooks/claude-code")).bearer_auth(token).header("prefer", prefer);
    request.json(&body).send().await.context("posting an event")
}

async fn record(stack: &Stack, person: &Person, event: &Event) -> Result<Option<Value>> {
    let answer = post(stack, &person.token, event, "wait").await?;
    match answer.status() {
        StatusCode::NO_CONTENT => Ok(None),
        StatusCode::OK => Ok(Some(answer.json().await?)),
        status => anyhow::bail!("{status}: {}", answer.text().await?),
    }
}

fn conversation() -> Conversation {
    Conversation { folder: PathBuf::from(ROOT), ..Conversation::new(ROOT) }
}

/// A session in which a test fails, a file is edited, and the test works.
async fn work(stack: &Stack, person: &Person) -> Result<Conversation> {
    let secret = person.secret;
    let mut session = conversation();
    let failure = Call {
        tool: "Bash",
        input: json!({"command": format!("cargo test ledger_migration -- {secret}")}),
        outcome: Outcome::Error(format!("error[E0308]: mismatched ledger types in {secret}")),
    };
    let edit = Call {
        tool: "Edit",
        input: json!({"file_path": format!("{ROOT}/src/{secret}/ledger.rs"), "old_string": "a", "new_string": secret}),
        outcome: Outcome::Response(json!({"filePath": "src/ledger.rs"})),
    };
    record(stack, person, &session.starts()).await?;
    record(stack, person, &session.asks(&format!("Why does the ledger migration test fail on {secret}?"))).await?;
    record(stack, person, &session.calls(failure).1).await?;
    record(stack, person, &session.calls(edit).1).await?;
    record(stack, person, &session.runs(&format!("cargo test ledger_migration -- {secret}")).1).await?;
    record(stack, person, &session.stops(&format!("The ledger types of {secret} were mixed up."))).await?;
    for project in [json!("ledger"), Value::Null] {
        person
            .must(stack, "save_memory", json!({"text": format!("A ledger note on {secret}"), "project": project}))
            .await?;
    }
    let pattern = "git push .*--force( |$)";
    let rule = format!("Never force a push of the ledger: {secret}");
    for project in [json!("ledger"), Value::Null] {
        let lesson = json!({"rule": rule, "trigger_tool": "Bash", "trigger_pattern": pattern, "project": project});
        person.must(stack, "create_lesson", lesson).await?;
    }
    Ok(session)
}

#[tokio::test]
async fn each_finds_only_their_own_until_it_is_shared_and_then_all_of_it() -> Result<()> {
    let stack = Stack::running().await?;
    let people = people(&stack).await?;
    for person in &people {
        work(&stack, person).await?;
    }
    let [operator, ada, bob] = &people;
    check_every_way(&stack).await?;
    check_each_finds(&stack, ada, &[ada]).await?;
    check_each_finds(&stack, bob, &[bob]).await?;
    check_each_finds(&stack, operator, &[operator, ada, bob]).await?;
    asked::check_others_are_not_there(&stack, ada, bob).await?;
    asked::check_others_are_not_there(&stack, bob, operator).await?;

    // The operator has recorded in the same repository, so that there are two that could be meant.
    let home = stack.home();
    let refused = tests::operator::refused(home, &["project", "share", ADAS_KEY]).await?;
    assert!(refused.contains(KEY) && refused.contains("cargo xtask project merge"), "{refused}");
    let refused = tests::operator::refused(home, &["project", "merge", ADAS_KEY, KEY]).await?;
    assert!(refused.contains("cargo xtask project share"), "{refused}");
    check_each_finds(&stack, bob, &[bob]).await?;

    tests::operator::must(home, &["project", "share", KEY]).await?;
    check_each_finds(&stack, ada, &[operator, ada]).await?;
    tests::operator::must(home, &["project", "merge", ADAS_KEY, KEY]).await?;
    check_each_finds(&stack, bob, &[operator, ada, bob]).await?;
    // What bob does from now on in the same repository is everybody's.
    let mut session = conversation();
    record(&stack, bob, &session.asks("Is the ledger migration of quokkapod done, thornbill?")).await?;
    let found = ada.must(&stack, "search", json!({"query": "thornbill"})).await?;
    assert!(found["hits"].to_string().contains("thornbill"), "{found}");

    let listed = tests::operator::must(home, &["project", "list"]).await?;
    assert!(
        listed.contains(", shared") && listed.contains("bob's (person:2/remote:git.example/team/ledger)"),
        "{listed}"
    );
    let people = tests::operator::json(&stack, &["people", "--json"]).await?;
    assert_eq!((&people[0]["name"], &people[1]["name"]), (&json!("ada"), &json!("bob")));
    let log: Vec<String> =
        sqlx::query_scalar("select action from mem_audit_log where action like '%project%' order by id")
            .fetch_all(stack.database().pool())
            .await?;
    assert_eq!(log, ["share_project", "merge_projects"]);

    let refused = tests::operator::refused(home, &["project", "unshare", KEY]).await?;
    assert!(refused.contains("cargo xtask project unmerge"), "{refused}");
    tests::operator::must(home, &["project", "unmerge", "1"]).await?;
    let told = tests::operator::run(&stack, &["project", "unshare", KEY], &[]).await?;
    ensure!(told.code == Some(0) && told.stderr.contains("of others stay"), "{told:?}");
    check_each_finds(&stack, ada, &[ada]).await?;
    check_each_finds(&stack, bob, &[bob]).await?;
    // Neither the places on their machines nor a running session lead them into what is not theirs.
    record(&stack, bob, &conversation().asks("The ledger migration of willowtit")).await?;
    let found = bob.must(&stack, "search", json!({"query": "willowtit"})).await?;
    assert!(found["hits"].to_string().contains("willowtit"), "{found}");
    Ok(())
}

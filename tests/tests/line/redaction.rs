//! No secret is kept, whichever way it comes in: a search for every one of them through every column of every table, the
//! spool and the server's log.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool, Row};
use tests::canaries::{Canary, canaries};
use tests::conversation::{Call, Conversation, Event, Outcome};
use tests::mcp_client::{OverHttp, OverStdio, Peer};
use tests::stack::Stack;

/// A word that is no secret: the search must find it, or it would find nothing.
const CONTROL: &str = "axolotlcontrol";
/// Each secret comes in by this many of the ways.
const WAYS_EACH: usize = 3;

#[tokio::test]
async fn keeps_no_secret_that_comes_in_by_any_way() -> Result<()> {
    let stack = Stack::running().await?;
    let all = canaries(2026);
    assert!(all.len() >= 300);
    let mut session = Conversation::new(repository(&stack, &all[0])?);
    let mut over_http = OverHttp::connect(&stack).await?;
    let mut over_stdio = OverStdio::start(stack.home().root()).await?;
    over_stdio.initialize().await?;

    stack.hook(&session.starts()).await?;
    stack.post_bare(&session.asks(&format!("Remember {CONTROL}"))).await?;
    for (number, canary) in all.iter().enumerate() {
        for way in 0..WAYS_EACH {
            match (number + way * 3) % 9 {
                7 => save(&mut over_http, canary).await?,
                8 => save(&mut over_stdio, canary).await?,
                way => {
                    let event = event(&mut session, way, &canary.text);
                    // Most past the hook program, to save the time of its start.
                    if number % 10 == 0 {
                        stack.hook(&event).await?;
                    } else {
                        stack.post_bare(&event).await?;
                    }
                }
            }
        }
    }
    stack.hook(&session.event("SessionEnd", json!({"reason": all[1].text}))).await?;
    stack.drained().await?;

    let pool = stack.database().pool();
    assert!(!columns_with(pool, &[CONTROL.to_owned()]).await?.is_empty(), "the search finds what is there");
    let secrets: Vec<_> = all.iter().map(|canary| canary.secret.clone()).collect();
    let found = columns_with(pool, &secrets).await?;
    assert!(found.is_empty(), "{found:#?}");

    let log = stack.server_output();
    let spool = texts_below(&stack.home().spool())?;
    for canary in &all {
        assert!(!log.contains(&canary.secret), "the server's log holds a {}", canary.kind);
        assert!(!spool.contains(&canary.secret), "the spool holds a {}", canary.kind);
    }
    Ok(())
}

/// The text as a prompt, in a tool's input, output or error, or as an answer.
fn event(session: &mut Conversation, way: usize, text: &str) -> Event {
    let silent = || Outcome::Response(json!({"stdout": "", "stderr": ""}));
    let call = match way {
        0 => return session.asks(text),
        1 => return session.stops(text),
        2 => Call { tool: "Bash", input: json!({"command": text}), outcome: silent() },
        3 => {
            let nested =
                json!({"edits": [{"old_string": "a", "new_string": text}], "body": json!({"text": text}).to_string()});
            Call { tool: "MultiEdit", input: json!({"deep": {"deeper": [nested]}}), outcome: silent() }
        }
        4 => {
            let response = json!({"stdout": text, "stderr": ""});
            Call { tool: "Bash", input: json!({"command": "env"}), outcome: Outcome::Response(response) }
        }
        5 => {
            let response = json!({"rows": [{"line": text}], "count": 1});
            Call { tool: "mcp__db__query", input: json!({text: "as a name"}), outcome: Outcome::Response(response) }
        }
        _ => Call {
            tool: "Bash",
            input: json!({"command": "make"}),
            outcome: Outcome::Error(format!("Exit code 1\n{text}")),
        },
    };
    session.calls(call).1
}

async fn save(peer: &mut impl Peer, canary: &Canary) -> Result<()> {
    let response = peer.call("save_memory", json!({"text": canary.text, "title": canary.text})).await?;
    assert_ne!(response["result"]["isError"], Value::Bool(true), "{response}");
    Ok(())
}

/// A folder whose remote holds a password, and which the hook reads.
fn repository(stack: &Stack, canary: &Canary) -> Result<std::path::PathBuf> {
    let folder = stack.scratch().join("widgets");
    let git = folder.join(".git");
    std::fs::create_dir_all(&git)?;
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
    let remote = format!("https://dev:{}@example.com/acme/widgets.git", canary.secret);
    std::fs::write(git.join("config"), format!("[remote \"origin\"]\n\turl = {remote}\n"))?;
    Ok(folder)
}

/// Where these texts stand, in any case, as `table.column: text`. An index of words holds them in pieces.
async fn columns_with(pool: &PgPool, texts: &[String]) -> Result<Vec<String>> {
    let columns = sqlx::query(
        "select c.table_name::text, c.column_name::text, c.udt_name::text
         from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
         where c.table_schema = 'public' and c.table_name like 'mem\\_%' and t.table_type = 'BASE TABLE'
           and c.udt_name not in ('vector', 'halfvec')",
    )
    .fetch_all(pool)
    .await
    .context("listing the columns")?;
    assert!(columns.len() > 50, "only {} columns", columns.len());
    let pieces: Vec<_> = texts.iter().filter_map(|text| longest_word(text)).collect();
    let mut found = Vec::new();
    for row in columns {
        let (table, column, kind): (String, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let query = format!(
            "select s from unnest($1::text[]) s
             where exists (select from {table} where position(lower(s) in lower(\"{column}\"::text)) > 0)"
        );
        let wanted = if kind == "tsvector" { &pieces[..] } else { texts };
        let there = sqlx::query_scalar::<_, String>(AssertSqlSafe(query)).bind(wanted).fetch_all(pool).await;
        let there = there.with_context(|| format!("searching {table}.{column}"))?;
        found.extend(there.iter().map(|text| format!("{table}.{column}: {text}")));
    }
    Ok(found)
}

/// The longest run of letters and digits, if it is long enough to be no one's word.
fn longest_word(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() >= 8);
    words.max_by_key(|word| word.len()).map(str::to_owned)
}

fn texts_below(folder: &Path) -> Result<String> {
    let mut texts = String::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("listing `{}`", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            texts.push_str(&texts_below(&path)?);
        } else if let Ok(bytes) = std::fs::read(&path) {
            texts.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    Ok(texts)
}

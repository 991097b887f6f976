//! A journal of so many tool calls, as agents and people leave one behind: sessions of ten turns, five calls a turn with results of
//! about a kilobyte, an answer to most turns. Everything comes from a seed, so that every run makes the same.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::super::{Db, StoreError};
use super::corpus::{Random, moment};

/// Turns of a session, and calls of a turn. Every tenth turn is a question without calls.
const TURNS: u64 = 10;
const CALLS: u64 = 5;
/// Sessions in one statement.
const BATCH: u64 = 40;
const PROJECTS: u64 = 12;
/// The model that wrote all this, whose licence allows training on it.
const MODEL: &str = "qwen3-coder";
const VOCABULARY: usize = 6_000;

#[derive(Default)]
struct Prompts {
    sessions: Vec<i64>,
    turns: Vec<i32>,
    ids: Vec<String>,
    texts: Vec<String>,
    answers: Vec<Option<String>>,
    moments: Vec<DateTime<Utc>>,
}

#[derive(Default)]
struct Calls {
    prompts: Vec<String>,
    ids: Vec<String>,
    places: Vec<i32>,
    tools: Vec<String>,
    inputs: Vec<Value>,
    outputs: Vec<String>,
    failed: Vec<bool>,
    moments: Vec<DateTime<Utc>>,
}

/// Adds at least so many calls, with their sessions and prompts; returns how many.
pub async fn add_work(db: &Db, calls: u64) -> Result<u64, StoreError> {
    let sessions = calls.div_ceil((TURNS - 1) * CALLS);
    let mut start = 0;
    while start < sessions {
        let end = (start + BATCH).min(sessions);
        add_sessions(db, start, end).await?;
        start = end;
    }
    Ok(sessions * (TURNS - 1) * CALLS)
}

async fn add_sessions(db: &Db, from: u64, to: u64) -> Result<(), StoreError> {
    let mut tx = db.begin().await?;
    sqlx::query!(
        "insert into mem_projects (identity_key, name)
         select 'bench-work-' || number, 'work-' || number from generate_series(0, $1::bigint - 1) number on conflict do nothing",
        PROJECTS as i64,
    )
    .execute(&mut *tx)
    .await?;
    let ids = sqlx::query_scalar!(
        "insert into mem_sessions (agent, external_id, project_id, working_folder, model, started_at, last_event_at)
         select 'claude-code', 'work-' || number, project.id, '/home/somebody/src/work-' || number % $3, $4,
                timestamptz '2026-01-01' + number * interval '1 hour', timestamptz '2026-01-01' + number * interval '1 hour'
         from generate_series($1::bigint, $2::bigint - 1) number
         join mem_projects project on project.identity_key = 'bench-work-' || number % $3
         order by number
         returning id",
        from as i64,
        to as i64,
        PROJECTS as i64,
        MODEL,
    )
    .fetch_all(&mut *tx)
    .await?;
    let (mut prompts, mut calls) = (Prompts::default(), Calls::default());
    for (session, id) in (from..to).zip(ids) {
        for turn in 0..TURNS {
            add_turn(session, id, turn, &mut prompts, &mut calls);
        }
    }
    sqlx::query!(
        "insert into mem_user_prompts (session_id, turn_index, prompt_id, prompt, answer, occurred_at)
         select * from unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])",
        &prompts.sessions,
        &prompts.turns,
        &prompts.ids,
        &prompts.texts,
        &prompts.answers as &[Option<String>],
        &prompts.moments,
    )
    .execute(&mut *tx)
    .await?;
    sqlx::query!(
        "insert into mem_tool_calls (session_id, prev_user_prompt_id, prompt_id, turn_index, tool_use_id, turn_subindex, tool_name,
                                     input, output_preview, success, error, content_hash, occurred_at)
         select prompt.session_id, prompt.id, prompt.prompt_id, prompt.turn_index, call.tool_use_id, call.place, call.tool,
                call.input, call.output, not call.failed, case when call.failed then 'Exit code 1' end,
                sha256(call.tool_use_id::bytea), call.occurred_at
         from unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::jsonb[], $6::text[], $7::bool[], $8::timestamptz[])
              as call (prompt_id, tool_use_id, place, tool, input, output, failed, occurred_at)
         join mem_user_prompts prompt using (prompt_id)",
        &calls.prompts,
        &calls.ids,
        &calls.places,
        &calls.tools,
        &calls.inputs,
        &calls.outputs,
        &calls.failed,
        &calls.moments,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}

fn add_turn(session: u64, row: i64, turn: u64, prompts: &mut Prompts, calls: &mut Calls) {
    let number = session * TURNS + turn;
    let mut random = Random::of(number + 1);
    let id = format!("work-{number}");
    prompts.sessions.push(row);
    prompts.turns.push(turn as i32);
    prompts.ids.push(id.clone());
    prompts.texts.push(format!("{}?", words(&mut random, 12, 40)));
    let is_answered = turn + 1 == TURNS || random.below(10) < 8;
    prompts.answers.push(is_answered.then(|| format!("It {}.", words(&mut random, 15, 60))));
    prompts.moments.push(moment(number));
    // A question that needs no tool.
    if turn + 1 == TURNS {
        return;
    }
    for place in 0..CALLS {
        let folder = format!("/home/somebody/src/work-{}", session % PROJECTS);
        let file = format!("{folder}/src/{}.rs", word(&mut random));
        let (tool, input) = match random.below(6) {
            0 => ("Read", json!({ "file_path": file })),
            1 => ("Grep", json!({ "pattern": word(&mut random), "path": folder })),
            2 => (
                "Edit",
                json!({ "file_path": file, "old_string": words(&mut random, 4, 20), "new_string": words(&mut random, 4, 20) }),
            ),
            3 => ("Glob", json!({ "pattern": format!("**/{}*.rs", word(&mut random)) })),
            _ => (
                "Bash",
                json!({ "command": format!("cargo test {}", word(&mut random)), "description": words(&mut random, 3, 6) }),
            ),
        };
        calls.prompts.push(id.clone());
        calls.ids.push(format!("{id}-{place}"));
        calls.places.push(place as i32);
        calls.tools.push(tool.to_owned());
        calls.inputs.push(input);
        let lines = 4 + random.below(24);
        calls.outputs.push((0..lines).map(|_| words(&mut random, 4, 12)).collect::<Vec<_>>().join("\n"));
        calls.failed.push(random.below(12) == 0);
        calls.moments.push(moment(number));
    }
}

fn words(random: &mut Random, least: usize, most: usize) -> String {
    let count = least + random.below(most - least);
    (0..count).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

/// One of some thousand words of nobody's language, short ones more often.
fn word(random: &mut Random) -> String {
    const SYLLABLES: [&str; 18] = [
        "ta", "re", "mo", "in", "der", "ki", "lo", "sen", "va", "per", "ul", "con", "fi", "ge", "st", "an", "qua",
        "ber",
    ];
    let most = random.below(VOCABULARY) + 1;
    let mut number = random.below(most);
    let mut word = String::new();
    loop {
        word.push_str(SYLLABLES[number % SYLLABLES.len()]);
        number /= SYLLABLES.len();
        if number == 0 {
            return word;
        }
    }
}

//! How a failure was mended: the calls that failed like an error text, each with the call like it that worked afterwards in the same
//! session, and what was done in between.
//!
//! Failures are ranked by their own words among failures only, and by the rankings of the search, which also know the meaning and
//! what stood around: so a failure is found both by its error and by what was said of it.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::bm25::Counts;
use super::calls::{self, Call, Inputs};
use super::search::{rankings, weights};
use super::touches::{EDITING_TOOLS, Touch, touches};
use super::{Filter, RankedList, RecallError, bm25, fuse, lookup, plan};
use crate::access::Projects;
use crate::analyze::Query;
use crate::embed::QueryVector;
use crate::ids::{DocumentId, DocumentKind};
use crate::shell;
use crate::store::Db;

/// So many failures are followed up.
const MOST_FAILURES: usize = 40;
/// So many calls of the same tool after a failure are looked at.
const FOLLOWING: i64 = 60;
/// So many of the steps before the fix are told: the last ones.
const MOST_STEPS: usize = 8;
/// What ranking failures by their own words counts beside the search's rankings.
const OWN_WORDS: f64 = 2.0;
/// What a failure counts of which nothing that worked is known.
const WITHOUT_FIX: f64 = 0.5;

/// A failure, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Fix {
    pub failed: Call,
    /// The next call like it that worked; `None`: there is none in its session.
    pub worked: Option<Call>,
    /// How many calls like it failed before one worked, this one included.
    pub attempts: usize,
    /// What was changed or run between the two, in its order: the last steps.
    pub steps: Vec<Step>,
    /// How many steps before those are left out.
    pub earlier_steps: usize,
    /// How often the same was seen in other sessions.
    pub seen_again: usize,
}

/// A call between a failure and what worked.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub call: Call,
    pub touch: Touch,
}

/// Finds how failures like this one were mended; the most alike first.
pub async fn find_fix(
    db: &Db,
    error: &str,
    vector: Option<QueryVector>,
    projects: Projects,
    limit: usize,
) -> Result<Vec<Fix>, RecallError> {
    let text = error.trim();
    if text.is_empty() {
        return Err(RecallError::EmptyQuery);
    }
    let filter = Filter { projects, kinds: vec![DocumentKind::Call], ..Filter::default() };
    let mut lists = rankings(db, text, vector, &filter).await?;
    let mut connection = db.acquire().await?;
    let own_words = failures_by_words(&mut connection, text, &filter).await?;
    lists.push(RankedList::of("failures", OWN_WORDS, own_words));
    let failures = failures(&mut connection, lists).await?;
    let following = following(&mut connection, &failures).await?;

    let mut fixes: Vec<_> =
        failures.into_iter().map(|(failed, score)| followed_up(failed, score, &following)).collect();
    fixes.sort_by(|one, two| two.0.total_cmp(&one.0));
    let mut fixes = collapsed(fixes.into_iter().map(|(_, fix)| fix));
    fixes.truncate(limit);
    tell_steps(&mut connection, &mut fixes).await?;
    Ok(fixes)
}

/// Calls that failed, by their own words.
async fn failures_by_words(
    connection: &mut PgConnection,
    text: &str,
    filter: &Filter,
) -> Result<Vec<DocumentId>, RecallError> {
    const MOST: i64 = 2_000;
    let query = Query::parse(text);
    let statistics = lookup::statistics(connection, &query, filter).await?;
    let Some(wanted) = plan::lookup(&statistics.terms, statistics.share) else { return Ok(Vec::new()) };
    let projects = filter.projects.ids();
    let rows = sqlx::query!(
        r#"with term as materialized (
               select lexeme::tsquery as lexeme, place from unnest($2::text[]) with ordinality as term (lexeme, place)
           )
           select document_id, length,
                  array(select ts_rank('{1,1,1,1}', unpacked, lexeme) from term order by place) as "ranks!: Vec<f32>"
           from (select document_id, length, lexemes || '' as unpacked
                 from mem_search_index document
                 where document_kind = 'call' and lexemes @@ $1::text::tsquery
                   and ($3::text is null or lexemes @@ $3::text::tsquery)
                   and ($4::bigint[] is null or project_id = any($4))
                   and (select not success from mem_tool_calls where id = document_id)
                 limit $5) document"#,
        wanted.tsquery(&statistics.terms),
        &lookup::terms(&query),
        query.condition,
        projects.as_deref(),
        MOST,
    )
    .fetch_all(connection)
    .await?;
    let weights = weights(&statistics);
    let mut scored: Vec<_> = rows
        .into_iter()
        .map(|row| {
            let occurrences = row.ranks.into_iter().map(bm25::occurrences).collect();
            let score = weights.score(&Counts { occurrences, length: f64::from(row.length) }, 1.0);
            (score, DocumentId { kind: DocumentKind::Call, row: row.document_id })
        })
        .collect();
    scored.sort_by(|one, two| two.0.total_cmp(&one.0).then(two.1.cmp(&one.1)));
    Ok(scored.into_iter().map(|(_, id)| id).collect())
}

/// Of what was ranked the calls that failed, with their scores, best first.
async fn failures(connection: &mut PgConnection, mut lists: Vec<RankedList>) -> Result<Vec<(Call, f64)>, RecallError> {
    let ranked: Vec<_> = lists.iter().flat_map(|list| &list.documents).map(|id| id.row).collect();
    let failed = sqlx::query_scalar!("select id from mem_tool_calls where id = any($1) and not success", &ranked)
        .fetch_all(&mut *connection)
        .await?;
    for list in &mut lists {
        list.documents.retain(|id| failed.contains(&id.row));
    }
    let mut fused = fuse(&lists);
    fused.truncate(MOST_FAILURES);
    let rows: Vec<_> = fused.iter().map(|fused| fused.id.row).collect();
    let calls = calls::read(connection, &rows, Inputs::WithoutTexts).await?;
    let mut calls: HashMap<_, _> = calls.into_iter().map(|call| (call.line.id, call)).collect();
    Ok(fused.into_iter().filter_map(|fused| Some((calls.remove(&fused.id)?, fused.score))).collect())
}

/// Calls by session, in their order.
type Following = HashMap<i64, BTreeMap<(DateTime<Utc>, i64), Call>>;

/// The calls of the same tool after each failure.
async fn following(connection: &mut PgConnection, failures: &[(Call, f64)]) -> Result<Following, RecallError> {
    let rows: Vec<_> = failures.iter().map(|(call, _)| call.line.id.row).collect();
    let ids = sqlx::query_scalar!(
        r#"select distinct later.id as "id!"
           from mem_tool_calls failed
           cross join lateral (
               select id from mem_tool_calls later
               where later.session_id = failed.session_id and later.tool_name = failed.tool_name
                 and (later.occurred_at, later.id) > (failed.occurred_at, failed.id)
               order by later.occurred_at, later.id limit $2) later
           where failed.id = any($1)"#,
        &rows,
        FOLLOWING,
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut following = Following::new();
    for call in calls::read(connection, &ids, Inputs::WithoutTexts).await? {
        following.entry(call.session_row).or_default().insert(call.place(), call);
    }
    Ok(following)
}

/// A failure with what worked after it, and its score.
fn followed_up(failed: Call, score: f64, following: &Following) -> (f64, Fix) {
    use std::ops::Bound::{Excluded, Unbounded};
    let mut attempts = 1;
    let mut worked = None;
    let later = following
        .get(&failed.session_row)
        .into_iter()
        .flat_map(|calls| calls.range((Excluded(failed.place()), Unbounded)).map(|(_, call)| call));
    for call in later.filter(|call| is_like(&failed, call)) {
        if !call.failed() {
            worked = Some(call.clone());
            break;
        }
        attempts += 1;
    }
    let score = if worked.is_some() { score } else { score * WITHOUT_FIX };
    (score, Fix { failed, worked, attempts, steps: Vec::new(), earlier_steps: 0, seen_again: 0 })
}

/// Whether a later call of a session tries again what another did: the same tool, and the same program, or the same file.
fn is_like(one: &Call, other: &Call) -> bool {
    if one.tool_name != other.tool_name {
        return false;
    }
    match (shell::command_of(&one.input), shell::command_of(&other.input)) {
        (Some(one), Some(other)) => shell::are_alike(&one, &other),
        (None, None) => {
            let files = |call: &Call| -> Vec<String> {
                let paths = touches(&call.tool_name, &call.input).into_iter();
                paths.map(|(path, _)| path.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase()).collect()
            };
            let (one, other) = (files(one), files(other));
            one.is_empty() && other.is_empty() || one.iter().any(|file| other.contains(file))
        }
        _ => false,
    }
}

/// One story once: attempts that the same call ended, and the same failure with the same fix in other sessions. Failures of one
/// session of which nothing is known to have worked are one story too where they ran the same.
fn collapsed(fixes: impl Iterator<Item = Fix>) -> Vec<Fix> {
    let mut kept: Vec<Fix> = Vec::new();
    for fix in fixes {
        if let Some(known) = kept.iter_mut().find(|known| is_same_attempt(known, &fix)) {
            known.attempts = known.attempts.max(fix.attempts);
        } else if let Some(known) = kept.iter_mut().find(|known| tells_the_same(known, &fix)) {
            known.seen_again += 1;
        } else {
            kept.push(fix);
        }
    }
    kept
}

fn is_same_attempt(one: &Fix, other: &Fix) -> bool {
    let id = |fix: &Fix| fix.worked.as_ref().map(|call| call.line.id);
    one.failed.session_row == other.failed.session_row
        && id(one) == id(other)
        && (id(one).is_some() || what(&one.failed) == what(&other.failed))
}

fn tells_the_same(one: &Fix, other: &Fix) -> bool {
    let ending = |fix: &Fix| fix.worked.as_ref().map(what);
    what(&one.failed) == what(&other.failed) && ending(one) == ending(other)
}

/// What a call did, wherever it was run.
fn what(call: &Call) -> String {
    shell::command_of(&call.input).map_or_else(|| call.line.headline.clone(), |command| shell::normalised(&command))
}

/// Adds what was changed and run between each failure and what worked.
async fn tell_steps(connection: &mut PgConnection, fixes: &mut [Fix]) -> Result<(), RecallError> {
    const MOST: i64 = 80;
    let pairs: Vec<_> =
        fixes.iter().filter_map(|fix| Some((fix.failed.line.id.row, fix.worked.as_ref()?.line.id.row))).collect();
    let (failed, worked): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let rows = sqlx::query!(
        r#"select failed.id as failed_id, step.id as "id!"
           from unnest($1::bigint[], $2::bigint[]) as fix (failed_id, worked_id)
           join mem_tool_calls failed on failed.id = fix.failed_id
           join mem_tool_calls worked on worked.id = fix.worked_id
           cross join lateral (
               select id from mem_tool_calls step
               where step.session_id = failed.session_id and success
                 and (step.occurred_at, step.id) > (failed.occurred_at, failed.id)
                 and (step.occurred_at, step.id) < (worked.occurred_at, worked.id)
                 and (step.tool_name ~* $3 or step.input ? 'command' or step.input ? 'cmd')
               order by step.occurred_at desc, step.id desc limit $4) step"#,
        &failed,
        &worked,
        EDITING_TOOLS,
        MOST,
    )
    .fetch_all(&mut *connection)
    .await?;
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let calls: HashMap<_, _> =
        calls::read(connection, &ids, Inputs::Whole).await?.into_iter().map(|call| (call.line.id.row, call)).collect();
    for fix in fixes {
        let of_fix = rows.iter().filter(|row| row.failed_id == fix.failed.line.id.row);
        let mut steps: Vec<_> = of_fix.filter_map(|row| step(calls.get(&row.id)?.clone())).collect();
        steps.sort_by_key(|step| step.call.place());
        fix.earlier_steps = steps.len().saturating_sub(MOST_STEPS);
        fix.steps = steps.split_off(fix.earlier_steps);
    }
    Ok(())
}

/// A call as a step, if it changed something or ran more than a look around.
fn step(call: Call) -> Option<Step> {
    let edits = touches(&call.tool_name, &call.input).iter().any(|(_, touch)| *touch == Touch::Edited);
    let runs = shell::command_of(&call.input).is_some_and(|command| !shell::only_looks(&command));
    let touch = if edits { Touch::Edited } else { Touch::Ran };
    (edits || runs).then_some(Step { call, touch })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::recall::Line;

    fn call(row: i64, session_row: i64, tool_name: &str, input: Value) -> Call {
        Call {
            line: Line {
                id: DocumentId { kind: DocumentKind::Call, row },
                occurred_at: chrono::DateTime::from_timestamp(row, 0).unwrap(),
                project: None,
                headline: String::new(),
                failed: Some(false),
            },
            agent: "claude-code".into(),
            session: "s".into(),
            branch: None,
            tool_name: tool_name.into(),
            input,
            error: None,
            prompt: None,
            session_row,
            working_folder: None,
            root: None,
        }
    }

    fn bash(row: i64, command: &str) -> Call {
        call(row, 1, "Bash", json!({ "command": command }))
    }

    fn failed(mut call: Call) -> Call {
        call.line.failed = Some(true);
        call
    }

    fn session(calls: Vec<Call>) -> Following {
        let mut following = Following::new();
        for call in calls {
            following.entry(call.session_row).or_default().insert(call.place(), call);
        }
        following
    }

    #[test]
    fn takes_the_next_call_like_it_that_worked() {
        let later = session(vec![
            bash(2, "cargo fmt"),
            failed(bash(3, "cargo test migration")),
            bash(4, "cd /w && cargo test migration -- --nocapture | tail"),
            bash(5, "cargo test"),
        ]);
        let (score, fix) = followed_up(failed(bash(1, "cargo test")), 1.0, &later);
        assert_eq!(fix.worked.map(|call| call.line.id.row), Some(4));
        assert_eq!((fix.attempts, score), (2, 1.0));
        let (score, fix) = followed_up(failed(bash(1, "npm test")), 1.0, &later);
        assert_eq!((fix.worked, score), (None, WITHOUT_FIX));
    }

    #[test]
    fn takes_an_edit_of_the_same_file_for_another_attempt() {
        let edit = |row, path: &str| call(row, 1, "Edit", json!({ "file_path": path }));
        let (_, fix) =
            followed_up(failed(edit(1, "/w/a.rs")), 1.0, &session(vec![edit(2, "/w/b.rs"), edit(3, "/w/a.rs")]));
        assert_eq!(fix.worked.map(|call| call.line.id.row), Some(3));
    }

    #[test]
    fn tells_one_story_once() {
        let fix = |failed: Call, worked: Option<Call>| Fix {
            failed,
            worked,
            attempts: 1,
            steps: Vec::new(),
            earlier_steps: 0,
            seen_again: 0,
        };
        let elsewhere = |row, command: &str| call(row, 2, "Bash", json!({ "command": command }));
        let kept = collapsed(
            [
                fix(bash(2, "cargo test b"), Some(bash(3, "cargo test"))),
                fix(bash(1, "cargo test a"), Some(bash(3, "cargo test"))),
                fix(elsewhere(7, "cd /x && cargo test b"), Some(elsewhere(8, "cargo test"))),
                fix(bash(9, "npm test"), None),
            ]
            .into_iter(),
        );
        let told: Vec<_> = kept.iter().map(|fix| (fix.failed.line.id.row, fix.seen_again)).collect();
        assert_eq!(told, [(2, 1), (9, 0)]);
    }

    #[test]
    fn tells_what_was_changed_or_run_and_not_what_was_looked_at() {
        let touch = |call| step(call).map(|step| step.touch);
        assert_eq!(touch(call(1, 1, "Edit", json!({"file_path": "a"}))), Some(Touch::Edited));
        assert_eq!(touch(bash(1, "sed -i s/a/b/ x")), Some(Touch::Edited));
        assert_eq!(touch(bash(1, "docker compose up -d db")), Some(Touch::Ran));
        assert_eq!(touch(bash(1, "cat x | grep y")), None);
        assert_eq!(touch(call(1, 1, "TodoWrite", json!({"todos": []}))), None);
    }
}

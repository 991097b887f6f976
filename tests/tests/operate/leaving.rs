//! Leaving with everything, and coming back: the same rows with their edits, deletions and relations; and what happens with an export
//! that is not as it was made.

use std::path::Path;

use anyhow::{Context, Result};
use memory::store::{self, TableSum};
use tests::database::Database;
use tests::many_rows::{self, Size};
use tests::operator;
use tests::stack::Stack;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_exported_is_imported_row_for_row() -> Result<()> {
    let old = Stack::stopped().await?;
    many_rows::fill(old.database().pool(), Size { calls: 20_000, vectors: 200 }).await?;
    let full = exported(&old).await?;
    assert!(full.iter().all(|sum| sum.rows > 0), "every table has rows: {full:?}");
    for target in ["all.ndjson", "folder"] {
        let path = old.scratch().join(target);
        let path = path.to_str().context("a path")?;
        operator::must(old.home(), &["export", path]).await?;
        // That it was exported stands in the log, and in the export.
        let before = exported(&old).await?;
        let taken = operator::refused(old.home(), &["export", path]).await?;
        assert!(taken.contains("is there already"), "{taken}");

        let new = empty().await?;
        operator::must(new.home(), &["import", path]).await?;
        assert_eq!(exported(&new).await?, before, "{target}");
        let next: i64 =
            sqlx::query_scalar("insert into mem_projects (identity_key, name) values ('k', 'n') returning id")
                .fetch_one(new.database().pool())
                .await?;
        assert_eq!(next, 21, "numbers go on where they stood");
        same_rules(&old, &new).await?;

        let again = operator::refused(new.home(), &["import", path]).await?;
        assert!(
            again.contains("the database is not empty: mem_projects has 21 rows") && again.contains("hint: "),
            "{again}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_was_changed_is_refused_with_its_line_and_nothing_of_it_stays() -> Result<()> {
    let old = Stack::stopped().await?;
    many_rows::fill(old.database().pool(), Size { calls: 2_000, vectors: 20 }).await?;
    let path = old.scratch().join("all.ndjson");
    operator::must(old.home(), &["export", path.to_str().context("a path")?]).await?;
    let text = std::fs::read_to_string(&path)?;
    let new = empty().await?;
    let before = store::table_sums(new.database().pool()).await?;

    let line = |beginning: &str| text.lines().position(|line| line.starts_with(beginning)).context("no such line");
    let of = |table: &str| format!(r#"{{"table":"{table}","row":"#);
    let call = line(&of("mem_tool_calls"))?;
    let spoilt = |at: usize, spoil: &dyn Fn(&str) -> String| -> String {
        let lines =
            text.lines().enumerate().map(|(number, line)| if number == at { spoil(line) } else { line.to_owned() });
        lines.flat_map(|line| [line, "\n".to_owned()]).collect()
    };
    let cases: [(&str, String, Vec<String>); 7] = [
        ("cut off", text[..text.len() / 2].to_owned(), vec!["line ".into()]),
        (
            "without its end",
            text[..text.rfind("{\"end\"").context("no end")?].to_owned(),
            vec!["it was cut off".into()],
        ),
        ("no JSON", spoilt(call + 700, &|line| line.replacen("\"row\":{", "\"row\":{{", 1)), vec![at(call + 700)]),
        (
            "another type",
            spoilt(call + 700, &|line| line.replacen("\"session_id\":", "\"session_id\":\"x\",\"was\":", 1)),
            vec![at(call + 700), "invalid input syntax".into()],
        ),
        (
            "a session that is not there",
            spoilt(call + 3, &|line| line.replacen("\"session_id\":", "\"session_id\":999999,\"was\":", 1)),
            vec![at(call + 3), "mem_tool_calls_session_fkey".into()],
        ),
        (
            "a row twice",
            spoilt(call + 5, &|line| format!("{line}\n{line}")),
            vec![at(call + 6), "duplicate key".into()],
        ),
        (
            "another text",
            spoilt(call, &|line| line.replacen("Bash", "Lash", 1)),
            vec!["rows of mem_tool_calls are not as".into()],
        ),
    ];
    let target = new.scratch().join("spoilt.ndjson");
    for (what, content, told) in cases {
        assert_ne!(content, text, "{what}");
        let said = import(&new, &target, &content).await?;
        for part in told {
            assert!(said.contains(&part), "{what}: `{part}` is missing in {said}");
        }
        assert_eq!(store::table_sums(new.database().pool()).await?, before, "{what}: nothing stays");
    }
    operator::must(new.home(), &["import", path.to_str().context("a path")?]).await?;
    assert_eq!(exported(&new).await?, exported(&old).await?);
    Ok(())
}

/// As a person counts lines.
fn at(index: usize) -> String {
    format!("line {}:", index + 1)
}

async fn import(stack: &Stack, target: &Path, content: &str) -> Result<String> {
    std::fs::write(target, content)?;
    operator::refused(stack.home(), &["import", target.to_str().context("a path")?]).await
}

async fn empty() -> Result<Stack> {
    let stack = Stack::on(Database::fresh().await?)?;
    operator::install(&stack, "mini")?;
    Ok(stack)
}

/// All tables but the list of migrations, which knows when each was applied.
async fn exported(stack: &Stack) -> Result<Vec<TableSum>> {
    let mut sums = store::table_sums(stack.database().pool()).await?;
    sums.retain(|sum| sum.table != "mem_schema_migrations");
    Ok(sums)
}

/// Constraints, indexes and triggers are there as they were.
async fn same_rules(one: &Stack, other: &Stack) -> Result<()> {
    let rules = async |stack: &Stack| -> Result<Vec<String>> {
        let found = sqlx::query_scalar(
            "select conname || ' ' || pg_get_constraintdef(oid) from pg_constraint where conname like 'mem\\_%'
             union all select indexdef from pg_indexes where tablename like 'mem\\_%'
             union all select tgname || tgenabled::text from pg_trigger order by 1",
        );
        // Triggers of constraints have numbers for names.
        let found: Vec<String> = found.fetch_all(stack.database().pool()).await?;
        Ok(found.into_iter().filter(|rule| !rule.starts_with("RI_ConstraintTrigger")).collect())
    };
    assert_eq!(rules(one).await?, rules(other).await?);
    Ok(())
}

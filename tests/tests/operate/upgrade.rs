//! An older installation becomes today's: nothing of it is lost, it can be done twice, and a migration that breaks off leaves what was.

use std::path::Path;

use anyhow::{Context, Result};
use memory::store;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor as _, PgPool};
use tests::database::Database;
use tests::installed::Installed;
use tests::operator;
use xtask::output::{Printer, Verbosity};

/// The newest migration of the schema with which the first server came.
pub(super) const FIRST: i64 = 10;

/// A session with a prompt, a call, a note and a lesson, in the words of the first schema.
pub(super) const JOURNAL: &str = "
    insert into mem_projects (identity_key, name, root) values ('folder:/home/dev/p', 'p', '/home/dev/p');
    insert into mem_sessions (agent, external_id, project_id, started_at, last_event_at) values ('claude-code', 's', 1, now(), now());
    insert into mem_user_prompts (session_id, prompt_id, turn_index, prompt, occurred_at) values (1, 'p', 0, 'Mend the migration', now());
    insert into mem_tool_calls (session_id, tool_use_id, prev_user_prompt_id, tool_name, input, output_preview, success, content_hash, occurred_at)
        values (1, 'u', 1, 'Bash', '{\"command\": \"cargo xtask migrate\"}', 'done', true, '\\x00', now());
    insert into mem_observations (project_id, session_id, title, body, source) values (1, 1, 'Order', 'Run it twice', 'agent');
    insert into mem_lessons (project_id, title, rule, severity, source, status) values (1, 'Never', 'Never drop it', 'warning', 'person', 'active');
    insert into mem_audit_log (actor, action) values ('operator', 'test');";

pub(super) const ROWS: [(&str, &str); 5] = [
    ("Mend the migration", "select prompt from mem_user_prompts"),
    ("cargo xtask migrate", "select input->>'command' from mem_tool_calls where prev_user_prompt_id = 1 and success"),
    ("Run it twice", "select body from mem_observations where title = 'Order'"),
    ("Never drop it", "select rule from mem_lessons"),
    ("p", "select project.name from mem_sessions session join mem_projects project on project.id = session.project_id"),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_first_schema_becomes_todays_with_all_that_was_in_it_and_twice_is_once() -> Result<()> {
    let database = Database::empty().await?;
    let folder = tempfile::tempdir()?;
    copy_migrations(folder.path(), |version| version <= FIRST)?;
    run(folder.path(), database.pool()).await?;
    database.pool().execute(JOURNAL).await.context("filling the first schema")?;
    for _ in 0..2 {
        store::migrate(database.pool()).await?;
        assert_eq!(store::schema_version(database.pool()).await?, Some(store::known_schema_version()));
        for (expected, query) in ROWS {
            let found: Vec<String> = sqlx::query_scalar(query).fetch_all(database.pool()).await.context(query)?;
            assert_eq!(found, [expected], "{query}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_breaks_off_leaves_the_version_before_at_work() -> Result<()> {
    let database = Database::empty().await?;
    store::migrate(database.pool()).await?;
    database.pool().execute(JOURNAL).await?;
    let before = store::table_sums(database.pool()).await?;
    let folder = tempfile::tempdir()?;
    copy_migrations(folder.path(), |_| true)?;
    let broken = "create table mem_half (id bigint); delete from mem_tool_calls; select 1 / 0;";
    std::fs::write(folder.path().join("9999_half.sql"), broken)?;
    let error = run(folder.path(), database.pool()).await.unwrap_err();
    assert!(format!("{error:#}").contains("division by zero"), "{error:#}");

    assert_eq!(store::schema_version(database.pool()).await?, Some(store::known_schema_version()));
    assert_eq!(store::table_sums(database.pool()).await?, before, "nothing of it stayed");
    store::migrate(database.pool()).await.context("the version before starts as ever")?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_backed_up_before_a_newer_schema_comes_and_only_then() -> Result<()> {
    let installed = Installed::embedded().await?;
    let (home, printer) = (installed.home(), Printer::new(Verbosity::Quiet));
    installed.pool().execute(JOURNAL).await?;
    assert!(xtask::upgrade::back_up_first(home, &printer).await?.is_none(), "it is today's already");
    sqlx::query("delete from mem_schema_migrations where version = (select max(version) from mem_schema_migrations)")
        .execute(installed.pool())
        .await?;
    let made = xtask::upgrade::back_up_first(home, &printer).await?.context("no backup of an older schema")?;
    let name = made.path.file_name().context("a path without a name")?.to_string_lossy().into_owned();
    assert!(name.contains("before-upgrade"), "{name}");
    operator::must(home, &["backup", "verify", &name]).await.map(drop)
}

pub(super) fn copy_migrations(to: &Path, is_wanted: impl Fn(i64) -> bool) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    for entry in std::fs::read_dir(&folder).with_context(|| format!("reading `{}`", folder.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let version = name.split_once('_').and_then(|(number, _)| number.parse().ok());
        if name.ends_with(".sql") && version.is_some_and(&is_wanted) {
            std::fs::copy(folder.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}

/// As `store::migrate` runs its own: over a connection that is closed afterwards, and its lock with it.
pub(super) async fn run(folder: &Path, pool: &PgPool) -> Result<()> {
    let mut migrator = Migrator::new(folder).await?;
    migrator.dangerous_set_table_name("mem_schema_migrations");
    let own = PgPoolOptions::new().max_connections(1).connect_with((*pool.connect_options()).clone()).await?;
    let migrated = migrator.run(&own).await;
    own.close().await;
    Ok(migrated?)
}

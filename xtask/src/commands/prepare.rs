//! `prepare`: refreshes `.sqlx`, the checked queries that builds without a database use; with `--check` only compares.
//!
//! The queries are described by a database that has just been migrated, while `memory` is checked: no tool but cargo is
//! needed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPool;
use xshell::{Shell, cmd};

use crate::cli::PrepareArgs;
use crate::files;
use crate::install::build::target_folder;
use crate::output::{HintExt, Printer, hinted};
use crate::repository::{Repository, as_a_person};
use crate::runtime::embedded::{self, Postgres};

pub(super) async fn run(arguments: &PrepareArgs, printer: &Printer) -> Result<()> {
    let repository = Repository::locate()?;
    let committed = repository.root().join(".sqlx");
    let step = printer.step("Starting a Postgres to check the queries against");
    let postgres = Postgres::start_private(&embedded::private_cache()?).await.context("no Postgres for the queries")?;
    step.skip();
    let described = describe(&repository, postgres.url()).await;
    postgres.stop().await?;
    let fresh = described?;
    let before = read_queries(&committed)?;
    if fresh == before {
        printer.note(format_args!("All {} queries in .sqlx are fresh", fresh.len()));
        return Ok(());
    }
    if arguments.check {
        return Err(hinted(
            anyhow!("`.sqlx` is stale: {}", difference(&before, &fresh)),
            "run `cargo xtask prepare` and commit `.sqlx`",
        ));
    }
    files::remove(&committed)?;
    fs::create_dir_all(&committed).context("cannot create `.sqlx`")?;
    for (name, content) in &fresh {
        files::write(&committed.join(name), content.as_bytes(), files::Mode::Readable)?;
    }
    printer.note(format_args!("Wrote {} queries to .sqlx: {}", fresh.len(), difference(&before, &fresh)));
    Ok(())
}

type Queries = BTreeMap<String, String>;

async fn describe(repository: &Repository, url: &str) -> Result<Queries> {
    let db = PgPool::connect(url).await.context("cannot connect to the Postgres for the queries")?;
    // From the folder, not from this program: it may have been built before the last change there.
    let folder = repository.root().join("migrations");
    let mut migrator = Migrator::new(folder.as_path()).await.context("cannot read the migrations")?;
    migrator.dangerous_set_table_name("mem_schema_migrations");
    let migrated = migrator.run(&db).await;
    db.close().await;
    migrated.context("the migrations do not run on an empty database")?;
    let (root, url) = (repository.root().to_owned(), url.to_owned());
    tokio::task::spawn_blocking(move || check_memory(&root, &url)).await.context("the check was interrupted")?
}

fn check_memory(root: &Path, url: &str) -> Result<Queries> {
    let shell = Shell::new().context("cannot start processes here")?;
    shell.change_dir(root);
    let folder = target_folder(&shell)?.join("agent-memory-sqlx");
    files::remove(&folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    shell.set_var("DATABASE_URL", url);
    shell.set_var("SQLX_OFFLINE", "false");
    shell.set_var("SQLX_OFFLINE_DIR", &folder);
    let expanded = {
        let _touched = Touched::make(&root.join("memory/src/lib.rs"))?;
        as_a_person(cmd!(shell, "cargo check --quiet --locked -p memory --features embed,bench")).quiet().run()
    };
    expanded.context("a query does not fit the migrations; cargo's messages are above")?;
    let queries = read_queries(&folder)?;
    files::remove(&folder)?;
    if queries.is_empty() {
        return Err(anyhow!("cargo described no query")).hint("this is a bug in `prepare`: please report it");
    }
    Ok(queries)
}

/// A file that looks new to cargo, which then expands the queries in its crate whatever it knows already. Dropped, the
/// file is as old as it was: no other build has to be done again.
struct Touched {
    file: File,
    modified: SystemTime,
}

impl Touched {
    fn make(path: &Path) -> Result<Self> {
        let touch = || {
            let file = File::options().append(true).open(path)?;
            let modified = file.metadata()?.modified()?;
            file.set_modified(SystemTime::now())?;
            io::Result::Ok(Self { file, modified })
        };
        touch().with_context(|| format!("cannot touch `{}`", path.display()))
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        // At worst cargo does something again.
        drop(self.file.set_modified(self.modified));
    }
}

fn read_queries(folder: &Path) -> Result<Queries> {
    let mut queries = Queries::new();
    if !folder.is_dir() {
        return Ok(queries);
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))? {
        let path = entry.context("cannot read a folder's entry")?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("query-") {
            queries
                .insert(name, fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?);
        }
    }
    Ok(queries)
}

fn difference(before: &Queries, fresh: &Queries) -> String {
    let added = fresh.keys().filter(|name| !before.contains_key(*name)).count();
    let removed = before.keys().filter(|name| !fresh.contains_key(*name)).count();
    let changed = fresh.iter().filter(|(name, text)| before.get(*name).is_some_and(|old| old != *text)).count();
    format!("{added} added, {removed} removed, {changed} described differently")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queries(pairs: &[(&str, &str)]) -> Queries {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn tells_what_is_stale() {
        let before = queries(&[("query-1.json", "a"), ("query-2.json", "b")]);
        let fresh = queries(&[("query-2.json", "c"), ("query-3.json", "d"), ("query-4.json", "e")]);
        assert_eq!(difference(&before, &fresh), "2 added, 1 removed, 1 described differently");
    }

    #[test]
    fn reads_only_what_are_queries() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("query-1.json"), "{}").unwrap();
        fs::write(folder.path().join("notes.txt"), "").unwrap();
        assert_eq!(read_queries(folder.path()).unwrap(), queries(&[("query-1.json", "{}")]));
        assert!(read_queries(&folder.path().join("absent")).unwrap().is_empty());
    }
}

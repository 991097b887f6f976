//! One Postgres with pgvector for the test process, and a database of its own for each test.
//!
//! The Postgres belongs to a keeper (`keeper`), a process that ends it when this one is gone, however it went. The journal's
//! schema is applied once, to a template, and copied for each test.

pub mod keeper;
pub mod source;

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, anyhow};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::summary;
use keeper::Keeper;

static SHARED: OnceCell<Result<Shared, String>> = OnceCell::const_new();

/// A database of one test. It is dropped, with whoever is still connected, when this is.
#[derive(Debug)]
pub struct Database {
    /// `None` where it is not the shared Postgres' to drop.
    name: Option<String>,
    url: String,
    pool: PgPool,
}

impl Database {
    /// A database with the journal's tables, all empty.
    pub async fn fresh() -> Result<Self> {
        let shared = Shared::get().await?;
        Self::create(shared, &format!("template {}", shared.template_name())).await
    }

    /// A database without any table, as a first server finds it.
    pub async fn empty() -> Result<Self> {
        Self::create(Shared::get().await?, "template template0").await
    }

    /// One on a Postgres of the test's own, which goes with that.
    pub fn elsewhere(url: &str, view: PgPool) -> Self {
        Self { name: None, url: url.to_owned(), pool: view }
    }

    /// The URL that programs connect with, password included.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The test's own view of the database.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    async fn create(shared: &'static Shared, template: &str) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}_{}", shared.prefix, NEXT.fetch_add(1, Ordering::Relaxed));
        shared.execute(format!("create database {name} {template}")).await?;
        let url = shared.url_of(&name)?;
        let pool = PgPoolOptions::new()
            .max_connections(2)
            .connect(&url)
            .await
            .with_context(|| format!("connecting to the test's database `{name}`"))?;
        Ok(Self { name: Some(name), url, pool })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let (Some(name), Some(Ok(shared))) = (&self.name, SHARED.get()) {
            let statement = format!("drop database if exists {name} with (force)");
            // Not waited for: what the end of the process cuts off, the keeper makes good.
            shared.runtime.spawn(shared.run(statement));
        }
    }
}

/// What all tests of the process share.
struct Shared {
    /// Tests have runtimes of their own that end with them; connections that outlive a test belong to this one.
    runtime: Runtime,
    admin: PgPool,
    prefix: String,
    url: String,
    /// Held open for as long as this process lives.
    _keeper: Keeper,
}

impl Shared {
    async fn get() -> Result<&'static Self> {
        let shared = SHARED.get_or_init(|| async {
            // A thread of its own, because a runtime cannot be entered from within another.
            let started = tokio::task::spawn_blocking(|| {
                let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
                let (admin, prefix, url, keeper) = runtime.block_on(start())?;
                Ok(Self { runtime, admin, prefix, url, _keeper: keeper })
            });
            match started.await {
                Ok(result) => result.map_err(|error: anyhow::Error| format!("{error:#}")),
                Err(panic) => Err(panic.to_string()),
            }
        });
        shared.await.as_ref().map_err(|message| anyhow!("{message}"))
    }

    fn template_name(&self) -> String {
        template_name(&self.prefix)
    }

    async fn execute(&'static self, statement: String) -> Result<()> {
        self.runtime.spawn(self.run(statement)).await.context("a statement of the test run was cut off")?
    }

    fn run(&self, statement: String) -> impl Future<Output = Result<()>> + Send + 'static {
        let admin = self.admin.clone();
        async move {
            let executed = sqlx::query(AssertSqlSafe(statement.clone())).execute(&admin).await;
            executed.map(drop).with_context(|| format!("running `{statement}`"))
        }
    }

    fn url_of(&self, name: &str) -> Result<String> {
        database_url(&self.url, name)
    }
}

async fn start() -> Result<(PgPool, String, String, Keeper)> {
    let prefix = format!("agent_memory_test_{}", &Uuid::new_v4().simple().to_string()[..12]);
    let keeper = Keeper::start(&prefix).await?;
    summary::line(&format!("database: {}", keeper.description()));
    let url = keeper.url().to_owned();
    let options: PgConnectOptions = url.parse().context("reading the URL of the test database")?;
    let admin = PgPoolOptions::new()
        .max_connections(4)
        .connect_with(options)
        .await
        .context("connecting to the Postgres of the test run")?;
    let template = template_name(&prefix);
    sqlx::query(AssertSqlSafe(format!("create database {template} template template0")))
        .execute(&admin)
        .await
        .context("creating the template of the tests' databases")?;
    let pool = PgPoolOptions::new().max_connections(1).connect(&database_url(&url, &template)?).await?;
    memory::store::migrate(&pool).await.context("applying the migrations to the tests' template")?;
    // Postgres copies a template only while nobody is connected to it.
    pool.close().await;
    Ok((admin, prefix, url, keeper))
}

fn template_name(prefix: &str) -> String {
    format!("{prefix}_template")
}

/// The same server, another database.
fn database_url(url: &str, name: &str) -> Result<String> {
    let (before_query, query) = url.split_once('?').map_or((url, None), |(before, query)| (before, Some(query)));
    let authority = before_query.find("://").context("a database URL without `://`")? + 3;
    let end = before_query[authority..].find('/').map_or(before_query.len(), |slash| authority + slash);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Ok(format!("{}/{name}{query}", &before_query[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: &str) {
        assert_eq!(database_url(url, "mine").unwrap(), expected);
    }

    #[test]
    fn replaces_only_the_name_of_the_database() {
        check("postgres://u:p@127.0.0.1:5432/postgres", "postgres://u:p@127.0.0.1:5432/mine");
        check("postgres://u:p@127.0.0.1:5432", "postgres://u:p@127.0.0.1:5432/mine");
        check("postgres://u:p@h/other?sslmode=disable", "postgres://u:p@h/mine?sslmode=disable");
    }
}

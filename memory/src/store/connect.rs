//! Opening the database and bringing its schema up to date.

use std::str::FromStr;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Postgres};

use super::pooler;
use crate::settings;

/// The journal's database: a pool of connections.
pub type Db = PgPool;
/// One of them.
pub type DbConnection = PoolConnection<Postgres>;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations");

/// Which way the connections of a pool take to Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Each is a session, which keeps what is set in it.
    Direct,
    /// By a pooler that gives each transaction whatever session is free: nothing outlives a transaction but prepared statements.
    Pooled,
}

/// How long a caller waits for a free connection, or for Postgres to answer at all.
pub(super) const ACQUIRE_DEADLINE: Duration = Duration::from_secs(5);

/// Why the database cannot be used; each says what to do about it in [`ConnectError::hint`].
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the database URL cannot be read: expected `postgres://user:password@host:port/name`")]
    Url(#[source] sqlx::Error),
    #[error("the database refused the user name or password")]
    Authentication(#[source] sqlx::Error),
    #[error("the database is not reachable")]
    Unreachable(#[source] sqlx::Error),
    #[error("the database does not have the pgvector extension")]
    NoPgvector(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the database's pgvector is too old (it has {found}, 0.7 is needed)")]
    OldPgvector { found: String },
    #[error("the database URL leads to a pooler that gives each transaction another session")]
    TransactionPooler,
    #[error("the pooler does not keep prepared statements")]
    NoPreparedStatements(#[source] sqlx::Error),
    #[error("the pooler leads to another database (schema {found:?}, the database URL's has {expected:?})")]
    OtherDatabase { found: Option<i64>, expected: Option<i64> },
    #[error("the database's schema is newer than this program (it has migration {found}, this program knows {known})")]
    NewerSchema { found: i64, known: i64 },
    #[error("the database's schema could not be brought up to date")]
    Migration(#[source] sqlx::migrate::MigrateError),
}

impl ConnectError {
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Url(_) => "write the URL as postgres://user:password@host:port/name",
            Self::Authentication(_) => "check user and password in the database URL",
            Self::Unreachable(_) => "check that Postgres runs and that host and port are right: `cargo xtask status`",
            Self::NoPgvector(_) => {
                "install pgvector on that server (Debian: postgresql-17-pgvector) or let its administrator run \
                 `create extension vector` in this database"
            }
            Self::OldPgvector { .. } => {
                "install pgvector 0.7 or newer on that server, then run `alter extension vector update` in this database"
            }
            Self::TransactionPooler => {
                "write that URL into `pooled-database-url` in the home, and one that gives whole sessions into `database-url` \
                 (docs/scale.md)"
            }
            Self::NoPreparedStatements(_) => {
                "use pgbouncer 1.21 or newer with `max_prepared_statements = 200` (docs/scale.md)"
            }
            Self::OtherDatabase { .. } => "let `database-url` and `pooled-database-url` name the same database",
            Self::NewerSchema { .. } => "install the newer agent-memory: pull and run `cargo xtask up`",
            Self::Migration(_) => "the log names the statement; nothing of the failed migration was kept",
        }
    }
}

/// Opens a pool and makes sure that Postgres answers.
pub async fn connect(url: &str) -> Result<Db, ConnectError> {
    answering(connect_lazily(url, Way::Direct, settings::Database::default())?).await
}

/// The same for another database of that server.
pub async fn connect_to(url: &str, database: &str) -> Result<Db, ConnectError> {
    let options = PgConnectOptions::from_str(url).map_err(ConnectError::Url)?;
    answering(pool(options.database(database), Way::Direct, settings::Database::default())).await
}

async fn answering(db: Db) -> Result<Db, ConnectError> {
    // Alone first: a pool would go on trying, and then say no more than that it waited in vain.
    let options = db.connect_options();
    let connection = match tokio::time::timeout(ACQUIRE_DEADLINE, options.connect()).await {
        Ok(connected) => connected.map_err(classify)?,
        Err(_) => return Err(ConnectError::Unreachable(sqlx::Error::PoolTimedOut)),
    };
    connection.close().await.map_err(classify)?;
    Ok(db)
}

/// A pool that opens its first connection when it is first used: for programs that must answer before the database does.
pub fn connect_lazily(url: &str, way: Way, limits: settings::Database) -> Result<Db, ConnectError> {
    Ok(pool(PgConnectOptions::from_str(url).map_err(ConnectError::Url)?, way, limits))
}

fn pool(options: PgConnectOptions, way: Way, limits: settings::Database) -> Db {
    // Poolers know no `extra_float_digits`, and no number of ours is sent as text.
    let options = options.application_name(pooler::application_name(way)).extra_float_digits(None);
    let pool = PgPoolOptions::new().max_connections(limits.connections).acquire_timeout(ACQUIRE_DEADLINE);
    if way == Way::Pooled {
        // What was set here would be somebody else's: a search sets what it needs, see `pooler::Reading`.
        return pool.connect_lazy_with(options);
    }
    let settings = format!(
        // Without the first a filter can leave an index scan with fewer rows than asked for. pgvector before 0.8 keeps it as a
        // setting without effect. The second: a caller that gave up leaves its statement running, which must not hold its
        // connection for ever.
        "set hnsw.iterative_scan = 'relaxed_order'; set statement_timeout = '{}s'",
        limits.statement_timeout_seconds
    );
    pool.after_connect(move |connection, _| {
        let settings = settings.clone();
        Box::pin(async move { connection.execute(AssertSqlSafe(settings)).await.map(drop) })
    })
    .connect_lazy_with(options)
}

/// Applies what is missing of the migrations, under an advisory lock, so that several programs may do it at once. The lock belongs to
/// a session, so that a pooler that gives none is refused.
pub async fn migrate(db: &Db) -> Result<(), ConnectError> {
    let known = known_schema_version();
    // A connection of its own, without our limit for a statement: an index on a large table takes as long as it takes, and so
    // does another program's migration.
    let options = db.connect_options();
    if pooler::shares_sessions(&options).await.map_err(classify)? {
        return Err(ConnectError::TransactionPooler);
    }
    let connection = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_DEADLINE)
        // A role or a pooler may have a limit of its own.
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute("set statement_timeout = 0").await.map(drop) })
        })
        .connect_with((*options).clone())
        .await
        .map_err(classify)?;
    // Before the first table, so that a database that cannot hold ours is left as it was.
    let pgvector: Option<String> = sqlx::query_scalar(
        "select coalesce(installed_version, default_version) from pg_available_extensions where name = 'vector'",
    )
    .fetch_optional(&connection)
    .await
    .map_err(classify)?;
    match pgvector {
        None => return Err(ConnectError::NoPgvector("the server does not offer it".into())),
        Some(found) if !has_half_vectors(&found) => return Err(ConnectError::OldPgvector { found }),
        Some(_) => {}
    }
    let migrated = MIGRATIONS.run(&connection).await;
    connection.close().await;
    match migrated {
        Ok(()) => Ok(()),
        Err(sqlx::migrate::MigrateError::VersionMissing(found)) => Err(ConnectError::NewerSchema { found, known }),
        Err(sqlx::migrate::MigrateError::Execute(error)) => Err(classify(error)),
        Err(sqlx::migrate::MigrateError::ExecuteMigration(error, _)) if error.as_database_error().is_none() => {
            Err(ConnectError::Unreachable(error))
        }
        Err(error) if error.to_string().contains("extension \"vector\"") => Err(ConnectError::NoPgvector(error.into())),
        Err(error) => Err(ConnectError::Migration(error)),
    }
}

/// Whether a version of pgvector has the type that our vectors are stored in: `halfvec` came with 0.7.
fn has_half_vectors(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or_default());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default()) >= (0, 7)
}

/// The newest migration that this program knows.
pub fn known_schema_version() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// The newest migration that is applied; `None` before the first.
pub async fn schema_version(db: &Db) -> Result<Option<i64>, sqlx::Error> {
    let exists: bool =
        sqlx::query_scalar("select to_regclass('mem_schema_migrations') is not null").fetch_one(db).await?;
    if !exists {
        return Ok(None);
    }
    sqlx::query_scalar("select max(version) from mem_schema_migrations where success").fetch_one(db).await
}

pub(super) fn classify(error: sqlx::Error) -> ConnectError {
    match error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() {
        // invalid_authorization_specification, invalid_password
        Some("28000" | "28P01") => ConnectError::Authentication(error),
        _ => ConnectError::Unreachable(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_which_pgvector_is_new_enough() {
        for (version, expected) in [("0.6.2", false), ("0.7.0", true), ("0.8.1", true), ("1.0", true), ("0.10.0", true)]
        {
            assert_eq!(has_half_vectors(version), expected, "{version}");
        }
    }
}

//! Living behind a pooler in transaction mode, pgbouncer for one: between two transactions a connection may be another session, and
//! nothing that was set, locked or listened for in one is there in the next. Prepared statements are, if the pooler keeps them.

use std::ops::{Deref, DerefMut};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection, Postgres, Transaction};
use uuid::Uuid;

use super::connect::{ACQUIRE_DEADLINE, classify};
use super::{ConnectError, Db, DbConnection, Way, schema_version};

/// The name by which Postgres shows a connection tells which way it came, to people and to [`reading`].
pub(super) const fn application_name(way: Way) -> &'static str {
    match way {
        Way::Direct => "agent-memory",
        Way::Pooled => "agent-memory (pooled)",
    }
}

fn way(db: &Db) -> Way {
    let pooled = db.connect_options().get_application_name() == Some(application_name(Way::Pooled));
    if pooled { Way::Pooled } else { Way::Direct }
}

/// A connection on which a search can rely on what a direct one has set: the same session to its end.
pub(crate) enum Reading {
    Session(DbConnection),
    Transaction(Transaction<'static, Postgres>),
}

/// Takes one. By a pooler that is a transaction, which costs a search one round trip at its start and one at its end.
pub(crate) async fn reading(db: &Db) -> Result<Reading, sqlx::Error> {
    const BEGIN: &str =
        "begin read only; set local hnsw.iterative_scan = 'relaxed_order'; set local statement_timeout = '30s'";
    match way(db) {
        Way::Direct => db.acquire().await.map(Reading::Session),
        Way::Pooled => db.begin_with(BEGIN).await.map(Reading::Transaction),
    }
}

impl Reading {
    /// Gives it back. Without this the transaction ends too, only later.
    pub(crate) async fn end(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Session(_) => Ok(()),
            Self::Transaction(transaction) => transaction.commit().await,
        }
    }
}

impl Deref for Reading {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match self {
            Self::Session(connection) => connection,
            Self::Transaction(transaction) => transaction,
        }
    }
}

impl DerefMut for Reading {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match self {
            Self::Session(connection) => connection,
            Self::Transaction(transaction) => transaction,
        }
    }
}

/// Makes sure that a pooled way is of use: prepared statements outlive their transaction, and it leads to the database that was
/// migrated by the direct one.
pub async fn check_pooler(pooled: &Db, direct: &Db) -> Result<(), ConnectError> {
    if way(pooled) == Way::Direct {
        return Ok(());
    }
    let (mut one, mut other) = (pooled.acquire().await.map_err(classify)?, pooled.acquire().await.map_err(classify)?);
    keeps_statements(&mut one).await?;
    keeps_statements(&mut other).await?;
    keeps_statements(&mut one).await?;
    drop((one, other));
    let found = schema_version(pooled).await.map_err(classify)?;
    let expected = schema_version(direct).await.map_err(classify)?;
    if found == expected { Ok(()) } else { Err(ConnectError::OtherDatabase { found, expected }) }
}

async fn keeps_statements(connection: &mut PgConnection) -> Result<(), ConnectError> {
    let asked = sqlx::query("select $1::bigint").bind(1_i64).execute(connection).await;
    asked.map(drop).map_err(|error| {
        match error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() {
            // invalid_sql_statement_name: another session knew it; duplicate_prepared_statement: this one knew the other's.
            Some("26000" | "42P05") => ConnectError::NoPreparedStatements(error),
            _ => classify(error),
        }
    })
}

/// Whether two connections are one session now and then: what one sets, the other reads. A pooler hands out the session that was used
/// last, unless somebody else was quicker.
pub(super) async fn shares_sessions(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    const TRIES: usize = 3;
    let probe = async {
        let (mut one, mut other) = (options.connect().await?, options.connect().await?);
        let mark = Uuid::new_v4();
        let mut shared = false;
        for _ in 0..TRIES {
            // As plain text: a pooler need not keep prepared statements to be found out.
            one.execute(AssertSqlSafe(format!("set agent_memory.mark = '{mark}'"))).await?;
            let read = "select coalesce(current_setting('agent_memory.mark', true), '')";
            let row = other.fetch_one(read).await?;
            shared |= sqlx::Row::try_get::<String, _>(&row, 0)? == mark.to_string();
        }
        one.close().await?;
        other.close().await?;
        Ok(shared)
    };
    tokio::time::timeout(ACQUIRE_DEADLINE, probe).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

//! The journal at one moment: counts and checksums of its tables, all from the same snapshot, which another program can read too.
//! Backup and export describe with them what they wrote; restore and import compare.
//!
//! A checksum is the digest of the sum of its rows' digests: it depends on every value of every row and on no order, so that it is
//! the same on another server, whatever version, and after a copy. It finds what was damaged or lost, not what somebody forged.

use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::connect::DbConnection;
use super::{Db, StoreError};

/// Which migrations a database has had: it has rows of its own in every database.
pub(super) const MIGRATIONS_TABLE: &str = "mem_schema_migrations";

/// What a table holds, in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSum {
    pub table: String,
    pub rows: i64,
    pub checksum: String,
}

/// A transaction that sees the journal as it was when it began. Nobody waits for it.
#[derive(Debug)]
pub struct Snapshot {
    connection: DbConnection,
    id: String,
}

impl Snapshot {
    pub async fn take(db: &Db) -> Result<Self, StoreError> {
        let mut connection = db.acquire().await?;
        // Its transaction ends with it, however this ends.
        connection.close_on_drop();
        connection.execute("begin transaction isolation level repeatable read, read only").await?;
        sqlx::query("set local statement_timeout = 0").execute(&mut *connection).await?;
        let id = sqlx::query_scalar("select pg_export_snapshot()").fetch_one(&mut *connection).await?;
        Ok(Self { connection, id })
    }

    /// By this name `pg_dump --snapshot` sees the same, as long as this lives.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Counts and checksums of all tables, by name.
    pub async fn sums(&mut self) -> Result<Vec<TableSum>, StoreError> {
        sums(&mut self.connection).await
    }

    /// The newest migration that is applied.
    pub async fn schema_version(&mut self) -> Result<Option<i64>, StoreError> {
        Ok(schema_version(&mut self.connection).await?)
    }

    /// The size of the whole database on disk, and of its tables without their indexes.
    pub async fn bytes(&mut self) -> Result<DatabaseBytes, StoreError> {
        let (total, tables): (i64, i64) = sqlx::query_as(
            "select pg_database_size(current_database()), coalesce(sum(pg_table_size(oid)), 0)::bigint
             from pg_class where relkind = 'r' and relname like 'mem\\_%'",
        )
        .fetch_one(&mut *self.connection)
        .await?;
        Ok(DatabaseBytes { total: total.unsigned_abs(), tables: tables.unsigned_abs() })
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

/// How large a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseBytes {
    pub total: u64,
    /// Without indexes: a dump does not hold those.
    pub tables: u64,
}

/// Counts and checksums of all tables as they are now.
pub async fn table_sums(db: &Db) -> Result<Vec<TableSum>, StoreError> {
    Snapshot::take(db).await?.sums().await
}

/// The same within a transaction of the caller's.
pub(super) async fn sums(connection: &mut PgConnection) -> Result<Vec<TableSum>, StoreError> {
    write_values_alike(connection).await?;
    let mut sums = Vec::new();
    for table in tables(connection).await? {
        sums.push(sum(connection, table).await?);
    }
    Ok(sums)
}

/// How values are written as text depends no longer on the server or the role, until the transaction ends.
pub(super) async fn write_values_alike(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    for setting in [
        "set local timezone = 'UTC'",
        "set local datestyle = 'ISO, YMD'",
        "set local intervalstyle = 'postgres'",
        "set local extra_float_digits = 1",
        "set local bytea_output = 'hex'",
    ] {
        connection.execute(setting).await?;
    }
    Ok(())
}

/// The journal's tables, by name.
pub(super) async fn tables(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(
        "select relname::text from pg_class
         where relkind = 'r' and relnamespace = current_schema()::regnamespace and relname like 'mem\\_%'
         order by relname collate \"C\"",
    )
    .fetch_all(connection)
    .await
}

pub(super) async fn schema_version(connection: &mut PgConnection) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar("select max(version) from mem_schema_migrations where success").fetch_one(connection).await
}

async fn sum(connection: &mut PgConnection, table: String) -> Result<TableSum, StoreError> {
    // Two sums of eight bytes of each row's digest are as good as one of sixteen, a number that Postgres does not have.
    let statement = format!(
        "select count(*), md5(concat_ws(':', count(*), sum(halves[1]), sum(halves[2])))
         from (
             select array[
                        ('x' || encode(substring(digest from 1 for 8), 'hex'))::bit(64)::bigint::numeric,
                        ('x' || encode(substring(digest from 9 for 8), 'hex'))::bit(64)::bigint::numeric
                    ] as halves
             from (select sha256(convert_to(entry::text, 'UTF8')) as digest from {} entry) digests
         ) split",
        quoted(&table)
    );
    let (rows, checksum): (i64, String) = sqlx::query_as(AssertSqlSafe(statement)).fetch_one(connection).await?;
    Ok(TableSum { table, rows, checksum })
}

/// A name as an identifier of SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

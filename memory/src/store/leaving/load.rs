//! Lines of JSON into an empty database, in one transaction. What would be in the way of many rows is put aside and back again within
//! it: triggers, the constraints by which rows refer to rows of their own table, and the indexes that only help to find.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::super::connect::DbConnection;
use super::super::snapshot::{self, TableSum, quoted};
use super::super::{Db, StoreError};
use super::shape::{self, NextId, TableShape};

/// A database with a row in one of these is somebody's. The others hold what a server writes by itself.
const SOMEBODYS: [&str; 4] = ["mem_projects", "mem_sessions", "mem_observations", "mem_lessons"];

/// Why rows could not be taken in. Nothing of them is in the database then.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the database is not empty: {table} has {rows} rows")]
    NotEmpty { table: String, rows: i64 },
    #[error("there is no table `{0}`")]
    UnknownTable(String),
    #[error("the table `{table}` has no column `{column}`")]
    UnknownColumn { table: String, column: String },
    /// `index` counts the lines of the call from 0.
    #[error("{message}")]
    Line { index: usize, message: String },
    #[error("rows of `{table}` do not fit together: {message}")]
    Relation { table: String, message: String },
}

impl From<sqlx::Error> for LoadError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// The transaction. Dropped, the database is as it was.
#[derive(Debug)]
pub struct Loading {
    connection: DbConnection,
    shapes: Vec<TableShape>,
    constraints: Vec<Constraint>,
    /// What makes each index again.
    indexes: Vec<String>,
}

#[derive(Debug, sqlx::FromRow)]
struct Constraint {
    table: String,
    name: String,
    definition: String,
}

impl Loading {
    /// Begins, unless the database holds anything of somebody's. Until the end nobody else can read or write it.
    pub async fn begin(db: &Db) -> Result<Self, LoadError> {
        let mut connection = db.acquire().await?;
        // Its transaction ends with it, however this ends.
        connection.close_on_drop();
        connection.execute("begin").await?;
        for setting in ["set local statement_timeout = 0", "set local lock_timeout = '10s'"] {
            connection.execute(setting).await?;
        }
        let shapes = shape::shapes(&mut connection).await?;
        let names: Vec<_> = shapes.iter().map(|shape| quoted(&shape.table)).collect();
        let lock = format!("lock table {} in access exclusive mode", names.join(", "));
        connection.execute(AssertSqlSafe(lock)).await?;
        for table in SOMEBODYS {
            let rows: i64 = sqlx::query_scalar(AssertSqlSafe(format!("select count(*) from {}", quoted(table))))
                .fetch_one(&mut *connection)
                .await?;
            if rows > 0 {
                return Err(LoadError::NotEmpty { table: table.to_owned(), rows });
            }
        }
        for name in names.iter().rev() {
            connection.execute(AssertSqlSafe(format!("delete from {name}"))).await?;
        }
        let mut loading = Self { connection, shapes, constraints: Vec::new(), indexes: Vec::new() };
        loading.put_aside().await?;
        Ok(loading)
    }

    /// Takes in rows of one table: of each line the columns that are named, the others as by default.
    pub async fn load(&mut self, table: &str, columns: &[String], lines: &[String]) -> Result<(), LoadError> {
        let statement = self.insert(table, columns)?;
        let connection = &mut *self.connection;
        connection.execute("savepoint batch").await?;
        let Err(refusal) = insert(connection, &statement, lines).await else {
            connection.execute("release savepoint batch").await?;
            return Ok(());
        };
        // Which line it was, Postgres does not say: each alone is asked about.
        connection.execute("rollback to savepoint batch").await?;
        for index in 0..lines.len() {
            if let Err(error) = insert(connection, &statement, &lines[index..=index]).await {
                return Err(LoadError::Line { index, message: told(&error) });
            }
        }
        Err(refusal.into())
    }

    /// Puts back what was put aside, which checks it, lets numbers go on where they stood, and counts.
    pub async fn finish(&mut self, next_ids: &[(String, NextId)]) -> Result<Vec<TableSum>, LoadError> {
        let connection = &mut *self.connection;
        for constraint in &self.constraints {
            let Constraint { table, name, definition } = constraint;
            let statement = format!("alter table {} add constraint {} {definition}", quoted(table), quoted(name));
            let added = connection.execute(AssertSqlSafe(statement)).await;
            added.map_err(|error| LoadError::Relation { table: table.clone(), message: told(&error) })?;
        }
        connection.execute("set local maintenance_work_mem = '256MB'").await?;
        // More processes would need shared memory that not every machine has.
        connection.execute("set local max_parallel_maintenance_workers = 0").await?;
        for index in &self.indexes {
            connection.execute(AssertSqlSafe(index.clone())).await?;
        }
        for shape in &self.shapes {
            let statement = format!("alter table {} enable trigger user", quoted(&shape.table));
            connection.execute(AssertSqlSafe(statement)).await?;
        }
        for (table, next) in next_ids {
            sqlx::query("select setval(pg_get_serial_sequence($1, $2)::regclass, $3, false)")
                .bind(quoted(table))
                .bind(&next.column)
                .bind(next.value)
                .execute(&mut *connection)
                .await?;
        }
        Ok(snapshot::sums(connection).await?)
    }

    /// Makes all of it true at once.
    pub async fn commit(mut self) -> Result<(), LoadError> {
        self.connection.execute("commit").await?;
        Ok(())
    }

    fn insert(&self, table: &str, columns: &[String]) -> Result<String, LoadError> {
        let shape = self.shapes.iter().find(|shape| shape.table == table);
        let shape = shape.ok_or_else(|| LoadError::UnknownTable(table.to_owned()))?;
        if let Some(column) = columns.iter().find(|column| !shape.columns.contains(column)) {
            return Err(LoadError::UnknownColumn { table: table.to_owned(), column: column.clone() });
        }
        let table = quoted(table);
        let names: Vec<_> = columns.iter().map(|column| quoted(column)).collect();
        let values: Vec<_> = names.iter().map(|name| format!("loaded.{name}")).collect();
        Ok(format!(
            "insert into {table} ({}) overriding system value
             select {} from unnest($1::text[]) with ordinality entry (line, position),
                 json_populate_record(null::{table}, entry.line::json) loaded order by entry.position",
            names.join(", "),
            values.join(", ")
        ))
    }

    async fn put_aside(&mut self) -> Result<(), sqlx::Error> {
        let connection = &mut *self.connection;
        self.constraints = sqlx::query_as(
            "select relname::text as \"table\", conname::text as name, pg_get_constraintdef(pg_constraint.oid) as definition
             from pg_constraint join pg_class on pg_class.oid = conrelid
             where contype = 'f' and conrelid = confrelid and relnamespace = current_schema()::regnamespace
               and relname like 'mem\\_%' order by relname, conname",
        )
        .fetch_all(&mut *connection)
        .await?;
        for Constraint { table, name, .. } in &self.constraints {
            let statement = format!("alter table {} drop constraint {}", quoted(table), quoted(name));
            connection.execute(AssertSqlSafe(statement)).await?;
        }
        // Unique ones stay: they say which line is there twice.
        let indexes: Vec<(String, String)> = sqlx::query_as(
            "select indexrelid::regclass::text, pg_get_indexdef(indexrelid)
             from pg_index join pg_class on pg_class.oid = indrelid
             where not indisunique and relnamespace = current_schema()::regnamespace and relname like 'mem\\_%'
             order by indexrelid",
        )
        .fetch_all(&mut *connection)
        .await?;
        for (name, definition) in indexes {
            connection.execute(AssertSqlSafe(format!("drop index {name}"))).await?;
            self.indexes.push(definition);
        }
        for shape in &self.shapes {
            let statement = format!("alter table {} disable trigger user", quoted(&shape.table));
            connection.execute(AssertSqlSafe(statement)).await?;
        }
        Ok(())
    }
}

async fn insert(connection: &mut PgConnection, statement: &str, lines: &[String]) -> Result<(), sqlx::Error> {
    sqlx::query(AssertSqlSafe(statement.to_owned())).bind(lines).execute(connection).await.map(drop)
}

/// What Postgres says, with the detail that names the value.
fn told(error: &sqlx::Error) -> String {
    let Some(database) = error.as_database_error() else { return error.to_string() };
    let detail = database.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().and_then(|error| error.detail());
    match detail {
        // It repeats the whole row, which may hold anything.
        Some(detail) if !detail.starts_with("Failing row") => format!("{}: {detail}", database.message()),
        _ => database.message().to_owned(),
    }
}

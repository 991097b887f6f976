//! Whole databases on the journal's server: made beside it, put in its place, kept, and dropped. A restore works in a database of its
//! own until everything in it is right, and then two names change in one transaction.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use super::connect::{ACQUIRE_DEADLINE, Db, classify};
use super::snapshot::quoted;
use super::{ConnectError, StoreError};

/// Databases that every server has, and that one can be connected to while others are renamed.
const NEUTRAL: [&str; 2] = ["postgres", "template1"];
/// How often those who are still connected are asked to leave.
const BETWEEN_EVICTIONS: Duration = Duration::from_millis(100);
/// So much of the journal's name begins the names of others: with any ending of ours none is longer than the 63 bytes at which
/// Postgres cuts names off.
const NAME_LIMIT: usize = 38;

/// A connection to the server beside the journal's database, without a limit for statements.
#[derive(Debug)]
pub struct Databases {
    options: PgConnectOptions,
    connection: PgConnection,
    journal: String,
}

impl Databases {
    /// Connects to the server of that URL.
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        let options = PgConnectOptions::from_str(url).map_err(ConnectError::Url)?;
        let journal = options.get_database().unwrap_or_else(|| options.get_username()).to_owned();
        let mut refusal = None;
        for neutral in NEUTRAL.into_iter().filter(|name| *name != journal) {
            let options = options.clone().database(neutral).application_name("agent-memory");
            match tokio::time::timeout(ACQUIRE_DEADLINE, PgConnection::connect_with(&options)).await {
                Ok(Ok(connection)) => return Ok(Self { options, connection, journal }),
                Ok(Err(error)) => refusal = refusal.or(Some(error)),
                Err(_) => refusal = refusal.or(Some(sqlx::Error::PoolTimedOut)),
            }
        }
        Err(classify(refusal.unwrap_or(sqlx::Error::PoolClosed)))
    }

    /// The database that the journal lies in.
    pub fn journal(&self) -> &str {
        &self.journal
    }

    /// The server's version as a number: 180001 is 18.1.
    pub async fn server_version(&mut self) -> Result<i32, StoreError> {
        Ok(sqlx::query_scalar("select current_setting('server_version_num')::int")
            .fetch_one(&mut self.connection)
            .await?)
    }

    /// An empty database with the rules of the journal's.
    pub async fn create(&mut self, name: &str) -> Result<(), StoreError> {
        let (encoding, collate, ctype, provider): (String, String, String, String) = sqlx::query_as(
            "select pg_encoding_to_char(encoding)::text, datcollate::text, datctype::text, datlocprovider::text
             from pg_database where datname = $1",
        )
        .bind(&self.journal)
        .fetch_one(&mut self.connection)
        .await?;
        let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
        // Of other providers a template has the rules; those of ours are made with the cluster.
        let locale = if provider == "c" {
            format!(" lc_collate {} lc_ctype {}", literal(&collate), literal(&ctype))
        } else {
            String::new()
        };
        self.execute(format!(
            "create database {} template template0 encoding {}{locale}",
            quoted(name),
            literal(&encoding)
        ))
        .await
    }

    pub async fn drop(&mut self, name: &str) -> Result<(), StoreError> {
        self.execute(format!("drop database if exists {} with (force)", quoted(name))).await
    }

    /// Drops those databases of that beginning that nobody is connected to: what a killed program left behind.
    pub async fn sweep(&mut self, beginning: &str) -> Result<(), StoreError> {
        for name in self.beginning_with(beginning).await? {
            // One that is in use belongs to somebody who runs.
            drop(self.execute(format!("drop database if exists {}", quoted(&name))).await);
        }
        Ok(())
    }

    /// The databases whose names begin so, by name.
    pub async fn beginning_with(&mut self, beginning: &str) -> Result<Vec<String>, StoreError> {
        let found = sqlx::query_scalar(
            "select datname::text from pg_database where starts_with(datname, $1) order by datname collate \"C\"",
        )
        .bind(beginning)
        .fetch_all(&mut self.connection)
        .await?;
        Ok(found)
    }

    pub async fn exists(&mut self, name: &str) -> Result<bool, StoreError> {
        let exists = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(name)
            .fetch_one(&mut self.connection)
            .await?;
        Ok(exists)
    }

    /// The size of a database on disk.
    pub async fn bytes(&mut self, name: &str) -> Result<u64, StoreError> {
        let bytes: i64 =
            sqlx::query_scalar("select pg_database_size($1::name)").bind(name).fetch_one(&mut self.connection).await?;
        Ok(bytes.unsigned_abs())
    }

    /// Lets `fresh` take the journal's place, which becomes `kept`: both or neither. Whoever is connected to the journal is cut off and
    /// finds the fresh one when it connects again.
    pub async fn swap(&mut self, fresh: &str, kept: &str) -> Result<(), StoreError> {
        let journal = self.journal.clone();
        let mut other = PgConnection::connect_with(&self.neutral_options().await?).await?;
        // The rename locks the database against new connections and then waits, for some seconds, until the old ones are gone.
        let renamed = async {
            let mut tx = self.connection.begin().await?;
            for (from, to) in [(journal.as_str(), kept), (fresh, journal.as_str())] {
                tx.execute(AssertSqlSafe(format!("alter database {} rename to {}", quoted(from), quoted(to)))).await?;
            }
            tx.commit().await
        };
        let evicted = async {
            loop {
                for name in [journal.as_str(), fresh] {
                    evict(&mut other, name).await?;
                }
                tokio::time::sleep(BETWEEN_EVICTIONS).await;
            }
        };
        tokio::select! {
            renamed = renamed => renamed?,
            Err::<std::convert::Infallible, sqlx::Error>(error) = evicted => return Err(error.into()),
        }
        other.close().await?;
        Ok(())
    }

    /// A name that begins like the journal's; the ending has at most 25 bytes.
    pub fn name_beside(&self, ending: &str) -> String {
        beside(&self.journal, ending)
    }

    async fn neutral_options(&mut self) -> Result<PgConnectOptions, StoreError> {
        let neutral: String =
            sqlx::query_scalar("select current_database()::text").fetch_one(&mut self.connection).await?;
        Ok(self.options.clone().database(&neutral))
    }

    async fn execute(&mut self, statement: String) -> Result<(), StoreError> {
        self.connection.execute(AssertSqlSafe(statement)).await?;
        Ok(())
    }
}

/// Whether this Postgres keeps a mark of its own among the options of each column, as 17.12 does: a dump program that knows nothing of
/// it writes it down, and a server that knows nothing of it does not take such a dump.
pub async fn marks_columns(db: &Db) -> Result<bool, StoreError> {
    let marks = sqlx::query_scalar!(
        r#"select exists (
               select from pg_attribute cross join lateral unnest(attoptions) as option
               where attrelid = 'mem_projects'::regclass and starts_with(option, 'pg_attver=')
           ) as "marks!""#,
    );
    Ok(marks.fetch_one(db).await?)
}

/// Tables of a database that are not the journal's.
pub async fn foreign_tables(db: &Db) -> Result<Vec<String>, StoreError> {
    let found = sqlx::query_scalar(
        "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where c.relkind in ('r', 'p') and n.nspname not in ('pg_catalog', 'information_schema') and c.relname not like 'mem\\_%'
           and not starts_with(n.nspname, 'pg_toast') and not starts_with(n.nspname, 'pg_temp')
           and not exists (select from pg_depend where objid = c.oid and deptype = 'e')
         order by 1",
    )
    .fetch_all(db)
    .await?;
    Ok(found)
}

async fn evict(connection: &mut PgConnection, name: &str) -> Result<(), sqlx::Error> {
    sqlx::query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()")
        .bind(name)
        .execute(connection)
        .await
        .map(drop)
}

fn beside(journal: &str, ending: &str) -> String {
    let mut end = journal.len().min(NAME_LIMIT);
    while !journal.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ending}", &journal[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_beside_the_journals_is_never_cut_off_by_postgres() {
        assert_eq!(beside("agent_memory", "_before_1"), "agent_memory_before_1");
        let long = beside(&"ä".repeat(30), "_before_20260302t101500z");
        assert!(long.len() <= 63 && long.ends_with("ä_before_20260302t101500z"), "{long}");
        assert!(long.starts_with(&beside(&"ä".repeat(30), "_before_")), "and is found by its beginning");
    }
}

//! What is in a backup, as it was counted in the very snapshot that was dumped: a small file of JSON beside it.

use anyhow::{Context, Result, anyhow};
use chrono::{DateTime, Utc};
use memory::store::{self, TableSum};
use serde::{Deserialize, Serialize};

use crate::output::hinted;

/// The version of this description.
const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this description.
    pub backup: u32,
    pub made_at: DateTime<Utc>,
    /// The version of agent-memory.
    pub program: String,
    /// The server's version as Postgres counts: 180001 is 18.1.
    pub postgres: i32,
    /// The newest migration in it.
    pub schema_version: i64,
    /// The size of the database on disk, indexes included.
    pub database_bytes: u64,
    /// The size of the backup.
    pub bytes: u64,
    pub tables: Vec<TableSum>,
}

impl Manifest {
    pub fn parse(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Versioned {
            backup: u32,
        }
        let versioned: Versioned = serde_json::from_str(text).context("it does not describe a backup")?;
        if versioned.backup > FORMAT {
            let error = anyhow!("it was written by a newer agent-memory (format {})", versioned.backup);
            return Err(hinted(error, "install the newer agent-memory: pull and run `cargo xtask up`"));
        }
        serde_json::from_str(text).context("it does not describe a backup")
    }

    pub fn text(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self).context("cannot write the description as JSON")?;
        Ok(format!("{text}\n"))
    }

    pub const fn format() -> u32 {
        FORMAT
    }

    pub fn rows(&self) -> i64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Fails where its schema is newer than this program.
    pub fn check_schema(&self) -> Result<()> {
        let known = store::known_schema_version();
        if self.schema_version <= known {
            return Ok(());
        }
        let error = anyhow!(
            "the backup's schema is newer than this program (it has migration {}, this program knows {known})",
            self.schema_version
        );
        Err(hinted(error, "install the newer agent-memory: pull and run `cargo xtask up`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_back_and_a_newer_one_is_refused() {
        let manifest = Manifest {
            backup: Manifest::format(),
            made_at: DateTime::UNIX_EPOCH,
            program: "0.1.0".into(),
            postgres: 180_001,
            schema_version: store::known_schema_version(),
            database_bytes: 2,
            bytes: 1,
            tables: vec![TableSum { table: "mem_sessions".into(), rows: 3, checksum: "0f".into() }],
        };
        let text = manifest.text().unwrap();
        assert_eq!(Manifest::parse(&text).unwrap(), manifest);
        manifest.check_schema().unwrap();
        let newer = Manifest { schema_version: manifest.schema_version + 1, ..manifest };
        assert!(newer.check_schema().unwrap_err().to_string().contains("hint"));
        let told = crate::output::report(&Manifest::parse(r#"{"backup": 2, "other": "things"}"#).unwrap_err());
        assert!(told.contains("newer agent-memory") && told.contains("hint"), "{told}");
    }
}

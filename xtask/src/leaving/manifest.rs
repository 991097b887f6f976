//! What is in an export: which tables, how many rows, their checksums in the database, and the digest of their lines.

use anyhow::{Context, Result, anyhow};
use chrono::{DateTime, Utc};
use memory::store::leaving::TableShape;
use memory::store::{self, TableSum};
use serde::{Deserialize, Serialize};

use crate::output::hinted;

const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this description.
    pub agent_memory_export: u32,
    pub made_at: DateTime<Utc>,
    /// The version of agent-memory.
    pub program: String,
    /// The newest migration of the database.
    pub schema_version: i64,
    /// In the order in which they can be read back.
    pub tables: Vec<Exports>,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exports {
    #[serde(flatten)]
    pub shape: TableShape,
    pub rows: i64,
    /// As `backup` counts it, over the rows in the database.
    pub checksum: String,
    /// Of the rows' lines, each with its line feed. Empty in the first line of a single file, which is written before them.
    pub sha256: String,
}

impl Manifest {
    /// What is known before the first row is written.
    pub fn new(schema_version: i64, shapes: Vec<TableShape>, sums: &[TableSum]) -> Result<Self> {
        let tables = shapes.into_iter().map(|shape| {
            let sum = sums.iter().find(|sum| sum.table == shape.table);
            let sum = sum.with_context(|| format!("nothing was counted in {}", shape.table))?;
            Ok(Exports { rows: sum.rows, checksum: sum.checksum.clone(), sha256: String::new(), shape })
        });
        Ok(Self {
            agent_memory_export: FORMAT,
            made_at: Utc::now(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            schema_version,
            tables: tables.collect::<Result<_>>()?,
        })
    }

    /// Reads one that this program can take in.
    pub fn parse(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Versioned {
            agent_memory_export: u32,
        }
        const NEWER: &str = "install the newer agent-memory: pull and run `cargo xtask up`";
        let no_export = || anyhow!("it is no export of agent-memory, or its first line was changed");
        let versioned: Versioned = serde_json::from_str(text).map_err(|_| no_export())?;
        if versioned.agent_memory_export > FORMAT {
            let error = anyhow!("it was written by a newer agent-memory (format {})", versioned.agent_memory_export);
            return Err(hinted(error, NEWER));
        }
        let manifest: Self = serde_json::from_str(text).context("its manifest is not as it was written")?;
        let known = store::known_schema_version();
        if manifest.schema_version > known {
            let found = manifest.schema_version;
            let error =
                anyhow!("it has a newer schema than this program (migration {found}, this program knows {known})");
            return Err(hinted(error, NEWER));
        }
        Ok(manifest)
    }

    pub fn rows(&self) -> i64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// What the database must count after everything was read back.
    pub fn sums(&self) -> Vec<TableSum> {
        let sum = |table: &Exports| TableSum {
            table: table.shape.table.clone(),
            rows: table.rows,
            checksum: table.checksum.clone(),
        };
        self.tables.iter().map(sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_wrote_and_refuses_what_it_cannot_take_in() {
        let shape = TableShape { table: "mem_a".into(), columns: vec!["id".into()], key: Vec::new(), next_id: None };
        let sum = TableSum { table: "mem_a".into(), rows: 2, checksum: "0f".into() };
        let manifest =
            Manifest::new(store::known_schema_version(), vec![shape.clone()], std::slice::from_ref(&sum)).unwrap();
        let text = |manifest: &Manifest| serde_json::to_string(manifest).unwrap();
        assert_eq!(Manifest::parse(&text(&manifest)).unwrap(), manifest);
        assert_eq!((manifest.rows(), manifest.sums()), (2, vec![sum]));
        let refused = |text: &str| crate::output::report(&Manifest::parse(text).unwrap_err());
        let newer = Manifest { schema_version: manifest.schema_version + 1, ..manifest };
        assert!(refused(&text(&newer)).contains("newer schema"));
        assert!(refused(r#"{"agent_memory_export": 2}"#).contains("newer agent-memory"));
        assert!(refused("{}").contains("no export"));
        assert!(Manifest::new(1, vec![shape], &[]).is_err(), "a table that was not counted");
    }
}

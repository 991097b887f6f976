//! Reading everything back, in one transaction: either the database counts what the export says, or it is as empty as before.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use memory::store::leaving::{LoadError, Loading};
use memory::store::{self, Db, TableSum};
use sha2::{Digest, Sha256};

use super::manifest::Manifest;
use super::source::{Row, Source};
use crate::backup;
use crate::files;
use crate::output::{Step, hinted};

/// Rows that are sent to the database at once, and their bytes.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 4 << 20;

/// What was read.
#[derive(Debug)]
pub struct Imported {
    pub rows: i64,
    pub tables: usize,
}

/// Reads an export into an empty, migrated database.
pub async fn import(db: &Db, path: &Path, step: &Step) -> Result<Imported> {
    let mut source = Source::open(path)?;
    let mut loading = Loading::begin(db).await.map_err(refused)?;
    let found = read(&mut source, &mut loading, step).await;
    let digests = found.context("nothing was imported, and the database is as it was")?;
    let checked = check(&source.manifest, &digests, &mut loading, step).await;
    checked.context("nothing was imported, and the database is as it was")?;
    loading.commit().await.context("the import could not be completed; nothing of it is in the database")?;
    Ok(Imported { rows: source.manifest.rows(), tables: source.manifest.tables.len() })
}

/// What was read of a table.
#[derive(Default)]
struct Lines {
    rows: i64,
    sha256: Sha256,
}

async fn read(source: &mut Source, loading: &mut Loading, step: &Step) -> Result<BTreeMap<String, Lines>> {
    let mut found: BTreeMap<String, Lines> = BTreeMap::new();
    let mut batch: Vec<Row> = Vec::new();
    let (mut bytes, mut rows) = (0, 0);
    let total = source.manifest.rows();
    while let Some(row) = source.next()? {
        let lines = found.entry(row.table.clone()).or_default();
        lines.rows += 1;
        lines.sha256.update(row.line.as_bytes());
        lines.sha256.update(b"\n");
        let is_other = batch.first().is_some_and(|first| first.table != row.table);
        if is_other || batch.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
            rows += batch.len();
            load(&source.manifest, loading, std::mem::take(&mut batch)).await?;
            bytes = 0;
            step.say(format!("Importing ({rows} of {total} rows)"));
        }
        bytes += row.line.len();
        batch.push(row);
    }
    load(&source.manifest, loading, batch).await?;
    Ok(found)
}

/// Rows of one table.
async fn load(manifest: &Manifest, loading: &mut Loading, batch: Vec<Row>) -> Result<()> {
    let Some(first) = batch.first() else { return Ok(()) };
    let (table, place) = (first.table.clone(), first.place.clone());
    let described = manifest.tables.iter().find(|described| described.shape.table == table);
    let described = described.with_context(|| format!("{place}: the manifest says nothing of a table `{table}`"))?;
    let (lines, places): (Vec<_>, Vec<_>) = batch.into_iter().map(|row| (row.line, row.place)).unzip();
    match loading.load(&table, &described.shape.columns, &lines).await {
        Ok(()) => Ok(()),
        Err(LoadError::Line { index, message }) => {
            let error = anyhow!("{message}").context(format!("{}: the row cannot be taken in", places[index]));
            Err(hinted(error, "mend that line or take another copy of the export, then import again"))
        }
        Err(error) => Err(anyhow!(error).context(format!("{place}: rows cannot be taken in"))),
    }
}

/// Whether everything is there: the lines as they were written, and the database as it was.
async fn check(manifest: &Manifest, found: &BTreeMap<String, Lines>, loading: &mut Loading, step: &Step) -> Result<()> {
    const DAMAGED: &str = "take another copy of the export; this one was changed after it was made";
    for table in &manifest.tables {
        let name = &table.shape.table;
        let (rows, sha256) = match found.get(name) {
            Some(lines) => (lines.rows, lines.sha256.clone()),
            None => (0, Sha256::new()),
        };
        if rows != table.rows {
            return Err(hinted(anyhow!("the export has {rows} rows of {name}, and had {}", table.rows), DAMAGED));
        }
        if files::hex(&sha256.finalize()) != table.sha256 {
            return Err(hinted(anyhow!("rows of {name} are not as they were exported"), DAMAGED));
        }
    }
    if let Some(name) = found.keys().find(|name| !manifest.tables.iter().any(|table| table.shape.table == **name)) {
        bail!("the manifest says nothing of a table `{name}`");
    }
    step.say("Checking relations, making indexes, and counting");
    let next_ids =
        manifest.tables.iter().filter_map(|table| Some((table.shape.table.clone(), table.shape.next_id.clone()?)));
    let sums = loading.finish(&next_ids.collect::<Vec<_>>()).await.map_err(refused)?;
    compare(manifest, &sums)
}

/// With another schema rows have other columns: then only their numbers are compared.
fn compare(manifest: &Manifest, sums: &[TableSum]) -> Result<()> {
    let expected = manifest.sums();
    let exported = |sum: &&TableSum| expected.iter().any(|wanted| wanted.table == sum.table);
    let sums: Vec<_> = sums.iter().filter(exported).cloned().collect();
    if manifest.schema_version == store::known_schema_version() {
        return backup::compare(&sums, &expected);
    }
    for wanted in &expected {
        let rows = sums.iter().find(|sum| sum.table == wanted.table).map(|sum| sum.rows);
        ensure!(rows == Some(wanted.rows), "{} has {rows:?} rows, and had {}", wanted.table, wanted.rows);
    }
    Ok(())
}

fn refused(error: LoadError) -> anyhow::Error {
    let hint = match &error {
        LoadError::NotEmpty { .. } => {
            "import into an installation of its own: `AGENT_MEMORY_HOME=<folder> cargo xtask up`, then import there; or make a backup, and \
             `cargo xtask down --purge && cargo xtask up`"
        }
        LoadError::Relation { .. } => "the export was changed after it was made: take another copy of it",
        _ => "`cargo xtask doctor` checks the database",
    };
    hinted(error, hint)
}

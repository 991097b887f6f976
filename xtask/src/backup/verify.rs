//! Whether a backup can really be restored: it is, into a database of its own, which is counted and dropped.

use anyhow::{Context, Result, anyhow, bail};
use memory::store::{self, TableSum};

use super::archive;
use super::cipher::Key;
use super::journal::{Target, compare_with};
use super::restore::{Scratch, fill};
use super::seal::Sealed;
use crate::output::HintExt;
use crate::runtime::external::told;

/// Restores a checked backup into a scratch database and compares counts, checksums and schema.
pub async fn verify_deeply(target: &mut Target<'_>, sealed: &Sealed, key: Key) -> Result<()> {
    sealed.manifest.check_schema()?;
    archive::check_key(sealed, &key)?;
    let _alone = target.alone().await?;
    let scratch = Scratch::create(target, "_verifying_").await?;
    let compared = async {
        fill(target, sealed, key, scratch.name()).await?;
        let db = store::connect_to(&target.url, scratch.name()).await.map_err(told)?;
        let compared = compare_with(&db, &sealed.manifest).await;
        db.close().await;
        compared
    }
    .await;
    scratch.drop(target).await.context("the scratch database could not be dropped")?;
    compared
        .with_context(|| format!("`{}` cannot be restored as it was made", sealed.path.display()))
        .hint("make a new one now (`cargo xtask backup`), and keep this one until it is there")
}

/// Fails with the first table that is not as expected.
pub fn compare(found: &[TableSum], expected: &[TableSum]) -> Result<()> {
    for wanted in expected {
        let table = &wanted.table;
        let Some(present) = found.iter().find(|present| present.table == *table) else {
            bail!("the table {table} is missing");
        };
        if present.rows != wanted.rows {
            bail!("{table} has {} rows, and had {}", present.rows, wanted.rows);
        }
        if present.checksum != wanted.checksum {
            bail!("{table} has as many rows as it had ({}), and not the same", wanted.rows);
        }
    }
    let more = found.iter().find(|present| !expected.iter().any(|wanted| wanted.table == present.table));
    more.map_or(Ok(()), |more| Err(anyhow!("there is a table {} that was not there", more.table)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(table: &str, rows: i64, checksum: &str) -> TableSum {
        TableSum { table: table.into(), rows, checksum: checksum.into() }
    }

    #[test]
    fn names_the_table_that_differs_and_how() {
        let expected = [sum("mem_a", 2, "x"), sum("mem_b", 3, "y")];
        compare(&expected, &expected).unwrap();
        let told = |found: &[TableSum]| compare(found, &expected).unwrap_err().to_string();
        assert!(told(&[sum("mem_a", 2, "x")]).contains("mem_b is missing"));
        assert!(told(&[sum("mem_a", 1, "x"), sum("mem_b", 3, "y")]).contains("mem_a has 1 rows, and had 2"));
        assert!(told(&[sum("mem_a", 2, "x"), sum("mem_b", 3, "z")]).contains("not the same"));
        assert!(told(&[expected.to_vec(), vec![sum("mem_c", 0, "")]].concat()).contains("mem_c"));
    }
}

//! The journal as the operator sees it: whether its database answers, and how much is in it.

use anyhow::{Context, Result};
use memory::home::Home;
use memory::store::{self, Db, Stats};

use crate::output::HintExt;
use crate::runtime::external::told;

/// Opens the installation's database.
pub async fn open(home: &Home) -> Result<Db> {
    let url = home.database_url().context("no database is installed").hint("run `cargo xtask up`")?;
    store::connect(&url).await.map_err(told)
}

/// How much is in the journal.
pub async fn stats(home: &Home) -> Result<Stats> {
    let db = open(home).await?;
    let stats = store::stats(&db).await.context("cannot count what is in the journal");
    db.close().await;
    stats.hint("run `cargo xtask migrate` if the schema is older than this program")
}

/// Brings the schema up to date; gives the version it then has.
pub async fn migrate(home: &Home) -> Result<Option<i64>> {
    let db = open(home).await?;
    let outcome = store::migrate(&db).await.map_err(told);
    let version = store::schema_version(&db).await.context("cannot read the schema's version");
    db.close().await;
    outcome?;
    version
}

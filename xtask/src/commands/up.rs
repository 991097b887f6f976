//! `up`: builds, installs, starts and registers everything, and says how to go on. Safe to repeat: what is as it should
//! be is left alone.

use std::net::SocketAddr;
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
use crate::install::build::{self, Built};
use crate::install::downloads::Downloads;
use crate::install::layout;
use crate::install::model::{self, InstalledModel, ModelSource};
use crate::install::pins::Target;
use crate::install::summary::{self, Outcome};
use crate::moving;
use crate::output::{Form, HintExt, Printer, headline, hinted, report};
use crate::repository::Repository;
use crate::runtime::docker::{self, Engine};
use crate::runtime::embedded::InstalledPostgres;
use crate::runtime::lock::Lock;
use crate::runtime::server::Server;
use crate::runtime::{self, Installation, RuntimeKind, external, moved_home, postgres_url};
use crate::schedule::{self, Ensured};
use crate::upgrade::{self, Changed, Former};

pub(super) async fn run(arguments: UpArgs, home: &Home, printer: &Printer) -> Result<()> {
    if arguments.undo {
        let undone = upgrade::undo(home, printer).await?;
        printer.data(undone);
        return Ok(());
    }
    let started = Instant::now();
    let repository = Repository::locate()?;
    layout::check_home(home)?;
    let before = Installation::read(home).unwrap_or_else(|error| {
        printer.warn(format_args!("{error:#}; writing it anew"));
        None
    });
    // Everything that can refuse does so before anything is made.
    moved_home::refuse_copy(home)?;
    let former_home = moved_home::former(home);
    let plan = Plan::make(&arguments, before.as_ref(), home).await?;
    printer.note(format_args!("Runtime: {} ({})", plan.runtime.kind(), plan.because));
    let address = layout::choose_address(home, arguments.port)?;
    plan.check(before.as_ref(), address, home, printer).await?;

    layout::create(home)?;
    let _alone = Lock::acquire(&layout::lock_file(home), printer).await?;
    if before.is_some() {
        moving::tidy(home, printer).await?;
    }
    if let Ok(now) = Installation::read(home)
        && now != before
    {
        let error = anyhow!("another command changed the installation while this one waited for it");
        return Err(hinted(error, "run `cargo xtask up` again"));
    }
    let (built, model) = build_and_download(&repository, &plan, &arguments, home, printer).await?;
    if let Some(before) = &before
        && before.address != address
    {
        runtime::stop(before, home, printer).await?;
    }
    let former = match &before {
        Some(before) => Some(plan.before_newer(before, home, printer).await?),
        None => None,
    };
    let database_url = files::read_if_there(&home.database_url_file())?;
    let changed = build::install_programs(home, &built)?;
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
        folder: Some(home.root().to_owned()),
    };
    if before.as_ref() != Some(&installation) {
        installation.write(home)?;
    }
    let start = Start { address, stale, repository: &repository };
    installation.database = match (plan.start(&start, home, printer).await, former) {
        (Ok(database), former) => {
            plan.forget(former.as_ref(), home).await?;
            database
        }
        (Err(trouble), Some(former)) if former.differs(home)? => {
            let changed = Changed { installation, database_url };
            return Err(upgrade::roll_back(&former, &changed, trouble, home, printer).await);
        }
        (Err(trouble), former) => {
            plan.forget(former.as_ref(), home).await?;
            return Err(trouble);
        }
    };
    layout::write_start_command(home)?;

    if before.as_ref() != Some(&installation) {
        Installation { installed_at: Utc::now(), ..installation.clone() }.write(home)?;
    }
    let found = if arguments.no_register { Found::default() } else { super::register::register_found(home, printer)? };
    if let Some(former) = &former_home {
        printer.note(format_args!(
            "The home was `{}` before; what starts there by itself is taken away",
            former.display()
        ));
        if let Err(error) = schedule::leave(home, former).await {
            printer.warn(format_args!("The daily backup of `{}` is left over: {}", former.display(), headline(&error)));
        }
    }
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
        if let Some(before) = before {
            self.check_data_stays(before, home, printer)?;
        }
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

    /// Another runtime has another database: what is remembered is not left behind by an option.
    fn check_data_stays(&self, before: &Installation, home: &Home, printer: &Printer) -> Result<()> {
        if before.runtime != self.runtime.kind() {
            let to = match &self.runtime {
                Runtime::External { .. } => "URL".to_owned(),
                other => other.kind().to_string(),
            };
            let error = anyhow!(
                "what is remembered lies in the {} runtime, and {} has another database",
                before.runtime,
                self.runtime.kind()
            );
            return Err(hinted(error, format!("`cargo xtask move --to {to}` takes it along")));
        }
        if let Runtime::External { url } = &self.runtime
            && let Ok(installed) = home.database_url()
            && postgres_url::place(&installed) != postgres_url::place(url)
        {
            printer.warn(format_args!(
                "what was remembered stays in {}; `cargo xtask move --to URL` would take it along",
                postgres_url::place(&installed)
            ));
        }
        Ok(())
    }

    /// Sees to it that there is a way back to what is installed: a backup, if a newer schema is about to come, and the programs.
    async fn before_newer(&self, before: &Installation, home: &Home, printer: &Printer) -> Result<Former> {
        if let Runtime::Embedded(postgres) = &self.runtime {
            postgres.start().await?;
        }
        let schema_version = upgrade::schema_version(home, printer).await;
        let backup = upgrade::back_up_first(home, printer).await?.map(|made| made.path);
        if let Some(former) = Former::read(home)? {
            return Ok(former);
        }
        let mut former = Former::of(before.clone(), schema_version, backup);
        if let Runtime::Docker(engine) = &self.runtime {
            former.image = docker::keep_server_image(engine, home).await?;
        }
        former.keep(home)
    }

    /// What is new has proven itself, or is nothing new: what was before need not be kept.
    async fn forget(&self, former: Option<&Former>, home: &Home) -> Result<()> {
        if let (Runtime::Docker(engine), Some(image)) = (&self.runtime, former.and_then(|former| former.image.as_ref()))
        {
            docker::forget_server_image(engine, home, image).await?;
        }
        upgrade::former::forget(home)
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
    arguments: &UpArgs,
    home: &Home,
    printer: &Printer,
) -> Result<(Built, InstalledModel)> {
    let source = arguments.embedding_model_dir.clone().map_or(ModelSource::Pinned, ModelSource::Folder);
    let downloads = Downloads::into_folder(home.downloads());
    let target = match &plan.runtime {
        Runtime::Docker(engine) => Target::container(&engine.architecture),
        Runtime::Embedded(_) | Runtime::External { .. } => Target::host(),
    };
    let build = async {
        match &arguments.programs {
            Some(folder) => Built::elsewhere(folder),
            None => build::build(repository, printer).await.map(Built::Here),
        }
    };
    let download = async {
        let model = model::install(home, &source, &downloads, target).await?;
        if let Runtime::Embedded(postgres) = &plan.runtime {
            postgres.ensure_program(&downloads).await?;
        }
        anyhow::Ok(model)
    };
    let (building, download) = (pin!(build), pin!(download));
    // cargo shows its own progress, so the download is silent until cargo is done.
    match select(building, download).await {
        Either::Left((programs, download)) => {
            let programs = programs?;
            let step = printer.step("Downloading the model and what runs it");
            let model = download.await?;
            step.skip();
            Ok((programs, model))
        }
        Either::Right((model, building)) => {
            let model = model?;
            Ok((building.await?, model))
        }
    }
}

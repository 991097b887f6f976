//! The Docker runtime: database and server as containers, made from compose/compose.yaml through the engine's API. The
//! functions here are what the commands call, with the engine that [`detect`] or [`require`] has found.

mod description;
mod engine;
mod health;
mod images;
mod interpolation;
mod mapping;
mod observe;
mod ownership;
mod ports;
mod project;
mod secrets;
mod stack;
mod teardown;
mod tools;
mod values;

use anyhow::{Context, Result};
use memory::home::Home;

use self::images::Workshop;
use self::secrets::Secrets;
use self::stack::{Made, Plan};
use self::values::Values;
use super::{LogRequest, ServiceState};
use crate::files;
use crate::output::{HintExt, Printer};

pub use self::engine::{Engine, NoEngine, detect, require};
pub use self::images::{Images, Rebuild, ServerSource};
pub use self::tools::ContainerTools;

/// The services' names in compose.yaml.
const DATABASE: &str = "database";
const SERVER: &str = "server";

/// What `up` is asked for.
#[derive(Debug, Clone, Copy)]
pub struct UpOptions<'a> {
    /// The server's port on 127.0.0.1.
    pub port: u16,
    pub server: ServerSource<'a>,
}

/// Where an installation in containers is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    pub project: String,
    pub server_port: u16,
    pub database_port: u16,
}

/// Makes images where they are missing or stale, then the stack; waits until both containers are healthy. Writes
/// `database-url`. The home and its token must be there. A second call changes nothing.
pub async fn up(engine: &Engine, home: &Home, printer: &Printer, options: UpOptions<'_>) -> Result<Stack> {
    let before = Values::read(home)?;
    if before.as_ref().is_none_or(|before| before.server_port != options.port) {
        ports::require_free(options.port)?;
    }
    let values = choose(engine, home, printer, options).await?;
    raise(engine, home, printer, Raising { values: &values, extent: Extent::All }).await?;
    // Until now the containers that a new image has replaced may have held on to the old one.
    images::remove_replaced(engine).await?;
    Ok(Stack { project: values.project, server_port: values.server_port, database_port: values.database_port })
}

/// Makes the images and starts the database alone, for data that shall move there; the installation does not know of it yet.
pub async fn up_database(
    engine: &Engine,
    home: &Home,
    printer: &Printer,
    options: UpOptions<'_>,
) -> Result<DatabaseAlone> {
    let values = choose(engine, home, printer, options).await?;
    let raised = raise(engine, home, printer, Raising { values: &values, extent: Extent::Database }).await?;
    Ok(DatabaseAlone {
        url: Secrets::of(home)?.database_url_on_host(values.database_port),
        is_new: raised.made_volume(),
    })
}

/// A database without a server.
#[derive(Debug)]
pub struct DatabaseAlone {
    pub url: String,
    /// Whether its volume was made for it: one that was there holds data.
    pub is_new: bool,
}

/// Whether containers of this home were made, and not purged since.
pub fn is_installed(home: &Home) -> bool {
    values::file(home).exists()
}

/// Makes the images, and decides what compose.yaml leaves open.
async fn choose(engine: &Engine, home: &Home, printer: &Printer, options: UpOptions<'_>) -> Result<Values> {
    let before = Values::read(home)?;
    let project = project::of(engine, home).await?;
    let images = Workshop::on(engine, printer, Rebuild::IfStale).ensure(&project, options.server).await?;
    Ok(Values {
        project,
        home: values::absolute(home)?,
        container_user: ownership::match_with(home, engine.rootless)?.container_user,
        server_port: options.port,
        database_port: ports::for_database(before.map(|before| before.database_port))?,
        images,
    })
}

/// Starts what the last `up` installed: builds nothing, pulls nothing.
pub async fn start(engine: &Engine, home: &Home, printer: &Printer) -> Result<()> {
    let values =
        Values::read(home)?.context("no containers are installed in this home").hint("run `cargo xtask up`")?;
    // The home may have been moved since.
    let values = Values { home: values::absolute(home)?, ..values };
    raise(engine, home, printer, Raising { values: &values, extent: Extent::All }).await.map(drop)
}

/// Removes containers and network, keeps the data; says whether there was anything to remove.
pub async fn down(engine: &Engine, home: &Home, printer: &Printer) -> Result<bool> {
    teardown::down(engine, home, printer).await
}

/// Stops the server's container and keeps it; says whether it ran. The database's runs on.
pub async fn stop_server(engine: &Engine, home: &Home) -> Result<bool> {
    teardown::stop_server(engine, home).await
}

/// Keeps the server's image under a second name; gives its first.
pub async fn keep_server_image(engine: &Engine, home: &Home) -> Result<Option<String>> {
    images::former::keep(engine, home).await
}

/// Lets the kept image be the server's again.
pub async fn put_server_image_back(engine: &Engine, home: &Home, reference: &str) -> Result<()> {
    images::former::put_back(engine, home, reference).await
}

/// Removes the image that was kept by that name.
pub async fn forget_server_image(engine: &Engine, home: &Home, reference: &str) -> Result<()> {
    images::former::forget(engine, home, reference).await
}

/// Removes containers, network and volume: every memory in it is gone. Images stay. Ask before.
pub async fn purge(engine: &Engine, home: &Home, printer: &Printer) -> Result<()> {
    teardown::purge(engine, home, printer).await
}

/// What of this home's is in the engine.
pub async fn left(engine: &Engine, home: &Home) -> Result<Vec<Part>> {
    teardown::left(engine, home).await
}

/// Something of ours in an engine.
#[derive(Debug)]
pub struct Part {
    /// `the container agent-memory-server`.
    pub name: String,
    /// Whether it holds what is remembered.
    pub is_data: bool,
}

/// The images that only this home uses: its server's; and, where no other home has data in this engine, those that all share.
pub async fn own_images(engine: &Engine, home: &Home) -> Result<Vec<String>> {
    teardown::own_images(engine, home).await
}

/// Removes images by their names.
pub async fn remove_images(engine: &Engine, names: &[String]) -> Result<()> {
    for name in names {
        images::former::untag(engine, name).await?;
    }
    Ok(())
}

/// Both services, also where there is no container.
pub async fn state(engine: &Engine, home: &Home) -> Result<Vec<ServiceState>> {
    observe::state(engine, home).await
}

/// Prints the last lines, and with `follow` what comes until the operator ends it.
pub async fn logs(engine: &Engine, home: &Home, printer: &Printer, request: LogRequest) -> Result<()> {
    observe::logs(engine, home, printer, request).await
}

/// Makes all images; what is up to date is left alone unless asked otherwise.
pub async fn images(engine: &Engine, printer: &Printer, server: ServerSource<'_>, rebuild: Rebuild) -> Result<Images> {
    Workshop::on(engine, printer, rebuild).ensure(values::DEFAULT_PROJECT, server).await
}

/// Makes sure of a Postgres image with pgvector and gives its reference, `name:tag`. With `POSTGRES_PASSWORD` (and
/// `POSTGRES_USER`, `POSTGRES_DB`) in its environment a container of it listens on 5432.
pub async fn ensure_postgres_image(printer: &Printer) -> Result<&'static str> {
    Workshop::on(&engine::require().await?, printer, Rebuild::IfStale).ensure_postgres().await
}

/// Makes sure of an image with pgbouncer and gives its reference, `name:tag`. A container of it wants a `/tmp/pgbouncer.ini`.
pub async fn ensure_pooler_image(printer: &Printer) -> Result<&'static str> {
    Workshop::on(&engine::require().await?, printer, Rebuild::IfStale).ensure_pooler().await
}

/// What to bring up.
#[derive(Debug, Clone, Copy)]
struct Raising<'a> {
    values: &'a Values,
    extent: Extent,
}

/// How much of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    All,
    /// Without the server, and without telling the programs on the host of it.
    Database,
}

async fn raise(engine: &Engine, home: &Home, printer: &Printer, raising: Raising<'_>) -> Result<Made> {
    let Raising { values, extent } = raising;
    let secrets = Secrets::of(home)?;
    let description = values.describe()?;
    secrets::check_all_are_written(&description, &secrets)?;
    share_files(home, engine, &secrets)?;
    let mut made = Made::default();
    let server_port = values.server_port;
    let plan = Plan { engine, home_path: values.home.clone(), printer, description, secrets, server_port, extent };
    let database_url = format!("{}\n", plan.secrets.database_url_on_host(values.database_port));
    let told = match extent {
        Extent::All => made.write_file(home.database_url_file(), &database_url),
        Extent::Database => Ok(()),
    };
    let written = told.and_then(|()| made.write_file(values::file(home), &values.to_env_file()));
    let raised = match written {
        Ok(()) => stack::raise(&plan, &mut made).await,
        failed => failed,
    };
    if let Err(error) = raised {
        made.undo(engine).await;
        if !values::file(home).exists() {
            // A first `up` that failed: nobody will ask for these.
            drop(files::remove(&secrets::folder(home)));
        }
        return Err(error);
    }
    Ok(made)
}

/// Gives the containers what they share with the host, and keeps everyone else out.
fn share_files(home: &Home, engine: &Engine, secrets: &Secrets) -> Result<()> {
    let owners = ownership::match_with(home, engine.rootless)?;
    secrets.write(home, &owners)?;
    for folder in [home.config(), home.models(), home.spool(), home.spool().join("rejected")] {
        files::create_private_folder(&folder)?;
    }
    files::make_private(&home.spool())?;
    if let Some(owner) = owners.server {
        ownership::give_all(&home.spool(), owner)?;
        for folder in [home.models(), home.config()] {
            if ownership::owner_of(&folder).ok().flatten() != Some(owner) {
                ownership::let_read_all(&folder)?;
            }
        }
    }
    Ok(())
}

/// The networks' names in the description, without a project.
fn networks(home: &Home) -> Result<Vec<String>> {
    Ok(described(home)?.networks.into_keys().collect())
}

/// The volumes' names in the description, without a project.
fn volumes(home: &Home) -> Result<Vec<String>> {
    Ok(described(home)?.volumes.into_keys().collect())
}

/// The description for its names alone: the values may never have been chosen.
fn described(home: &Home) -> Result<description::Description> {
    let home_path = values::absolute(home)?;
    description::Description::ours(&[("AGENT_MEMORY_HOME".to_owned(), home_path)].into())
}

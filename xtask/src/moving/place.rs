//! The other end of a move: made ready before anything stops, taken away again if nothing comes of it.

use std::fmt::{self, Display};

use anyhow::{Context, Result};
use memory::home::Home;
use serde::{Deserialize, Serialize};

use crate::backup::Target;
use crate::install::downloads::Downloads;
use crate::install::model;
use crate::install::pins::Target as System;
use crate::output::{HintExt, Printer, hinted};
use crate::repository::Repository;
use crate::runtime::docker::{self, Engine, ServerSource, UpOptions};
use crate::runtime::embedded::InstalledPostgres;
use crate::runtime::{Installation, RuntimeKind, external, postgres_url};

/// Where a database can live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Docker,
    Embedded,
    /// The user's own Postgres, by its URL.
    External(String),
}

impl Place {
    /// What a person wrote behind `--to`; for `external` with the URL that their environment names.
    pub fn parse(text: &str, database_url: Option<&str>) -> Result<Self> {
        match text {
            "docker" => Ok(Self::Docker),
            "embedded" => Ok(Self::Embedded),
            "external" => {
                let url = database_url.context("AGENT_MEMORY_DATABASE_URL is not set");
                Ok(Self::External(url.hint("let it name your Postgres, or write the URL behind `--to`")?.to_owned()))
            }
            url if url.contains("://") => Ok(Self::External(url.to_owned())),
            other => Err(hinted(
                anyhow::anyhow!("`{other}` is no place for a database"),
                "write `docker`, `embedded`, `external`, or a URL (postgres://user:password@host:port/name)",
            )),
        }
    }

    pub fn kind(&self) -> RuntimeKind {
        match self {
            Self::Docker => RuntimeKind::Docker,
            Self::Embedded => RuntimeKind::Embedded,
            Self::External(_) => RuntimeKind::External,
        }
    }
}

impl Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Docker => formatter.write_str("Docker"),
            Self::Embedded => formatter.write_str("the embedded Postgres"),
            Self::External(url) => write!(formatter, "the Postgres at {}", postgres_url::place(url)),
        }
    }
}

/// A place whose database answers.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) url: String,
    /// What becomes of it if nothing comes of the move: one that was there keeps what it has.
    pub(super) leaving: Leaving,
}

/// Makes the place ready, with all that will run there; what runs now is not touched.
pub(super) async fn make_ready(
    place: &Place,
    installation: &Installation,
    home: &Home,
    printer: &Printer,
) -> Result<Ready> {
    let downloads = Downloads::into_folder(home.downloads());
    match place {
        Place::Docker => {
            let engine = docker::require().await?;
            model::install_library(home, &downloads, System::container(&engine.architecture)).await?;
            let alone = with_options(installation, home, async |options| {
                docker::up_database(&engine, home, printer, options).await
            })
            .await?;
            Ok(Ready { url: alone.url, leaving: if alone.is_new { Leaving::Removed } else { Leaving::Stopped } })
        }
        Place::Embedded => {
            let postgres = InstalledPostgres::of_home(home)?;
            let leaving = if postgres.has_data() { Leaving::Stopped } else { Leaving::Removed };
            let step = printer.step("Starting Postgres");
            postgres.ensure_program(&downloads).await?;
            model::install_library(home, &downloads, System::host()).await?;
            let url = postgres.start().await?;
            step.done(format!("Started Postgres at {}", postgres_url::place(&url)));
            Ok(Ready { url, leaving })
        }
        Place::External(url) => {
            external::check_server(url).await?;
            model::install_library(home, &downloads, System::host()).await?;
            Ok(Ready { url: url.clone(), leaving: Leaving::Stopped })
        }
    }
}

/// Starts the whole stack where the database runs already.
pub(super) async fn raise_containers(
    engine: &Engine,
    installation: &Installation,
    home: &Home,
    printer: &Printer,
) -> Result<()> {
    with_options(installation, home, async |options| docker::up(engine, home, printer, options).await.map(drop)).await
}

async fn with_options<T>(
    installation: &Installation,
    home: &Home,
    act: impl AsyncFnOnce(UpOptions<'_>) -> Result<T>,
) -> Result<T> {
    let (repository, program) = (Repository::locate()?, home.program("agent-memory-server"));
    let server = ServerSource { repository: repository.root(), program: &program };
    act(UpOptions { port: installation.address.port(), server }).await
}

/// What becomes of a database that is not in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leaving {
    /// It keeps what it holds.
    Stopped,
    /// With all that it holds. The user's own is theirs to remove.
    Removed,
}

pub(super) async fn leave(kind: RuntimeKind, leaving: Leaving, home: &Home, printer: &Printer) -> Result<()> {
    match kind {
        RuntimeKind::Docker => {
            let engine = docker::require().await?;
            match leaving {
                Leaving::Stopped => docker::down(&engine, home, printer).await.map(drop),
                Leaving::Removed => docker::purge(&engine, home, printer).await,
            }
        }
        RuntimeKind::Embedded => {
            let postgres = InstalledPostgres::of_home(home)?;
            postgres.stop().await?;
            if leaving == Leaving::Removed { postgres.remove() } else { Ok(()) }
        }
        RuntimeKind::External => Ok(()),
    }
}

/// The installation as it will be.
pub(super) fn installed_at(place: &Place, installation: &Installation, url: &str) -> Installation {
    Installation { runtime: place.kind(), database: postgres_url::place(url), ..installation.clone() }
}

/// The database there, as backups see it.
pub(super) async fn target<'a>(
    installation: Installation,
    url: &str,
    home: &'a Home,
    printer: &'a Printer,
) -> Result<Target<'a>> {
    let to = postgres_url::place(url);
    Target::at(installation, url.to_owned(), home, printer)
        .await
        .with_context(|| format!("cannot use the database at {to}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn understands_what_a_person_writes_and_hides_the_password() {
        assert_eq!(Place::parse("docker", None).unwrap(), Place::Docker);
        assert_eq!(Place::parse("embedded", None).unwrap(), Place::Embedded);
        let url = "postgres://u:secret@h/d";
        let place = Place::parse(url, None).unwrap();
        assert_eq!(Place::parse("external", Some(url)).unwrap(), place);
        assert_eq!((place.kind(), place.to_string().as_str()), (RuntimeKind::External, "the Postgres at h/d"));
        let told = crate::output::report(&Place::parse("dokcer", None).unwrap_err());
        assert!(told.contains("`dokcer`") && told.contains("hint: "), "{told}");
        assert!(Place::parse("external", None).is_err());
    }
}

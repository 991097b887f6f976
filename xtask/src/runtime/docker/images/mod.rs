//! Which images a stack runs on, and how they come to be: pulled where a registry answers, else built from Debian's
//! packages and the host's own program.

mod base;
mod build;
mod context;
pub(crate) mod former;
mod registry;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use self::build::Recipe;
use self::context::{BuildContext, Kind};
use self::registry::Registry;
use super::engine::Engine;
use crate::output::{HintExt, Printer};

pub(crate) use self::build::remove_replaced;
pub(crate) use self::registry::image_id;

/// The official image, and ours for where it cannot be pulled.
pub(crate) const PGVECTOR: &str = "pgvector/pgvector:pg17";
pub(crate) const POSTGRES: &str = "agent-memory-postgres:17";
/// Images of ours that the stacks of all homes are made of.
pub(crate) const SHARED: [&str; 2] = [POSTGRES, base::OURS];
/// For tests: a pooler in front of Postgres.
const POOLER: &str = "agent-memory-pgbouncer:trixie";
const RUST: &str = "rust:1-slim-trixie";

/// What the server's image can be built from.
#[derive(Debug, Clone, Copy)]
pub struct ServerSource<'a> {
    /// The checkout.
    pub repository: &'a Path,
    /// The release build of `agent-memory-server` on this host.
    pub program: &'a Path,
}

/// Whether images that are up to date are left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuild {
    IfStale,
    Always,
}

/// The images that a stack runs on, by their references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    pub postgres: String,
    pub server: String,
}

/// The server's image of a project, as Compose would name it, one tag a version: what is installed and what is being
/// tried out do not take each other's place.
pub(crate) fn server_reference(project: &str) -> String {
    format!("{project}-server:{}", env!("CARGO_PKG_VERSION"))
}

/// An image's name without its tag.
pub(crate) fn name_of(reference: &str) -> &str {
    registry::split(reference).0
}

/// Makes images on one engine.
#[derive(Debug)]
pub(crate) struct Workshop<'a> {
    engine: &'a Engine,
    printer: &'a Printer,
    registry: Registry<'a>,
    rebuild: Rebuild,
}

impl<'a> Workshop<'a> {
    pub(crate) fn on(engine: &'a Engine, printer: &'a Printer, rebuild: Rebuild) -> Self {
        Self { engine, printer, registry: Registry::of(engine, printer), rebuild }
    }

    /// Makes sure of both images of a project.
    pub(crate) async fn ensure(&self, project: &str, source: ServerSource<'_>) -> Result<Images> {
        let postgres = self.ensure_postgres().await?;
        let server = server_reference(project);
        self.ensure_server(&server, source).await?;
        Ok(Images { postgres: postgres.to_owned(), server })
    }

    /// Makes sure of a Postgres image; gives its reference.
    pub(crate) async fn ensure_postgres(&self) -> Result<&'static str> {
        let context = BuildContext::default()
            .with("Dockerfile", include_str!("../../../../../compose/postgres/Dockerfile"), Kind::Text)
            .with("entrypoint.sh", include_str!("../../../../../compose/postgres/entrypoint.sh"), Kind::Program);
        // A stack that runs on ours stays on it: changing images under a database is nobody's wish.
        if self.is_current(POSTGRES, &context).await? {
            return Ok(POSTGRES);
        }
        if self.registry.has(PGVECTOR).await? {
            return Ok(PGVECTOR);
        }
        let base = base::ensure(self.engine, self.printer, &self.registry).await?;
        let arguments = HashMap::from([("BASE_IMAGE".to_owned(), base.to_owned())]);
        let recipe = Recipe {
            tag: POSTGRES,
            what: "the Postgres image",
            dockerfile: "Dockerfile",
            context,
            arguments,
            rebuild: self.rebuild,
        };
        build::build(self.engine, self.printer, recipe).await?;
        Ok(POSTGRES)
    }

    /// Makes sure of an image with pgbouncer; gives its reference.
    pub(crate) async fn ensure_pooler(&self) -> Result<&'static str> {
        let context = BuildContext::default().with(
            "Dockerfile",
            include_str!("../../../../../compose/pgbouncer/Dockerfile"),
            Kind::Text,
        );
        if self.is_current(POOLER, &context).await? {
            return Ok(POOLER);
        }
        let base = base::ensure(self.engine, self.printer, &self.registry).await?;
        let arguments = HashMap::from([("BASE_IMAGE".to_owned(), base.to_owned())]);
        let recipe = Recipe {
            tag: POOLER,
            what: "the image of pgbouncer",
            dockerfile: "Dockerfile",
            context,
            arguments,
            rebuild: self.rebuild,
        };
        build::build(self.engine, self.printer, recipe).await?;
        Ok(POOLER)
    }

    async fn ensure_server(&self, tag: &str, source: ServerSource<'_>) -> Result<()> {
        let host = context_of_host_program(self.engine, source.program)?;
        if let Some(context) = &host
            && self.is_current(tag, context).await?
        {
            return Ok(());
        }
        let (dockerfile, context, rust_image) = if self.registry.has(RUST).await? {
            let context = BuildContext::of_repository(source.repository)?;
            if self.is_current(tag, &context).await? {
                return Ok(());
            }
            ("compose/server/Dockerfile", context, Some(RUST))
        } else {
            let context = host
                .context(
                    "no registry gives a Rust image, and this host's programs do not run in the engine's containers",
                )
                .hint("let the engine reach a registry, or do without Docker: `cargo xtask up --runtime embedded`")?;
            ("Dockerfile", context, None)
        };
        let base = base::ensure(self.engine, self.printer, &self.registry).await?;
        let mut arguments = HashMap::from([("BASE_IMAGE".to_owned(), base.to_owned())]);
        arguments.extend(rust_image.map(|image| ("RUST_IMAGE".to_owned(), image.to_owned())));
        let recipe = Recipe { tag, what: "the server's image", dockerfile, context, arguments, rebuild: self.rebuild };
        build::build(self.engine, self.printer, recipe).await?;
        remove_replaced(self.engine).await
    }

    async fn is_current(&self, tag: &str, context: &BuildContext) -> Result<bool> {
        Ok(self.rebuild == Rebuild::IfStale && build::is_current(self.engine, tag, context).await?)
    }
}

/// The context of `Dockerfile.host`, or `None` where this host's programs are not the engine's.
fn context_of_host_program(engine: &Engine, program: &Path) -> Result<Option<BuildContext>> {
    let same_machine = std::env::consts::OS == "linux" && std::env::consts::ARCH == engine.architecture;
    if !same_machine {
        return Ok(None);
    }
    let server = fs::read(program)
        .with_context(|| format!("cannot read the server's program `{}`", program.display()))
        .hint("run `cargo xtask up`; it builds and installs the programs")?;
    let context = BuildContext::default()
        .with("Dockerfile", include_str!("../../../../../compose/server/Dockerfile.host"), Kind::Text)
        .with("ca-certificates.crt", certificates(), Kind::Text)
        .with("agent-memory-server", server, Kind::Program);
    Ok(Some(context))
}

/// The host's certificates, so that the server trusts what its user's other programs trust. Empty if there are none.
fn certificates() -> Vec<u8> {
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"]
        .into_iter()
        .find_map(|path| fs::read(path).ok())
        .unwrap_or_default()
}

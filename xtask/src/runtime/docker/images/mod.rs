//! Which images a stack runs on, and how they come to be: pulled where a registry answers, else built from Debian's
//! packages and the host's own program.

mod base;
mod build;
mod context;
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
/// One tag a version: what is installed and what is being tried out do not take each other's place.
pub(crate) const SERVER: &str = concat!("agent-memory-server:", env!("CARGO_PKG_VERSION"));
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

/// Makes sure of both images.
pub(crate) async fn ensure(
    engine: &Engine,
    printer: &Printer,
    source: ServerSource<'_>,
    rebuild: Rebuild,
) -> Result<Images> {
    let registry = Registry::of(engine, printer);
    let postgres = postgres(engine, printer, &registry, rebuild).await?;
    server(engine, printer, &registry, source, rebuild).await?;
    Ok(Images { postgres: postgres.to_owned(), server: SERVER.to_owned() })
}

/// Makes sure of the Postgres image alone; gives its reference.
pub(crate) async fn ensure_postgres(engine: &Engine, printer: &Printer) -> Result<&'static str> {
    postgres(engine, printer, &Registry::of(engine, printer), Rebuild::IfStale).await
}

async fn postgres(
    engine: &Engine,
    printer: &Printer,
    registry: &Registry<'_>,
    rebuild: Rebuild,
) -> Result<&'static str> {
    let context = BuildContext::default()
        .with("Dockerfile", include_str!("../../../../../compose/postgres/Dockerfile"), Kind::Text)
        .with("entrypoint.sh", include_str!("../../../../../compose/postgres/entrypoint.sh"), Kind::Program);
    // A stack that runs on ours stays on it: changing images under a database is nobody's wish.
    if build::is_current(engine, POSTGRES, &context, rebuild).await? {
        return Ok(POSTGRES);
    }
    if registry.has(PGVECTOR).await? {
        return Ok(PGVECTOR);
    }
    let base = base::ensure(engine, printer, registry).await?;
    let arguments = HashMap::from([("BASE_IMAGE".to_owned(), base.to_owned())]);
    let recipe = Recipe { tag: POSTGRES, what: "the Postgres image", dockerfile: "Dockerfile", context, arguments };
    build::build(engine, printer, recipe).await?;
    Ok(POSTGRES)
}

async fn server(
    engine: &Engine,
    printer: &Printer,
    registry: &Registry<'_>,
    source: ServerSource<'_>,
    rebuild: Rebuild,
) -> Result<()> {
    let host = context_of_host_program(engine, source.program)?;
    if let Some(context) = &host
        && build::is_current(engine, SERVER, context, rebuild).await?
    {
        return Ok(());
    }
    let (dockerfile, context, rust_image) = if registry.has(RUST).await? {
        let context = BuildContext::of_repository(source.repository)?;
        if build::is_current(engine, SERVER, &context, rebuild).await? {
            return Ok(());
        }
        ("compose/server/Dockerfile", context, Some(RUST))
    } else {
        let context = host
            .context("no registry gives a Rust image, and this host's programs do not run in the engine's containers")
            .hint("let the engine reach a registry, or do without Docker: `cargo xtask up --runtime embedded`")?;
        ("Dockerfile", context, None)
    };
    let base = base::ensure(engine, printer, registry).await?;
    let mut arguments = HashMap::from([("BASE_IMAGE".to_owned(), base.to_owned())]);
    arguments.extend(rust_image.map(|image| ("RUST_IMAGE".to_owned(), image.to_owned())));
    let recipe = Recipe { tag: SERVER, what: "the server's image", dockerfile, context, arguments };
    build::build(engine, printer, recipe).await?;
    remove_replaced(engine).await
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

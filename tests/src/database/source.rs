//! Where the run's Postgres comes from: one that was named, else a container, else the embedded one.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use testcontainers::bollard::models::{HostConfig, PortBinding};
use testcontainers::core::{IntoContainerPort, WaitFor};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, GenericImage, ImageExt};
use xtask::runtime::embedded;

use crate::{settings, wait};

/// What `cargo xtask images` builds.
const DEFAULT_IMAGE: &str = "agent-memory-postgres:17";
/// Many tests at once, each with a server's pool and an MCP's beside its own.
const MAX_CONNECTIONS: &str = "max_connections=400";

/// A running Postgres and how to be rid of it.
pub enum Source {
    Given { url: String },
    Container { url: String, image: String, container: Box<ContainerAsync<GenericImage>> },
    Embedded { postgres: embedded::Postgres, because: String },
}

impl Source {
    pub async fn start() -> Result<Self> {
        if let Some(url) = settings::get(settings::DATABASE_URL) {
            let reached = PgConnection::connect(&url).await;
            reached.with_context(|| format!("connecting to the Postgres that {} names", settings::DATABASE_URL))?;
            return Ok(Self::Given { url });
        }
        match container().await {
            Ok(source) => Ok(source),
            Err(refusal) => embedded(format!("{refusal:#}")).await,
        }
    }

    pub fn url(&self) -> &str {
        match self {
            Self::Given { url } | Self::Container { url, .. } => url,
            Self::Embedded { postgres, .. } => postgres.url(),
        }
    }

    /// One line for the summary; no password in it.
    pub fn description(&self) -> String {
        match self {
            Self::Given { .. } => format!("the one that {} names", settings::DATABASE_URL),
            Self::Container { image, .. } => format!("a container of {image}"),
            Self::Embedded { because, .. } => {
                format!("the embedded Postgres, because no container could be had: {because}")
            }
        }
    }

    /// Removes what [`Source::start`] made. Of a Postgres that was given, only the databases of this run.
    pub async fn stop(self, prefix: &str) -> Result<()> {
        match self {
            Self::Given { url } => drop_databases(&url, prefix).await,
            Self::Container { container, .. } => (*container).rm().await.context("removing the test run's container"),
            Self::Embedded { postgres, .. } => postgres.stop().await.context("stopping the embedded Postgres"),
        }
    }
}

async fn container() -> Result<Source> {
    let image = settings::get(settings::POSTGRES_IMAGE).unwrap_or_else(|| DEFAULT_IMAGE.to_owned());
    let Some((name, tag)) = image.rsplit_once(':') else { bail!("`{image}` is not `name:tag`") };
    let password = uuid::Uuid::new_v4().simple().to_string();
    let container = GenericImage::new(name, tag)
        .with_exposed_port(5432.tcp())
        // The official image first runs a server without a network to set itself up.
        .with_wait_for(WaitFor::message_on_stderr("listening on IPv4 address"))
        .with_env_var("POSTGRES_PASSWORD", &password)
        .with_host_config_modifier(only_on_loopback)
        .with_cmd(["postgres", "-c", MAX_CONNECTIONS, "-c", "fsync=off"])
        .start()
        .await
        .with_context(|| format!("starting a container of `{image}`"))?;
    let port = container.get_host_port_ipv4(5432).await.context("asking for the container's port")?;
    let url = format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres");
    wait::until("the first connection to the container's Postgres", async || {
        Ok(PgConnection::connect(&url).await.ok())
    })
    .await?;
    Ok(Source::Container { url, image, container: Box::new(container) })
}

/// By default an engine publishes a port on every address of the machine.
fn only_on_loopback(config: &mut HostConfig) {
    let binding = PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: None };
    config.publish_all_ports = Some(false);
    config.port_bindings = Some(HashMap::from([("5432/tcp".to_owned(), Some(vec![binding]))]));
}

async fn embedded(because: String) -> Result<Source> {
    let postgres = embedded::Postgres::start_private(&embedded::private_cache()?)
        .await
        .with_context(|| format!("starting the embedded Postgres (no container could be had: {because})"))?;
    Ok(Source::Embedded { postgres, because })
}

async fn drop_databases(url: &str, prefix: &str) -> Result<()> {
    let mut connection = PgConnection::connect(url).await.context("connecting to remove the run's databases")?;
    let names = sqlx::query("select datname from pg_database where starts_with(datname, $1)")
        .bind(prefix)
        .fetch_all(&mut connection)
        .await
        .context("listing the run's databases")?;
    for row in names {
        let name: String = row.try_get(0)?;
        let statement = format!("drop database if exists {name} with (force)");
        sqlx::query(AssertSqlSafe(statement))
            .execute(&mut connection)
            .await
            .with_context(|| format!("dropping `{name}`"))?;
    }
    Ok(())
}

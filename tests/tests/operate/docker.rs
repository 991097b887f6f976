//! The same round trip where the database runs in a container, as `up` makes it: with the labels by which it is found, and nothing
//! but the tools inside. Runs where an engine answers and the image of the tests is there.

use std::collections::HashMap;

use anyhow::{Context, Result};
use memory::home::Home;
use memory::store;
use serde_json::json;
use sqlx::PgPool;
use testcontainers::bollard::models::{HostConfig, PortBinding};
use testcontainers::core::{IntoContainerPort, WaitFor};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, GenericImage, ImageExt};
use tests::installed::Installed;
use tests::many_rows::{self, Size};
use tests::{installed, operator, settings, summary, wait};
use xtask::install::layout;

const SIZE: Size = Size { calls: 120_000, vectors: 1_000 };
const DEFAULT_IMAGE: &str = "agent-memory-postgres:17";

#[tokio::test(flavor = "multi_thread")]
async fn a_large_journal_in_a_container_comes_back_row_for_row() -> Result<()> {
    let Some(contained) = Contained::start().await? else { return Ok(()) };
    many_rows::fill(&contained.pool, SIZE).await?;
    let measured = super::backup::comes_back(&contained.home, &contained.pool).await?;
    summary::line(&format!("backup and restore (docker): {measured}"));
    contained.container.rm().await.context("removing the container")
}

/// The two have servers of different versions.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_either_runtime_is_restored_in_the_other() -> Result<()> {
    let Some(contained) = Contained::start().await? else { return Ok(()) };
    let embedded = Installed::embedded().await?;
    many_rows::fill(embedded.pool(), Size { calls: 1_500, vectors: 30 }).await?;
    let before = store::table_sums(embedded.pool()).await?;
    let path = operator::must(embedded.home(), &["backup"]).await?;
    operator::must(&contained.home, &["restore", path.trim(), "--yes"]).await?;
    assert_eq!(store::table_sums(&contained.pool).await?, before);
    let path = operator::must(&contained.home, &["backup"]).await?;
    sqlx::query("delete from mem_tool_calls").execute(embedded.pool()).await?;
    operator::must(embedded.home(), &["restore", path.trim(), "--yes"]).await?;
    assert_eq!(store::table_sums(embedded.pool()).await?, before);
    contained.container.rm().await.context("removing the container")
}

/// An installation whose database runs in a container. It has no server.
struct Contained {
    home: Home,
    pool: PgPool,
    container: ContainerAsync<GenericImage>,
    _folder: tempfile::TempDir,
}

impl Contained {
    /// `None` where no container can be had, which the summary says.
    async fn start() -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let home = Home::at(folder.path().join("home"));
        layout::create(&home)?;
        let project = format!("agent-memory-test-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]);
        let container = match database(&project).await {
            Ok(container) => container,
            Err(why) => {
                summary::line(&format!("backup and restore (docker): NOT TESTED, no container could be had: {why:#}"));
                return Ok(None);
            }
        };
        let port = container.get_host_port_ipv4(5432).await.context("asking for the container's port")?;
        let url = format!("postgres://agent_memory:secret@127.0.0.1:{port}/agent_memory");
        let pool = wait::until("the first connection to the container's Postgres", async || {
            Ok(installed::connect(&url).await.ok())
        })
        .await?;
        store::migrate(&pool).await?;
        install(&home, &project, &url)?;
        Ok(Some(Self { home, pool, container, _folder: folder }))
    }
}

/// A container like the one of compose.yaml.
async fn database(project: &str) -> Result<ContainerAsync<GenericImage>> {
    let image = settings::get(settings::POSTGRES_IMAGE).unwrap_or_else(|| DEFAULT_IMAGE.to_owned());
    let (name, tag) = image.rsplit_once(':').context("the image is not `name:tag`")?;
    let on_loopback = |config: &mut HostConfig| {
        let binding = PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: None };
        config.port_bindings = Some(HashMap::from([("5432/tcp".to_owned(), Some(vec![binding]))]));
    };
    let started = GenericImage::new(name, tag)
        .with_exposed_port(5432.tcp())
        .with_wait_for(WaitFor::message_on_stderr("listening on IPv4 address"))
        .with_labels([("com.docker.compose.project", project), ("com.docker.compose.service", "database")])
        .with_env_var("POSTGRES_USER", "agent_memory")
        .with_env_var("POSTGRES_DB", "agent_memory")
        .with_env_var("POSTGRES_PASSWORD", "secret")
        .with_env_var(
            "POSTGRES_INITDB_ARGS",
            "--encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256",
        )
        .with_host_config_modifier(on_loopback)
        .start()
        .await;
    started.with_context(|| format!("starting a container of `{image}`"))
}

/// What `up` leaves behind for that project.
fn install(home: &Home, project: &str, url: &str) -> Result<()> {
    let values = format!(
        "AGENT_MEMORY_PROJECT='{project}'\nAGENT_MEMORY_HOME='{}'\nAGENT_MEMORY_USER='1000:1000'\nAGENT_MEMORY_PORT='9'\n\
         AGENT_MEMORY_DATABASE_PORT='9'\nAGENT_MEMORY_SERVER_IMAGE='none'\nAGENT_MEMORY_POSTGRES_IMAGE='none'\n",
        home.root().display()
    );
    std::fs::write(home.run().join("compose.env"), values)?;
    std::fs::write(home.database_url_file(), format!("{url}\n"))?;
    std::fs::write(home.address_file(), "127.0.0.1:9\n")?;
    let installation = json!({
        "version": env!("CARGO_PKG_VERSION"), "runtime": "docker", "address": "127.0.0.1:9",
        "database": "the test's", "embedding_model": "mini", "installed_at": "2026-01-01T00:00:00Z",
    });
    std::fs::write(home.installation_file(), installation.to_string()).context("writing installation.json")
}

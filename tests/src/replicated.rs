//! A Postgres that another follows, and a pooler in front of them: three containers on the machine's own network, as docs/scale.md
//! says. The primary can be killed and the replica put in its place.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection, PgPool};
use testcontainers::bollard::Docker;
use testcontainers::bollard::query_parameters::KillContainerOptions;
use testcontainers::core::ExecCommand;
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, ContainerRequest, GenericImage, ImageExt};
use xtask::runtime::embedded::free_port;

use crate::{settings, wait};

const POSTGRES: &str = "agent-memory-postgres:17";
const POOLER: &str = "agent-memory-pgbouncer:trixie";
const NAME: &str = "agent_memory";
const PASSWORD: &str = "secret";
/// A replica copies the primary, and a machine may be busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// A promotion, once the replica knows that the primary is gone, is a matter of a second.
const PROMOTION: &str = "select pg_promote(true, 30)";

pub struct Replicated {
    primary: ContainerAsync<GenericImage>,
    primary_port: u16,
    /// Held: dropped, it is removed.
    _replica: ContainerAsync<GenericImage>,
    replica_port: u16,
    pooler: ContainerAsync<GenericImage>,
    pooler_port: u16,
}

impl Replicated {
    /// Starts all three; commits wait for the replica from then on. `Err` says why they cannot be had here.
    pub async fn start() -> Result<Self> {
        ensure!(cfg!(target_os = "linux"), "containers share this machine's network on Linux only");
        let (primary_port, replica_port, pooler_port) = (free_port()?, free_port()?, free_port()?);
        let primary = image(settings::POSTGRES_IMAGE, POSTGRES)?
            .with_env_var("POSTGRES_USER", NAME)
            .with_env_var("POSTGRES_DB", NAME)
            .with_env_var("POSTGRES_PASSWORD", PASSWORD)
            .with_cmd(postgres(primary_port))
            .start()
            .await
            .context("starting the primary")?;
        reached(primary_port).await.context("reaching the primary")?;
        let replica = image(settings::POSTGRES_IMAGE, POSTGRES)?;
        let copy = format!(
            "pg_basebackup --dbname='host=127.0.0.1 port={primary_port} user={NAME} password={PASSWORD}' \
             --pgdata=/tmp/replica --write-recovery-conf --wal-method=stream --checkpoint=fast && \
             exec {} -D /tmp/replica -c cluster_name=replica",
            postgres(replica_port).join(" ")
        );
        let replica = replica.with_cmd(["sh".to_owned(), "-c".to_owned(), copy]).with_user("999:999").start().await;
        let replica = replica.context("starting the replica")?;
        reached(replica_port).await.context("reaching the replica")?;
        let mut admin = connect(primary_port, NAME).await?;
        // After the copy: once promoted, the replica has nobody to wait for.
        admin.execute("alter system set synchronous_standby_names = 'replica'").await?;
        admin.execute("select pg_reload_conf()").await?;
        wait::until("the first commit that waits for the replica", async || {
            let state = sqlx::query_scalar("select sync_state from pg_stat_replication").fetch_optional(&mut admin);
            let state: Option<Option<String>> = state.await?;
            Ok(state.flatten().filter(|state| state == "sync"))
        })
        .await?;
        let pooler = image(settings::POOLER_IMAGE, POOLER)?;
        let write =
            format!("printf '%s' \"$USERS\" > /tmp/users; printf '%s' \"$CONFIGURATION\" > {CONFIGURATION_FILE}");
        let pooler = pooler
            .with_env_var("USERS", format!("\"{NAME}\" \"{PASSWORD}\"\n"))
            .with_env_var("CONFIGURATION", configuration(primary_port, pooler_port))
            .with_cmd(["sh".to_owned(), "-c".to_owned(), format!("{write}; exec pgbouncer {CONFIGURATION_FILE}")])
            .start()
            .await
            .context("starting the pooler")?;
        reached(pooler_port).await.context("reaching Postgres by the pooler")?;
        Ok(Self { primary, primary_port, _replica: replica, replica_port, pooler, pooler_port })
    }

    /// By the pooler, whose sessions are the clients' own.
    pub fn session_url(&self) -> String {
        url(self.pooler_port, &format!("{NAME}_session"))
    }

    /// By the pooler, each transaction in whatever session is free.
    pub fn transaction_url(&self) -> String {
        url(self.pooler_port, NAME)
    }

    /// The test's own view of the one that follows, which takes the other's place.
    pub fn view(&self) -> Result<PgPool> {
        Ok(PgPoolOptions::new().max_connections(2).connect_lazy(&url(self.replica_port, NAME))?)
    }

    /// Tells the pooler something, as its operator does.
    pub async fn tell_pooler(&self, statement: &'static str) -> Result<()> {
        let mut console = connect(self.pooler_port, "pgbouncer").await?;
        console.execute(statement).await.with_context(|| format!("telling the pooler `{statement}`"))?;
        Ok(())
    }

    /// Ends the primary as a crash does.
    pub async fn kill_primary(&self) -> Result<()> {
        let engine = Docker::connect_with_defaults().context("connecting to the engine")?;
        let killed = engine.kill_container(self.primary.id(), None::<KillContainerOptions>).await;
        killed.context("killing the primary")
    }

    /// Makes the replica the primary and has the pooler go there.
    pub async fn fail_over(&self) -> Result<()> {
        let mut replica = connect(self.replica_port, NAME).await?;
        let promoted: bool = sqlx::query_scalar(PROMOTION).fetch_one(&mut replica).await?;
        ensure!(promoted, "the replica did not become the primary");
        let redirect = format!("s/port={} /port={} /", self.primary_port, self.replica_port);
        let mut edited =
            self.pooler.exec(ExecCommand::new(["sed", "--in-place", &redirect, CONFIGURATION_FILE])).await?;
        let said = edited.stderr_to_vec().await?;
        if !said.is_empty() {
            bail!("the pooler's configuration could not be edited: {}", String::from_utf8_lossy(&said));
        }
        self.tell_pooler("reload").await?;
        self.tell_pooler("reconnect").await
    }
}

const CONFIGURATION_FILE: &str = "/tmp/pgbouncer.ini";

/// As docs/scale.md has it, with shorter pauses.
fn configuration(postgres_port: u16, port: u16) -> String {
    format!(
        "[databases]\n\
         {NAME} = host=127.0.0.1 port={postgres_port} dbname={NAME} pool_mode=transaction pool_size=10 \
         connect_query='set statement_timeout = 30000'\n\
         {NAME}_session = host=127.0.0.1 port={postgres_port} dbname={NAME} pool_mode=session\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = scram-sha-256\n\
         auth_file = /tmp/users\n\
         admin_users = {NAME}\n\
         max_client_conn = 500\n\
         max_prepared_statements = 200\n\
         server_connect_timeout = 3\n\
         server_login_retry = 1\n\
         query_wait_timeout = 10\n"
    )
}

fn image(setting: &str, default: &str) -> Result<ContainerRequest<GenericImage>> {
    let image = settings::get(setting).unwrap_or_else(|| default.to_owned());
    let (name, tag) = image.rsplit_once(':').with_context(|| format!("`{image}` is not `name:tag`"))?;
    Ok(GenericImage::new(name, tag).with_network("host").with_startup_timeout(PATIENCE))
}

fn postgres(port: u16) -> Vec<String> {
    let settings = [
        &format!("port={port}"),
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=/tmp",
        "max_connections=60",
        // What is killed here is a process: the machine, and what it was told to write, stays.
        "fsync=off",
    ];
    ["postgres".to_owned()]
        .into_iter()
        .chain(settings.into_iter().flat_map(|it| ["-c".to_owned(), it.to_owned()]))
        .collect()
}

fn url(port: u16, database: &str) -> String {
    format!("postgres://{NAME}:{PASSWORD}@127.0.0.1:{port}/{database}")
}

/// Speaks plain text only, which is all that the pooler's console understands.
async fn connect(port: u16, database: &str) -> Result<PgConnection> {
    let options: PgConnectOptions = url(port, database).parse()?;
    Ok(options.extra_float_digits(None).connect().await?)
}

async fn reached(port: u16) -> Result<()> {
    wait::until_within(PATIENCE, "the first connection", async || {
        let Ok(mut connection) = connect(port, NAME).await else { return Ok(None) };
        // By a pooler a connection alone is no sign of Postgres.
        Ok(connection.execute(AssertSqlSafe("select 1".to_owned())).await.ok().map(drop))
    })
    .await
}

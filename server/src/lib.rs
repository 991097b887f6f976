//! The server: takes events in, drains the spool, works the queue, and serves recall, on a loopback address and, if asked to, with
//! TLS on one that other machines reach.
//!
//! [`serve`] takes the listener and the shutdown from its caller, so that tests bind port 0 and stop it when they like.

mod admin;
mod auth;
mod config;
mod counters;
mod database;
mod error;
mod exclusion;
mod lessons;
mod logging;
mod metrics;
mod network;
mod observations;
mod observe;
mod openapi;
mod retention;
mod router;
mod routes;
mod schedule;
mod spool;
mod storage;
mod unasked;
mod upkeep;
mod writer;

use std::sync::Arc;

use anyhow::Context as _;
use memory::digest::DigestSession;
use memory::embed::{EmbedDocuments, Embedder};
use memory::home::Home;
use memory::lessons::LearnLessons;
use memory::project::ProjectPolicy;
use memory::queue::{Handler as _, Worker};
use memory::store::{Db, Notices};
use memory::transcripts::ReadTranscript;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use config::{Arguments, Config};
pub use logging::log_to;
pub use network::{Network, NetworkError};
pub use observe::check_health;
pub use unasked::{Switch, Switches};

use auth::Doorkeeper;
use counters::Counters;
use database::{Database, Pools};
use exclusion::Exclusion;
use lessons::{Gate, Held};
use metrics::Metrics;
use network::NetworkDoor;
use spool::Spool;
use storage::{Folders, Storage};
use unasked::Unasked;
use writer::Writer;

/// What the routes share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) db: Db,
    /// For what needs a session of its own; the same as `db` unless that goes by a pooler.
    pub(crate) direct: Db,
    pub(crate) database: Database,
    pub(crate) embedder: Embedder,
    pub(crate) writer: Writer,
    pub(crate) spool: Spool,
    pub(crate) storage: Storage,
    pub(crate) counters: Arc<Counters>,
    pub(crate) metrics: Metrics,
    pub(crate) exclusion: Exclusion,
    pub(crate) unasked: Unasked,
    pub(crate) gate: Gate,
    /// Commits that nobody waits for but the shutdown.
    pub(crate) tasks: TaskTracker,
    /// The door to other machines, where there is one.
    pub(crate) network: Option<NetworkDoor>,
}

/// The kinds of jobs that this server works: health names them, so that `doctor` finds jobs that nobody takes.
pub(crate) const HANDLED_JOBS: [&str; 4] =
    [EmbedDocuments::KIND, ReadTranscript::KIND, DigestSession::KIND, LearnLessons::KIND];

/// Serves until `shutdown` is cancelled, then finishes what is in hand. An error is one that waiting would not mend: a schema
/// newer than this program, a database without pgvector.
pub async fn serve(config: Config, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    let Pools { db, journal, direct } = Pools::of(&config)?;
    let names = config.network.as_ref().map(Network::names).unwrap_or_default();
    let network = match config.network {
        Some(network) => Some(network.door().await?),
        None => None,
    };
    let tasks = TaskTracker::new();
    let storage = Storage::default();
    let folders = Folders::new(config.spool.clone(), config.config.clone(), config.settings.clone());
    let (writer, write_loop) = Writer::new(&journal, &config.projects, storage.clone());
    let embedder = Embedder::over(config.models.clone());
    let unasked = Unasked::new(db.clone(), embedder.clone(), folders.clone(), config.switches, tasks.clone());
    let held = Held::default();
    let gate = Gate::new(db.clone(), embedder.clone(), folders.clone(), config.projects.clone(), held);
    let app = App {
        database: Database::default(),
        embedder,
        spool: Spool::at(config.spool.clone()),
        storage,
        counters: Arc::default(),
        metrics: Metrics::default(),
        exclusion: Exclusion::listed_in(Some(config.config)),
        unasked,
        gate,
        tasks: tasks.clone(),
        network,
        writer,
        db,
        direct,
    };
    tasks.spawn(write_loop);
    let background = tasks.spawn({
        let (app, shutdown) = (app.clone(), shutdown.clone());
        let (projects, home) = (config.projects, config.home);
        async move {
            Box::pin(work(app, (&folders, home.as_ref()), projects, &shutdown)).await.inspect_err(|_| shutdown.cancel())
        }
    });
    if let Some(door) = app.network.clone() {
        let (app, shutdown) = (app.clone(), shutdown.clone());
        tasks.spawn(async move {
            if app.database.prepared_before(&shutdown).await {
                let (db, keeper) = (app.db.clone(), Doorkeeper::of_network(&names));
                door.keep_open_until(router::router(app, keeper, shutdown.child_token()), &db, &shutdown).await;
            }
        });
    }
    tasks.close();

    let address = listener.local_addr().context("reading the address that was bound")?;
    tracing::info!(server.address = %address, version = env!("CARGO_PKG_VERSION"), "listening");
    let keeper = Doorkeeper::of_this_machine(&config.token, config.hook_token.as_deref());
    let routes = router::router(app, keeper, shutdown.child_token());
    let served = axum::serve(listener, routes).with_graceful_shutdown(shutdown.clone().cancelled_owned()).await;
    shutdown.cancel();
    // The router and the background held the writer: without them the write loop ends after its last batch.
    let worked = background.await.context("the background work broke off")?;
    tasks.wait().await;
    tracing::info!("stopped");
    served.context("serving HTTP")?;
    worked
}

/// Everything that happens without a request: the schema, then the spool and the queue.
async fn work(
    app: App,
    (folders, home): (&Folders, Option<&Home>),
    projects: ProjectPolicy,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let App { db, direct, database, embedder, writer, spool, storage, counters, exclusion, gate, .. } = app;
    if database.prepare(&db, &direct, shutdown).await?.is_none() {
        return Ok(());
    }
    // Before the spool, which may hold more than there is room for.
    storage.look(&db, folders).await;
    let notices = Notices::default();
    let embedding =
        Worker::new(db.clone(), EmbedDocuments { db: db.clone(), embedder: embedder.clone() }).woken_by(&notices);
    let reading = Worker::new(db.clone(), ReadTranscript { db: db.clone(), projects }).woken_by(&notices);
    let digesting = Worker::new(db.clone(), DigestSession { db: db.clone() }).woken_by(&notices);
    let learning = Worker::new(db.clone(), LearnLessons { db: db.clone() }).woken_by(&notices);
    tokio::join!(
        spool.drain_until(&writer, &counters, &exclusion, shutdown),
        embedding.run(shutdown.clone()),
        reading.run(shutdown.clone()),
        digesting.run(shutdown.clone()),
        learning.run(shutdown.clone()),
        notices.hear_until(&direct, shutdown),
        gate.held().follow_until((&db, &notices), &embedder, shutdown),
        storage.watch_until(&db, folders, shutdown),
        retention::apply_daily_until(&direct, folders, shutdown),
        schedule::back_up_daily_until(home, shutdown),
        logging::keep_short_until(home, folders, shutdown),
        upkeep::keep_until(&db, &embedder, shutdown),
        warm(&embedder),
    );
    Ok(())
}

/// Loads the model before anyone asks for it. Why it cannot be loaded, health says.
async fn warm(embedder: &Embedder) {
    if let Err(error) = embedder.warm().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "searches go by words alone");
    }
}

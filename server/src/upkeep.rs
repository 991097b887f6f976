//! Keeps the index in order beside the events that fill it: rows of a former analysis, vectors of a former model, and the counts that
//! searches use.

use std::time::{Duration, Instant};

use memory::embed::{EmbedState, Embedder};
use memory::ids::DocumentId;
use memory::queue;
use memory::store::{self, Db, StoreError, Walk};
use tokio_util::sync::CancellationToken;

/// How often to look whether the index has grown enough to be counted again.
const INTERVAL: Duration = Duration::from_secs(10);
/// Rows that are made again in one transaction.
const BATCH: i64 = 100;
/// So many documents at once are looked at for a vector of a former model, and so many wait at most for one of the present: what is
/// new waits behind them, for about as long as [`INTERVAL`].
const EMBEDDED_AGAIN: i64 = 500;
/// While there are documents without a vector, or some wait for one, they are counted again after so many times as long as counting
/// them took.
const REST: u32 = 20;

/// Works until the shutdown.
pub(crate) async fn keep_until(db: &Db, embedder: &Embedder, shutdown: &CancellationToken) {
    let mut vectors = Vectors::default();
    let mut is_working = true;
    loop {
        let kept = async {
            keep(db).await?;
            vectors.keep(db, embedder).await
        };
        let Some(kept) = shutdown.run_until_cancelled(Box::pin(kept)).await else { return };
        // Once: a database that is away is told of by everyone who needs it.
        if let Err(error) = &kept
            && is_working
        {
            tracing::warn!(error = error as &dyn std::error::Error, "the index could not be kept in order");
        }
        is_working = kept.is_ok();
        if shutdown.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

async fn keep(db: &Db) -> Result<(), StoreError> {
    let mut made = 0;
    loop {
        match store::reindex(db, BATCH).await? {
            0 => break,
            more => made += more,
        }
    }
    if made > 0 {
        tracing::info!(index.rows = made, "made rows of the index again that an earlier version had made");
    }
    store::count_lexemes(db).await?;
    Ok(())
}

/// How far all documents have a vector of the present model.
#[derive(Default)]
struct Vectors {
    /// The model that all this is about: it is known when it is loaded, and does not change while the server runs.
    model: Option<String>,
    behind: Option<DocumentId>,
    are_enqueued: bool,
    without: i64,
    /// When they were counted, and how long that took.
    counted: Option<(Instant, Duration)>,
}

impl Vectors {
    async fn keep(&mut self, db: &Db, embedder: &Embedder) -> Result<(), StoreError> {
        let EmbedState::Ready { model } = embedder.state() else { return Ok(()) };
        if self.model.as_ref() != Some(&model) {
            *self = Self { model: Some(model.clone()), ..Self::default() };
        }
        let mut waiting = queue::depth(db).await?.pending;
        while !self.are_enqueued && waiting < EMBEDDED_AGAIN {
            let (enqueued, walk) = store::enqueue_of_other_models(db, &model, self.behind, EMBEDDED_AGAIN).await?;
            if enqueued > 0 {
                tracing::info!(
                    index.documents = enqueued,
                    embedding.model = model,
                    "embedding documents again that another model had embedded"
                );
            }
            waiting += enqueued as i64;
            match walk {
                Walk::At(last) => self.behind = Some(last),
                Walk::Done => self.are_enqueued = true,
            }
        }
        let is_due =
            self.counted.is_none_or(|(at, took)| (self.without > 0 || waiting > 0) && at.elapsed() >= took * REST);
        if is_due {
            let started = Instant::now();
            let counted = store::count_without_vector(db, &model).await;
            // Also where it failed: what takes too long is not tried again at once.
            self.counted = Some((Instant::now(), started.elapsed()));
            self.without = counted?;
        }
        Ok(())
    }
}

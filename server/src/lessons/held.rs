//! The active lessons in memory. They are read again when somebody says that one has changed, and once a minute, for a notice can be lost.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use memory::embed::{EmbedState, Embedder};
use memory::lessons::{LessonSet, Status};
use memory::store::{self, Db, LESSONS, LessonError, LessonFilter, Notices};
use tokio_util::sync::CancellationToken;

const INTERVAL: Duration = Duration::from_mins(1);

/// Cheap to clone; clones share what is known.
#[derive(Clone, Default)]
pub(crate) struct Held {
    set: Arc<RwLock<Arc<LessonSet>>>,
}

impl Held {
    pub(crate) fn current(&self) -> Arc<LessonSet> {
        Arc::clone(&self.set.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps them as they are in the database, until the shutdown.
    pub(crate) async fn follow_until(
        &self,
        (db, notices): (&Db, &Notices),
        embedder: &Embedder,
        shutdown: &CancellationToken,
    ) {
        // Listening comes first, so that no change slips in between.
        let mut news = notices.of(LESSONS);
        loop {
            if let Err(error) = self.read(db, embedder).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "the lessons are as they were read last");
            }
            if shutdown.run_until_cancelled(tokio::time::timeout(INTERVAL, news.heard())).await.is_none() {
                return;
            }
        }
    }

    /// Reads them now.
    async fn read(&self, db: &Db, embedder: &Embedder) -> Result<(), LessonError> {
        let filter = LessonFilter { status: Some(Status::Active), ..LessonFilter::default() };
        let lessons = store::lessons(db, &filter).await?;
        let mut ready = Vec::with_capacity(lessons.len());
        for lesson in lessons {
            let meaning = lesson.trigger.as_ref().and_then(|trigger| trigger.meaning.clone());
            let is_ready = matches!(embedder.state(), EmbedState::Ready { .. });
            let vector = match meaning.filter(|_| is_ready) {
                Some(meaning) => embedder.embed_query(&meaning).await.ok().map(|vector| vector.vector),
                None => None,
            };
            ready.push((lesson, vector));
        }
        let set = tokio::task::spawn_blocking(|| LessonSet::new(ready)).await.unwrap_or_default();
        *self.set.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
        Ok(())
    }
}

//! The queue's job that gives documents their vectors.

use super::{EmbedError, Embedder};
use crate::ids::DocumentId;
use crate::queue::{Handler, Job, Outcome};
use crate::store::{self, Db};

/// Embeds the documents that jobs name, a batch in one run of the model.
pub struct EmbedDocuments {
    pub db: Db,
    pub embedder: Embedder,
}

impl Handler for EmbedDocuments {
    const KIND: &'static str = store::EMBED_DOCUMENT;
    /// Small enough that a query waits for a batch only briefly (about 14 ms a text), and that what the model needs for one stays below
    /// a hundred megabytes.
    const BATCH: i64 = 4;

    async fn run(&self, jobs: &[Job]) -> Outcome {
        match self.embed(jobs).await {
            Ok(()) => Outcome::Done,
            Err(JobError::Embed(error @ EmbedError::Run(_))) => Outcome::Failed(error.to_string()),
            Err(JobError::Embed(error)) => Outcome::NotReady(error.to_string()),
            Err(JobError::Store(error)) if error.is_transient() => Outcome::NotReady(error.to_string()),
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum JobError {
    #[error("the job names no document")]
    Payload,
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Store(#[from] store::StoreError),
}

impl EmbedDocuments {
    async fn embed(&self, jobs: &[Job]) -> Result<(), JobError> {
        let ids = jobs.iter().map(document_of).collect::<Result<Vec<_>, _>>()?;
        let mut connection = self.db.acquire().await.map_err(store::StoreError::from)?;
        let revisions = store::revisions(&mut connection, &ids).await?;
        let documents = store::document_texts(&mut connection, &ids).await?;
        // No connection is held while the model runs.
        drop(connection);
        if documents.is_empty() {
            return Ok(());
        }
        let (ids, texts): (Vec<_>, Vec<_>) = documents.into_iter().map(|document| (document.id, document.text)).unzip();
        let (model, vectors) = self.embedder.embed_documents(texts).await?;
        let dimensions = vectors.first().map_or(0, Vec::len);
        let model_id = store::embedding_model(&self.db, &model, dimensions).await?;
        let embedded = ids.into_iter().zip(vectors).filter_map(|(id, vector)| {
            let revision = *revisions.get(&id)?;
            Some(store::Embedded { id, revision, vector })
        });
        store::set_embeddings(&self.db, model_id, embedded.collect()).await?;
        Ok(())
    }
}

fn document_of(job: &Job) -> Result<DocumentId, JobError> {
    job.payload.get("document").and_then(|id| id.as_str()).and_then(|id| id.parse().ok()).ok_or(JobError::Payload)
}

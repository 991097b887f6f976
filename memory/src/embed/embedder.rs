//! One model in one process, loaded when first needed.

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fastembed::{InitOptionsUserDefined, Pooling, TextEmbedding, TokenizerFiles, UserDefinedEmbeddingModel};
use lru::LruCache;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use super::QueryVector;
use super::model_folder::ModelFolder;
use super::prompts::Prompts;

/// One thread: the vectors of a session's calls can wait, the person's own work cannot.
const THREADS: usize = 1;
/// What the sentence-transformers models of this size were trained to read.
const MAX_TOKENS: usize = 256;
/// Characters beyond this cannot be among the first [`MAX_TOKENS`] tokens of ordinary text, and tokenizing them costs.
const MAX_CHARS: usize = 8 * MAX_TOKENS;
/// Callers that wait for the model on a thread of their own; more wait without one.
const MAX_WAITING: usize = 4;
/// Queries whose vectors are kept: an agent asks the same again, and `timeline` and `find_fix` ask what `search` was asked.
const KEPT_QUERIES: NonZeroUsize = NonZeroUsize::new(256).expect("it is not zero");
/// How long a failed load is believed.
const RETRY_AFTER: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, thiserror::Error)]
pub enum EmbedError {
    #[error("no vectors: {what} is missing in `{folder}`")]
    Missing { what: &'static str, folder: PathBuf },
    #[error("no vectors: `{folder}` holds several embedding models ({found})")]
    SeveralModels { folder: PathBuf, found: String },
    #[error("no vectors: cannot read `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        source: Arc<io::Error>,
    },
    #[error("no vectors: the embedding model could not be loaded: {0}")]
    Load(String),
    #[error("the embedding model failed on a text: {0}")]
    Run(String),
    #[error("no vectors: the embedding model gives {dimensions} dimensions, at most 768 can be stored")]
    TooManyDimensions { dimensions: usize },
}

/// What can be said of the model without loading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedState {
    /// Nothing has asked for a vector yet.
    Unloaded,
    Ready {
        model: String,
    },
    Unavailable {
        message: String,
    },
}

/// Cheap to clone; all clones share the model.
#[derive(Clone)]
pub struct Embedder {
    inner: Arc<Inner>,
}

struct Inner {
    models: PathBuf,
    slot: Mutex<Slot>,
    state: Mutex<EmbedState>,
    turns: Semaphore,
    queries: Mutex<LruCache<String, QueryVector>>,
}

enum Slot {
    Empty,
    Loaded(Box<Loaded>),
    Failed { error: EmbedError, at: Instant },
}

struct Loaded {
    name: String,
    prompts: Prompts,
    model: TextEmbedding,
}

/// What a text is to the model.
#[derive(Debug, Clone, Copy)]
enum Role {
    Query,
    Document,
}

impl Embedder {
    /// An embedder over a models folder; touches nothing yet.
    pub fn over(models: PathBuf) -> Self {
        Self {
            inner: Arc::new(Inner {
                models,
                slot: Mutex::new(Slot::Empty),
                state: Mutex::new(EmbedState::Unloaded),
                turns: Semaphore::new(MAX_WAITING),
                queries: Mutex::new(LruCache::new(KEPT_QUERIES)),
            }),
        }
    }

    pub fn state(&self) -> EmbedState {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Embeds documents; vectors come in the order of the texts, with the model's name.
    pub async fn embed_documents(&self, texts: Vec<String>) -> Result<(String, Vec<Vec<f32>>), EmbedError> {
        self.embed(Role::Document, texts).await
    }

    /// Embeds one query, unless it was asked lately.
    pub async fn embed_query(&self, text: &str) -> Result<QueryVector, EmbedError> {
        let text = head(text);
        if let Some(known) = self.kept().get(text) {
            return Ok(known.clone());
        }
        let (model, mut vectors) = self.embed(Role::Query, vec![text.to_owned()]).await?;
        let vector = vectors.pop().ok_or_else(|| EmbedError::Run("it gave no vector".to_owned()))?;
        let made = QueryVector { model, vector };
        self.kept().put(text.to_owned(), made.clone());
        Ok(made)
    }

    /// The same where nobody can wait for long: only if the model is loaded already and answers within that time.
    pub async fn embed_query_within(&self, deadline: Duration, text: &str) -> Option<QueryVector> {
        let EmbedState::Ready { .. } = self.state() else { return None };
        tokio::time::timeout(deadline, self.embed_query(text)).await.ok()?.ok()
    }

    fn kept(&self) -> MutexGuard<'_, LruCache<String, QueryVector>> {
        self.inner.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the model, so that nobody waits for it.
    pub async fn warm(&self) -> Result<(), EmbedError> {
        self.embed(Role::Query, Vec::new()).await.map(drop)
    }

    async fn embed(&self, role: Role, texts: Vec<String>) -> Result<(String, Vec<Vec<f32>>), EmbedError> {
        let _turn = self.inner.turns.acquire().await.map_err(|error| EmbedError::Run(error.to_string()))?;
        let inner = Arc::clone(&self.inner);
        tokio::task::spawn_blocking(move || inner.embed(role, &texts))
            .await
            .map_err(|error| EmbedError::Run(format!("the thread that ran it ended: {error}")))?
    }
}

impl Inner {
    fn embed(&self, role: Role, texts: &[String]) -> Result<(String, Vec<Vec<f32>>), EmbedError> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = self.loaded(&mut slot)?;
        if texts.is_empty() {
            return Ok((loaded.name.clone(), Vec::new()));
        }
        let prompt = match role {
            Role::Query => &loaded.prompts.query,
            Role::Document => &loaded.prompts.document,
        };
        let texts: Vec<String> = texts.iter().map(|text| format!("{prompt}{}", head(text))).collect();
        let vectors = loaded.model.embed(&texts, None).map_err(|error| EmbedError::Run(error.to_string()))?;
        Ok((loaded.name.clone(), vectors))
    }

    fn loaded<'a>(&self, slot: &'a mut Slot) -> Result<&'a mut Loaded, EmbedError> {
        let stale = match slot {
            Slot::Empty => true,
            Slot::Failed { at, .. } => at.elapsed() > RETRY_AFTER,
            Slot::Loaded(_) => false,
        };
        if stale {
            *slot = match self.load() {
                Ok(loaded) => Slot::Loaded(Box::new(loaded)),
                Err(error) => Slot::Failed { error, at: Instant::now() },
            };
            *self.state.lock().unwrap_or_else(PoisonError::into_inner) = match &*slot {
                Slot::Loaded(loaded) => EmbedState::Ready { model: loaded.name.clone() },
                Slot::Failed { error, .. } => EmbedState::Unavailable { message: error.to_string() },
                Slot::Empty => EmbedState::Unloaded,
            };
        }
        match slot {
            Slot::Loaded(loaded) => Ok(loaded),
            Slot::Failed { error, .. } => Err(error.clone()),
            Slot::Empty => Err(EmbedError::Load("nothing was loaded".to_owned())),
        }
    }

    fn load(&self) -> Result<Loaded, EmbedError> {
        let started = Instant::now();
        let folder = ModelFolder::find(&self.models)?;
        let describe = |error: &dyn std::fmt::Display| EmbedError::Load(error.to_string());
        let environment = ort::init_from(&folder.runtime_library)
            .map_err(|error| describe(&error))?
            .build()
            .map_err(|error| describe(&error))?;
        let tokenizer = TokenizerFiles {
            tokenizer_file: folder.read("tokenizer.json")?,
            config_file: folder.read("config.json")?,
            special_tokens_map_file: folder.read("special_tokens_map.json")?,
            tokenizer_config_file: folder.read("tokenizer_config.json")?,
        };
        let weights = folder.read("model.onnx")?;
        let prompts = Prompts::of(&folder.folder)?;
        // A model that is replaced under the same name makes other vectors, and so does one that is given other prefixes.
        let mut digest = Sha256::new().chain_update(&weights);
        if prompts != Prompts::default() {
            digest.update(format!("{:?}", (&prompts.query, &prompts.document)));
        }
        let digest: [u8; 32] = digest.finalize().into();
        let name = format!("{}@{:02x}{:02x}{:02x}{:02x}", folder.name, digest[0], digest[1], digest[2], digest[3]);
        let files = UserDefinedEmbeddingModel::new(weights, tokenizer).with_pooling(Pooling::Mean);
        let options = InitOptionsUserDefined::new()
            .with_environment(environment)
            // An arena keeps what the longest batch ever needed: several hundred megabytes for a few texts an hour.
            .with_execution_providers(vec![ort::ep::CPU::default().with_arena_allocator(false).build()])
            .with_max_length(MAX_TOKENS)
            .with_intra_threads(THREADS);
        let mut model = TextEmbedding::try_new_from_user_defined(files, options).map_err(|error| describe(&error))?;
        // The first run allocates, and shows the dimensions.
        let probe = model.embed(["probe"], None).map_err(|error| describe(&error))?;
        let dimensions = probe.first().map_or(0, Vec::len);
        if dimensions > crate::store::STORED_DIMENSIONS {
            return Err(EmbedError::TooManyDimensions { dimensions });
        }
        tracing::info!(
            embedding.model = name,
            embedding.dimensions = dimensions,
            duration_ms = started.elapsed().as_millis() as u64,
            "loaded the embedding model"
        );
        Ok(Loaded { name, prompts, model })
    }
}

fn head(text: &str) -> &str {
    text.char_indices().nth(MAX_CHARS).map_or(text, |(at, _)| &text[..at])
}

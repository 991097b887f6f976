//! mistralrs with one file loaded, on the processor, as whoever gets the file would run it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use candle_core::{DType, Tensor};
use mistralrs::{
    GgufModelBuilder, Model, NormalRequest, Request, RequestMessage, Response, SamplingParams, StopTokens,
};
use tokio::sync::mpsc::channel;
use tokio::time::timeout;

/// What ends a turn of ChatML.
const END_OF_TURN: &str = "<|im_end|>";
/// For reading the weights; a gigabyte takes seconds.
const LOADING_DEADLINE: Duration = Duration::from_mins(5);
/// For one answer, on a slow processor without optimised code.
const ANSWER_DEADLINE: Duration = Duration::from_mins(5);

pub struct Engine {
    model: Model,
}

/// What the model wrote after a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Without the token that ended it, and without white space before the first word.
    pub text: String,
    /// Whether the model ended it, and not the limit.
    pub stopped: bool,
    pub prompt_tokens: usize,
    pub tokens: usize,
}

impl Engine {
    pub const NAME: &str = "mistralrs";

    /// Reads the file; tokenizer and template come from it too.
    pub async fn load(gguf: &Path) -> Result<Self> {
        let folder = gguf.parent().with_context(|| format!("`{}` lies in no folder", gguf.display()))?;
        let name = gguf.file_name().with_context(|| format!("`{}` names no file", gguf.display()))?;
        let builder = GgufModelBuilder::new(folder.display(), vec![name.to_string_lossy()])
            .with_force_cpu()
            .with_prefix_cache_n(None);
        let runtime = tokio::runtime::Handle::current();
        // Most of it is reading and copying, without a pause.
        let loading = tokio::task::spawn_blocking(move || runtime.block_on(builder.build()));
        let model = timeout(LOADING_DEADLINE, loading).await.context("mistralrs does not finish loading")??;
        Ok(Self { model: model.with_context(|| format!("mistralrs cannot load `{}`", gguf.display()))? })
    }

    /// Continues a text as it is by the most likely tokens, to the end of the turn or so many.
    pub async fn complete(&self, prompt: &str, max_tokens: usize) -> Result<Completion> {
        let message = RequestMessage::Completion { text: prompt.to_owned(), echo_prompt: false, best_of: None };
        let sampling = SamplingParams {
            max_len: Some(max_tokens),
            stop_toks: Some(StopTokens::Seqs(vec![END_OF_TURN.to_owned()])),
            ..SamplingParams::deterministic()
        };
        let Response::CompletionDone(response) = self.ask(message, sampling, Wanted::Text).await? else {
            bail!("mistralrs answered with something else than text");
        };
        let choice = response.choices.into_iter().next().context("mistralrs answered without an answer")?;
        Ok(Completion {
            text: choice.text,
            stopped: choice.finish_reason == "stop",
            prompt_tokens: response.usage.prompt_tokens,
            tokens: response.usage.completion_tokens,
        })
    }

    /// The logits (tokens, vocabulary) after each token.
    pub async fn logits(&self, ids: &[u32]) -> Result<Tensor> {
        let message = RequestMessage::CompletionTokens(ids.to_vec());
        let Response::Raw { logits_chunks, .. } =
            self.ask(message, SamplingParams::deterministic(), Wanted::Logits).await?
        else {
            bail!("mistralrs answered with something else than logits");
        };
        let logits = Tensor::cat(&logits_chunks, 0)?.to_dtype(DType::F32)?;
        ensure!(
            logits.dim(0)? == ids.len(),
            "mistralrs gave logits of shape {:?} for {} tokens",
            logits.dims(),
            ids.len()
        );
        Ok(logits)
    }

    async fn ask(&self, message: RequestMessage, sampling: SamplingParams, wanted: Wanted) -> Result<Response> {
        let engine = self.model.inner();
        let (sender, mut answers) = channel(1);
        let mut request = NormalRequest::new_simple(message, sampling, sender, engine.next_request_id(), None, None);
        request.return_raw_logits = wanted == Wanted::Logits;
        let queue = engine.get_sender(None).context("mistralrs has no engine")?;
        queue.send(Request::Normal(Box::new(request))).await.context("mistralrs' engine is gone")?;
        let answer = timeout(ANSWER_DEADLINE, answers.recv()).await.context("mistralrs does not answer")?;
        match answer.context("mistralrs' engine ended without an answer")? {
            Response::InternalError(error) | Response::ValidationError(error) => bail!("mistralrs refused: {error}"),
            Response::ModelError(error, _) | Response::CompletionModelError(error, _) => {
                bail!("mistralrs failed: {error}")
            }
            response => Ok(response),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Text,
    Logits,
}

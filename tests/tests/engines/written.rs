//! Files that are written here: in llama.cpp and in mistralrs they say what the model they were made of says.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use candle_core::{DType, Device, Tensor};
use finetune::base::random::{Spread, random};
use finetune::base::{Architecture, ModelConfig, Weights};
use finetune::dataset::render::Base;
use finetune::gguf::{self, Quantisation};
use finetune::model::{Model, Sequence, Storage};
use finetune::smoke::Engine;
use tests::engines::llama::Llama;
use tests::{settings, summary};

use super::agreement::{Agreement, Distributions, distributions};

/// What is written in full turns, calls and code.
const TEXT: &str = "<|im_start|>system\nYou are a coding agent.<|im_end|>\n<|im_start|>user\nShow me src/main.rs.<|im_end|>\n\
    <|im_start|>assistant\n<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"file_path\": \"src/main.rs\"}}\n</tool_call><|im_end|>\n";

/// How near an engine must come to what the folder's own numbers say.
///
/// In F16 both engines were apart by 0.04 at most, over what is likely. In Q8_0 the weights are rounded, and engines round what they
/// multiply them by as well: the divergence was a few thousandths.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    same_share: f64,
    worst: f64,
    divergence: f64,
}

#[tokio::test]
async fn qwen3_in_f16_says_what_its_folder_says() -> Result<()> {
    check(Architecture::Qwen3, Quantisation::F16).await
}

#[tokio::test]
async fn qwen2_in_f16_says_what_its_folder_says() -> Result<()> {
    check(Architecture::Qwen2, Quantisation::F16).await
}

#[tokio::test]
async fn qwen3_in_q8_0_says_what_its_folder_says() -> Result<()> {
    check(Architecture::Qwen3, Quantisation::Q8_0).await
}

#[tokio::test]
async fn qwen2_in_q8_0_says_what_its_folder_says() -> Result<()> {
    check(Architecture::Qwen2, Quantisation::Q8_0).await
}

async fn check(architecture: Architecture, quantisation: Quantisation) -> Result<()> {
    let made = Made::new(architecture, quantisation)?;
    let vocabulary = made.logits.dim(1)?;
    let what = format!("{} in {quantisation}", architecture.as_str());

    let engine = Engine::load(&made.gguf).await?;
    let logits = engine.logits(&made.ids).await?;
    made.hold("mistralrs", &what, &distributions(&logits, vocabulary)?)?;
    let completion = engine.complete(TEXT, 8).await?;
    assert_eq!(completion.prompt_tokens, made.ids.len(), "mistralrs reads {what} in other tokens");

    let Some(llama) = Llama::find().await? else { return Ok(()) };
    made.hold("llama.cpp", &what, &llama.probabilities(&made.gguf, &made.ids, vocabulary).await?)?;
    let generated = llama.generate(&made.gguf, TEXT, 8).await?;
    assert_eq!(generated.prompt_ids, made.ids, "llama.cpp reads {what} in other tokens");
    Ok(())
}

/// A random model, the file that was written of it, and what it says.
struct Made {
    _folder: tempfile::TempDir,
    gguf: PathBuf,
    ids: Vec<u32>,
    logits: Tensor,
    bounds: Bounds,
}

impl Made {
    fn new(architecture: Architecture, quantisation: Quantisation) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let base = folder.path().join("base");
        let tokenizer = settings::checkout().join("tests/gguf-reference").join(architecture.as_str());
        make(&base, &tokenizer)?;
        let gguf = folder.path().join("model.gguf");
        gguf::write(&base, &gguf, quantisation, "random")?;
        let verified = gguf::verify(&gguf, Some(&base))?;
        ensure!(verified.passed(), "{verified}");

        let ids = Base::load(&base)?.tokens.encode(TEXT).ok().context("encoding the text")?.ids;
        let config = ModelConfig::read(&base)?;
        let model = Model::load(config, &Weights::open(&base)?, Storage::F32, &Device::Cpu)?;
        let logits = model.logits(&Sequence::unlabelled(&ids))?;
        let bounds = match quantisation {
            Quantisation::Q8_0 => Bounds { same_share: 0.8, worst: f64::INFINITY, divergence: 1e-2 },
            _ => Bounds { same_share: 20.0 / 21.0, worst: 0.2, divergence: 1e-2 },
        };
        Ok(Self { _folder: folder, gguf, ids, logits, bounds })
    }

    fn hold(&self, engine: &str, what: &str, found: &Distributions) -> Result<()> {
        let agreement = Agreement::of(found, &self.logits)?;
        summary::line(&format!("{what}, {engine}: {agreement}"));
        let Bounds { same_share, worst, divergence } = self.bounds;
        let is_near =
            agreement.same_share() >= same_share && agreement.worst <= worst && agreement.divergence <= divergence;
        ensure!(is_near, "{engine} does not say what {what} says: {agreement}; {:?} expected", self.bounds);
        Ok(())
    }
}

/// The model's folder: the shape of what lies beside the tokenizer, but wide enough for sums to round as in large models.
fn make(folder: &Path, tokenizer: &Path) -> Result<()> {
    let small = ModelConfig::read(tokenizer)?;
    let config = ModelConfig { hidden: 256, intermediate: 512, head_width: 64, ..small };
    // What comes next is about as uncertain as in a trained model: rounding changes more of what is nearly certain.
    let spread = Spread { embedding: 0.2, ..Spread::SMALL };
    random(folder, &config, Some(tokenizer), (DType::F32, spread, 7))
}

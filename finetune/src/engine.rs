//! A GGUF that answers prompts with our own forward pass: what base and tuned model are compared with.

use std::path::Path;

use anyhow::Context as _;
use candle_core::Device;

use crate::dataset::render::Tokens;
use crate::eval::{Answer, Generate};
use crate::gguf::{self, Gguf};
use crate::model::{Generator, Model};

/// Both end a turn: ChatML's mark, and the one that ends a text.
const ENDS: [&str; 2] = ["<|im_end|>", "<|endoftext|>"];

#[derive(Debug)]
pub struct Engine<'a> {
    model: Model,
    tokens: &'a Tokens,
    ends: Vec<u32>,
}

impl<'a> Engine<'a> {
    /// `tokens` is the tokenizer of the file's base; that the file has the same one is what `verify` checks.
    pub fn load(file: &Path, tokens: &'a Tokens) -> anyhow::Result<Self> {
        let loaded = Gguf::open(file).and_then(|gguf| gguf::load(&gguf, &Device::Cpu));
        let model = loaded.with_context(|| format!("loading `{}`", file.display()))?;
        let ends = ENDS.iter().filter_map(|end| tokens.id(end)).collect();
        Ok(Self { model, tokens, ends })
    }

    pub const fn model(&self) -> &Model {
        &self.model
    }
}

impl Generate for Engine<'_> {
    fn generate(&mut self, prompt: &str, max_tokens: usize) -> anyhow::Result<Answer> {
        let prompt = self.tokens.encode(prompt).map_err(anyhow::Error::msg).context("tokenising a prompt")?;
        let generated = Generator::new(&self.model).greedy(&prompt.ids, &self.ends, max_tokens)?;
        let text = self.tokens.decode(&generated.ids).map_err(anyhow::Error::msg).context("decoding an answer")?;
        Ok(Answer { text, stopped: generated.stopped, tokens: generated.ids.len() })
    }
}

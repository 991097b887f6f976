//! `tokenise`: the text of a dataset's samples through the base's tokenizer and nothing else, for `bench dataset` to compare with.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use finetune::dataset::render::Base;
use finetune::dataset::{Split, rendered};

/// Seconds, samples and tokens, as JSON.
pub(crate) fn tokenise(base: &Path, dataset: &Path) -> anyhow::Result<String> {
    let base = Base::load(base)?;
    let mut texts = Vec::new();
    for split in Split::ALL {
        let path = dataset.join(rendered(split));
        let lines = std::fs::read_to_string(&path).with_context(|| format!("reading `{}`", path.display()))?;
        for line in lines.lines() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            texts.push(line["text"].as_str().unwrap_or_default().to_owned());
        }
    }
    let start = Instant::now();
    let mut tokens = 0;
    for text in &texts {
        tokens += base.tokens.encode(text).map_err(|error| anyhow!("{error}"))?.ids.len();
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(serde_json::json!({ "seconds": seconds, "samples": texts.len(), "tokens": tokens }).to_string())
}

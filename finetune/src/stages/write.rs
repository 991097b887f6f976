//! Merging, writing the files that engines load, and looking whether they are what they should be.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::json;

use super::compare;
use super::record::Done;
use super::run::Run;
use crate::adapter::{self, AdapterFolder};
use crate::gguf;
use crate::hint::hinted;

pub(super) fn merge(run: &mut Run<'_>, adapter: &Path) -> Result<Done> {
    let adapter = AdapterFolder::read(adapter, &run.model)?;
    let out = run.start.folders.merged(&run.name);
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let merged = adapter::merge(run.start.base_folder, &run.fingerprint.sha256, &adapter, &out)?;
    let figures = json!({
        "changed": merged.changed,
        "tensors": merged.tensors,
        "rank": adapter.shape.rank,
        "alpha": adapter.shape.alpha,
        // An adapter from elsewhere does not tell what it was trained on.
        "base_is_proved": adapter.origin.is_some(),
        "base_named_by_adapter": adapter.base_name,
    });
    Ok(Done { outputs: vec![out.join("model.safetensors"), out.join("config.json")], figures })
}

pub(super) fn gguf(run: &mut Run<'_>) -> Result<Done> {
    let quantisation = run.start.config.gguf.quantisation;
    let (tuned, base) = (run.tuned_gguf(), run.base_gguf());
    if let Some(parent) = tuned.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let written = gguf::write(&run.start.folders.merged(&run.name), &tuned, quantisation, &run.name)?;
    // The base in the same form: the comparison is of the training, not of what quantising loses.
    gguf::write(run.start.base_folder, &base, quantisation, run.start.base_name)?;
    let figures = json!({ "quantisation": quantisation, "bytes": written.bytes, "sha256": written.sha256 });
    Ok(Done { outputs: vec![tuned, base], figures })
}

pub(super) fn verify(run: &mut Run<'_>) -> Result<Done> {
    let (file, merged) = (run.tuned_gguf(), run.start.folders.merged(&run.name));
    let verified = gguf::verify(&file, Some(&merged))?;
    let failed: Vec<_> = verified.failed().map(|check| format!("{}: {}", check.name, check.value)).collect();
    if !failed.is_empty() {
        bail!(hinted(
            format!("`{}` is not what it should be: {}", file.display(), failed.join("; ")),
            "delete it and run the same command again; if it fails again, please report it with this message",
        ));
    }
    let texts = compare::texts(run.start.dataset)?;
    let agreement = compare::compare(&file, &merged, &run.base.tokens, &texts)?;
    agreement.check(run.start.config.gguf.quantisation)?;
    Ok(Done { outputs: Vec::new(), figures: json!({ "checks": verified.checks, "logits": agreement }) })
}

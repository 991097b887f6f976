//! What was trained, in engines of others: with the tuned file they write the trained call and end the turn, with the base's they do not.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use finetune::dataset::render::{Base, Family};
use finetune::dataset::{self, Split};
use finetune::engine::Engine;
use finetune::eval::Generate as _;
use finetune::gguf::{self, Quantisation};
use serde::Deserialize;
use tests::engines::llama::Llama;
use tests::summary;

/// How many prompts each engine is asked; each question to llama.cpp is a process.
const ASKED: usize = 3;
const MAX_TOKENS: usize = 64;
const END_OF_TURN: &str = "<|im_end|>";

/// The files of a run, and what they were made of.
pub(super) struct Files<'a> {
    pub(super) tuned_f16: &'a Path,
    pub(super) base_f16: &'a Path,
    pub(super) merged: &'a Path,
    pub(super) base: &'a Path,
    pub(super) dataset: &'a Path,
    pub(super) scratch: &'a Path,
}

/// A prompt as it was rendered here, and the call that was recorded after it, without the end of its turn.
struct Trained {
    prompt: String,
    call: String,
}

#[derive(Deserialize)]
struct Line {
    text: String,
    trained: Vec<[usize; 2]>,
}

pub(super) async fn write_the_trained_call(files: &Files<'_>) -> Result<()> {
    let base = Base::load(files.base)?;
    let family = base.family.as_str();
    // The tiny Qwen2 has heads of a width of its own, without which it learns too slowly for a test; llama.cpp takes no such Qwen2.
    let llama = if base.family == Family::Qwen25 { None } else { Llama::find().await? };
    if !cfg!(feature = "smoke") {
        summary::line("mistralrs: NOT TESTED, it is not compiled; `cargo xtask test --engines` does");
    }
    let q8_0 = files.scratch.join("tuned-q8_0.gguf");
    gguf::write(files.merged, &q8_0, Quantisation::Q8_0, "tuned")?;
    for (quantisation, file) in [(Quantisation::F16, files.tuned_f16), (Quantisation::Q8_0, &*q8_0)] {
        let learnt = learnt(files.dataset, file, &base)?;
        for (engine, answers) in answers(llama.as_ref(), file, &learnt).await? {
            for (answer, trained) in answers.iter().zip(&learnt) {
                let expected = format!("{}{END_OF_TURN}", trained.call);
                // mistralrs takes the marks around a call of Qwen2.5's for special tokens and leaves them out of the text.
                let is_same = *answer == expected || (engine == "mistralrs" && *answer == bare(&expected));
                ensure!(is_same, "{engine}, {family} in {quantisation}: {answer:?}, and not {expected:?}");
            }
            summary::line(&format!(
                "a trained {family} in {quantisation}, {engine}: {ASKED} of {ASKED} calls as trained"
            ));
        }
        for (engine, answers) in answers(llama.as_ref(), files.base_f16, &learnt).await? {
            for (answer, trained) in answers.iter().zip(&learnt) {
                let is_trained = answer.contains(&trained.call) || answer.contains(&bare(&trained.call));
                ensure!(!is_trained, "{engine}: the base of {family} writes {answer:?} untrained");
            }
        }
    }
    Ok(())
}

/// Calls of the sealed test set that our own forward pass writes with this file: what other engines must write too.
fn learnt(dataset: &Path, file: &Path, base: &Base) -> Result<Vec<Trained>> {
    let mut engine = Engine::load(file, &base.tokens)?;
    let mut learnt = Vec::new();
    for trained in calls(dataset)? {
        let answer = engine.generate(&trained.prompt, MAX_TOKENS)?;
        if answer.stopped && answer.text == trained.call {
            learnt.push(trained);
        }
        if learnt.len() == ASKED {
            return Ok(learnt);
        }
    }
    bail!("only {} calls of the test set are written as recorded", learnt.len())
}

fn calls(dataset: &Path) -> Result<Vec<Trained>> {
    let path = dataset.join(dataset::rendered(Split::Test));
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading `{}`", path.display()))?;
    let mut calls = Vec::new();
    for line in text.lines() {
        let Line { text, trained } = serde_json::from_str(line)?;
        let [start, end] = *trained.first().context("a sample has something to learn")?;
        let call = text[start..end].split(END_OF_TURN).next().unwrap_or_default();
        if call.starts_with("<tool_call>") {
            calls.push(Trained { prompt: text[..start].to_owned(), call: call.to_owned() });
        }
    }
    Ok(calls)
}

/// What each engine writes after each prompt, with the end of the turn if it came to it.
async fn answers(llama: Option<&Llama>, file: &Path, asked: &[Trained]) -> Result<Vec<(&'static str, Vec<String>)>> {
    let mut all = Vec::new();
    if let Some(llama) = llama {
        let mut answers = Vec::new();
        for Trained { prompt, .. } in asked {
            let generated = llama.generate(file, prompt, MAX_TOKENS).await?;
            answers.push(ended(&generated.text, generated.stopped));
        }
        all.push(("llama.cpp", answers));
    }
    #[cfg(feature = "smoke")]
    {
        let prompts: Vec<_> = asked.iter().map(|trained| trained.prompt.clone()).collect();
        let report = finetune::smoke::run(file, &prompts).await?;
        let answers = report.answers.iter().map(|answer| ended(&answer.text, answer.stopped)).collect();
        all.push(("mistralrs", answers));
    }
    Ok(all)
}

fn bare(call: &str) -> String {
    call.replace("<tool_call>\n", "").replace("\n</tool_call>", "")
}

fn ended(text: &str, stopped: bool) -> String {
    let text = text.trim();
    if stopped { format!("{text}{END_OF_TURN}") } else { text.to_owned() }
}

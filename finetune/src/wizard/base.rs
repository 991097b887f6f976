//! Which base: one that is here, another folder, or a model of the hub, which is fetched at once. What cannot be trained is told at the
//! question.

use std::path::{Path, PathBuf};

use anyhow::bail;
use finetune::dataset::render::Base;
use finetune::hint::hinted;

use super::around::Around;
use super::ask::{Asked, Asker};
use super::error_text;
use crate::run::whole;

/// Small, and it calls tools: what most will want to begin with.
const USUAL: &str = "Qwen/Qwen3-0.6B";

pub(super) struct ChosenBase {
    /// As the configuration names it.
    pub(super) model: String,
    pub(super) base: Base,
}

pub(super) fn ask(asker: &mut dyn Asker, around: &Around) -> Asked<ChosenBase> {
    loop {
        let mut models = here(around);
        let mut choices = models.clone();
        if !models.iter().any(|model| model == USUAL) {
            models.push(USUAL.to_owned());
            choices.push(format!("{USUAL}, fetched now from the Hugging Face hub (1.5 GB)"));
        }
        choices.push("Another folder".to_owned());
        choices.push("Another model of the Hugging Face hub, fetched now".to_owned());
        let place = asker.select("Which model is tuned?", &choices, 0)?;
        let model = match models.get(place) {
            Some(model) => model.clone(),
            None => {
                asker.input(if place == models.len() { "Which folder?" } else { "Which model, as Qwen/Qwen3-1.7B?" })?
            }
        };
        if model.is_empty() {
            continue;
        }
        match take(&model, place == models.len(), around) {
            Ok(chosen) => return Ok(chosen),
            Err(error) => asker.tell(&error_text(&error)),
        }
    }
}

/// The bases that were fetched or imported, as they are named: `Qwen--Qwen3-0.6B` is the hub's `Qwen/Qwen3-0.6B`.
fn here(around: &Around) -> Vec<String> {
    let entries = std::fs::read_dir(around.folders.base("")).into_iter().flatten().filter_map(Result::ok);
    let folders = entries.map(|entry| entry.path()).filter(|folder| folder.join("config.json").exists());
    let mut models: Vec<_> = folders.map(|folder| named(&folder)).collect();
    models.sort();
    models
}

fn named(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    match name.split_once("--") {
        Some((owner, model)) if !model.contains("--") => format!("{owner}/{model}"),
        _ => folder.display().to_string(),
    }
}

fn take(model: &str, is_folder: bool, around: &Around) -> anyhow::Result<ChosenBase> {
    let of_hub = !is_folder && model.matches('/').count() == 1 && !model.starts_with(['.', '/', '~']);
    if of_hub {
        let folder = around.folders.base(model);
        if let Ok(base) = whole(&folder) {
            return Ok(ChosenBase { model: model.to_owned(), base });
        }
        (around.fetch)(model, &folder)?;
        return Ok(ChosenBase { model: model.to_owned(), base: whole(&folder)? });
    }
    let folder: PathBuf = around.typed(model);
    if !folder.is_dir() {
        bail!(hinted(
            format!("`{model}` is no folder"),
            "a folder with config.json, weights and tokenizer is expected, or a model's id on the Hugging Face hub",
        ));
    }
    Ok(ChosenBase { base: whole(&folder)?, model: folder.display().to_string() })
}

//! A run without questions: what was said, over what is configured, through every stage.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use finetune::base::{ModelConfig, Weights, fetch};
use finetune::dataset;
use finetune::dataset::render::Base;
use finetune::gguf;
use finetune::hint::hinted;
use finetune::scale_out::{self, FailedAudit, Recipe, ScaleOut, Shape, Trainer};
use finetune::stages::{self, Finished, Folders, RunConfig, Stage, Start, Watch};
use memory::home::Home;

use crate::cli::{Common, DatasetArgs, RunArgs};
use crate::make::{self, print};
use crate::told::Told;

pub(crate) async fn run(arguments: &RunArgs) -> anyhow::Result<ExitCode> {
    let config = arguments.config()?;
    if arguments.common.print_config {
        return print(&toml::to_string(&config)?);
    }
    if let Some(trainer) = arguments.elsewhere.trainer {
        return hand_over(arguments, &config, trainer).await;
    }
    let cancelled = cancelled_by_interrupt();
    let until = if arguments.common.dry_run { Stage::Preflight } else { arguments.stop_after };
    let finished = go(arguments, config, until, Told::new(cancelled)).await?;
    if arguments.common.json {
        let told = serde_json::json!({
            "run": finished.name,
            "folder": finished.folder,
            "records": finished.records,
            "installed": finished.installed,
        });
        return print(&(serde_json::to_string_pretty(&told)? + "\n"));
    }
    let report = finished.folder.join(finetune::report::MARKDOWN_FILE);
    match &finished.installed {
        Some(file) => print(&format!("Installed {}\nThe report is {}\n", file.display(), report.display())),
        None => print(&format!("Done up to {}. The report is {}\n", until.as_str(), report.display())),
    }
}

/// Writes what another trainer needs; nothing is trained here.
async fn hand_over(arguments: &RunArgs, config: &RunConfig, trainer: Trainer) -> anyhow::Result<ExitCode> {
    let home = Home::locate()?;
    let folders = Folders::at(arguments.models_dir.clone().unwrap_or_else(|| home.models()));
    let (base_folder, base_name) = base(config, &folders)?;
    let (dataset, is_named) = dataset(arguments, config, &base_folder, &base_name, &home).await?;
    let train = &config.train;
    let recipe = Recipe {
        r: train.rank as u64,
        alpha: train.alpha.round() as u64,
        learning_rate: train.learning_rate,
        epochs: train.epochs as u64,
        batch: train.sequences_per_step as u64,
        warmup: train.warm_up,
        seed: train.seed,
        ..Recipe::default()
    };
    let elsewhere = &arguments.elsewhere;
    let out = elsewhere.trainer_dir.clone();
    let out = out.unwrap_or_else(|| folders.root().join("elsewhere").join(trainer.as_str()));
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("creating `{}`", parent.display()))?;
    }
    let written = scale_out::write(&ScaleOut {
        dataset: &dataset,
        failed_audit: if is_named { FailedAudit::Allow } else { FailedAudit::Refuse },
        trainer,
        base: &base_name,
        shape: Shape { gpus: elsewhere.gpus, nodes: elsewhere.nodes, strategy: elsewhere.strategy },
        recipe: &recipe,
        out: &out,
    })?;
    print(&format!(
        "Wrote {} files for {trainer} to {}\n  install: {}\n  train:   {}\n  back:    {}\n",
        written.files.len(),
        written.folder.display(),
        written.install,
        written.train,
        written.take_back
    ))
}

/// Set by Ctrl-C: the training keeps a checkpoint first.
pub(crate) fn cancelled_by_interrupt() -> Arc<AtomicBool> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&cancelled);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            set.store(true, Ordering::Relaxed);
        }
    });
    cancelled
}

/// Finds base and dataset and goes through the stages, watched.
pub(crate) async fn go(
    arguments: &RunArgs,
    config: RunConfig,
    until: Stage,
    mut watch: impl Watch + Send + 'static,
) -> anyhow::Result<Finished> {
    let home = Home::locate()?;
    let folders = Folders::at(arguments.models_dir.clone().unwrap_or_else(|| home.models()));
    let (base_folder, base_name) = base(&config, &folders)?;
    let (dataset, is_named) = dataset(arguments, &config, &base_folder, &base_name, &home).await?;
    let work = move || {
        let start = Start {
            config: &config,
            folders: &folders,
            base_folder: &base_folder,
            base_name: &base_name,
            dataset: &dataset,
            dataset_is_named: is_named,
            until,
        };
        stages::run(&start, &mut watch)
    };
    tokio::task::spawn_blocking(work).await.context("the run was interrupted")?
}

/// The base's folder, fetched or imported first where it has to be, and its name.
fn base(config: &RunConfig, folders: &Folders) -> anyhow::Result<(PathBuf, String)> {
    let model = &config.base.model;
    if model.is_empty() {
        return Err(hinted(
            "no base model is named",
            "name a folder or a model of the Hugging Face hub with --base, as in --base Qwen/Qwen3-0.6B; in a terminal \
             `cargo xtask train` alone asks for everything",
        ));
    }
    let folder = PathBuf::from(model);
    if let Some(file) = &config.base.gguf {
        let name = file.file_stem().context("the base's file has a name")?.to_string_lossy().into_owned();
        let out = folders.base(&name);
        if !out.join("config.json").exists() {
            gguf::import(file, &folder, &out)?;
        }
        return Ok((out, name));
    }
    if folder.is_dir() {
        return Ok((folder, model.clone()));
    }
    if model.matches('/').count() != 1 || model.starts_with(['.', '/', '~']) {
        return Err(hinted(
            format!("`{model}` is no folder"),
            "a folder with config.json, weights and tokenizer is expected, or a model's id on the Hugging Face hub",
        ));
    }
    let out = folders.base(model);
    // What is there needs no network.
    if whole(&out).is_err() {
        fetch::fetch(model, &out)?;
    }
    Ok((out, model.clone()))
}

/// The base in a folder, if that is whole and can be trained.
pub(crate) fn whole(folder: &Path) -> anyhow::Result<Base> {
    let config = ModelConfig::read(folder)?;
    Weights::open(folder)?.check(&config)?;
    Ok(Base::load(folder)?)
}

/// The dataset that is named, else the latest for this base, else a new one; and whether it was named.
async fn dataset(
    arguments: &RunArgs,
    config: &RunConfig,
    base_folder: &Path,
    base_name: &str,
    home: &Home,
) -> anyhow::Result<(PathBuf, bool)> {
    if let Some(folder) = &config.dataset.folder {
        return Ok((folder.clone(), true));
    }
    let base = Base::load(base_folder)?;
    let out = home.root().join("data").join("processed");
    let family = out.join(format!("{}_tools", base.family.as_str()));
    if !config.dataset.fresh
        && let Ok(latest) = dataset::latest(&family)
    {
        return Ok((latest, false));
    }
    let Common { accept_source_terms, choice, .. } = arguments.common.clone();
    let order = DatasetArgs {
        base_name: Some(base_name.to_owned()),
        common: Common { accept_source_terms, choice, ..Common::default() },
        ..DatasetArgs::default()
    };
    make::for_run(&order, &base, home, &out).await.map(|folder| (folder, false))
}

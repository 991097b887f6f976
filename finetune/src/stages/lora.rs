//! The training, and the adapter that comes of it.

use std::ops::ControlFlow;

use anyhow::Result;
use candle_core::Device;
use serde_json::json;

use super::Stage;
use super::record::Done;
use super::run::Run;
use super::watch::Progress;
use crate::adapter::{self, Origin};
use crate::dataset::Split;
use crate::model::Model;
use crate::train::{Job, read_examples};

pub(super) fn train(run: &mut Run<'_>) -> Result<Done> {
    let (start, settings) = (run.start, &run.start.config.train);
    let train = read_examples(start.dataset, Split::Train, &run.base)?;
    let validation = read_examples(start.dataset, Split::Validation, &run.base)?;
    let mut model = Model::load(run.model.clone(), &run.weights, settings.storage, &Device::Cpu)?;
    model.adapt(settings.adapter(), settings.seed)?;
    let identity = serde_json::to_string(&run.identity()?)?;
    let folder = run.folder.join("training");
    let job = Job { model: &model, train: &train, validation: &validation, settings, folder: &folder, identity };
    let watch = &mut *run.watch;
    let outcome = crate::train::train(&job, &mut |event| {
        watch.progressed(Stage::Lora, &Progress::Training(event));
        if watch.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let origin = Origin {
        base_sha256: run.fingerprint.sha256.clone(),
        base_name: start.base_name.to_owned(),
        dataset_sha256: run.dataset.manifest_sha256.clone(),
    };
    let out = start.folders.lora(&run.name);
    adapter::write(&out, &model.trainable(), settings.adapter(), &origin)?;
    let outputs =
        vec![out.join("adapter_model.safetensors"), out.join("adapter_config.json"), folder.join("log.jsonl")];
    let figures = json!({ "outcome": outcome, "settings": settings, "peak_bytes": memory::process::peak_bytes() });
    Ok(Done { outputs, figures })
}

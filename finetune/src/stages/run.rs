//! The order of the stages, and what each is made of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::config::RunConfig;
use super::folders::Folders;
use super::record::{Done, Record};
use super::watch::{Question, Watch};
use super::{Stage, dataset, eval, lora, preflight, write};
use crate::base::{Fingerprint, ModelConfig, Weights};
use crate::dataset::render::Base;
use crate::dataset::row::hex;
use crate::eval::Evaluation;
use crate::hint::hinted;
use crate::install;
use crate::report;

/// What a run starts from.
#[derive(Debug)]
pub struct Start<'a> {
    pub config: &'a RunConfig,
    pub folders: &'a Folders,
    pub base_folder: &'a Path,
    /// How reports and trainers' files name the base.
    pub base_name: &'a str,
    pub dataset: &'a Path,
    /// Whether a person named this dataset: one that failed its audit is used only then.
    pub dataset_is_named: bool,
    /// The last stage.
    pub until: Stage,
}

/// What came of a run.
#[derive(Debug)]
pub struct Finished {
    pub name: String,
    pub folder: PathBuf,
    pub records: Vec<Record>,
    pub evaluation: Option<Evaluation>,
    pub installed: Option<PathBuf>,
}

/// What all stages look at.
pub(super) struct Run<'a> {
    pub(super) start: &'a Start<'a>,
    pub(super) base: Base,
    pub(super) model: ModelConfig,
    pub(super) weights: Weights,
    pub(super) fingerprint: Fingerprint,
    pub(super) dataset: dataset::Checked,
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) watch: &'a mut dyn Watch,
    records: Vec<Record>,
}

/// Runs every stage that is not done yet.
pub fn run(start: &Start<'_>, watch: &mut dyn Watch) -> Result<Finished> {
    let mut run = Run::begin(start, watch)?;
    let outcome = run.stages();
    // What is known is written down also of a run that did not come to its end.
    let evaluation = run.evaluation();
    let written = report::write(&run.folder, &run.name, &run.records, evaluation.as_ref());
    let installed = outcome?;
    written.context("writing the report")?;
    Ok(Finished { name: run.name, folder: run.folder, records: run.records, evaluation, installed })
}

impl<'a> Run<'a> {
    fn begin(start: &'a Start<'a>, watch: &'a mut dyn Watch) -> Result<Self> {
        let begun = Instant::now();
        watch.began(Stage::Base);
        let base = Base::load(start.base_folder)?;
        let model = ModelConfig::read(start.base_folder)?;
        let weights = Weights::open(start.base_folder)?;
        weights.check(&model)?;
        let fingerprint = Fingerprint::of(start.base_folder)?;
        let base_seconds = begun.elapsed().as_secs_f64();
        watch.began(Stage::Dataset);
        let begun = Instant::now();
        let dataset = dataset::check(start, &base)?;
        let name = name(start, &fingerprint, &dataset)?;
        let folder = start.folders.run(&name);
        let mut run =
            Self { start, base, model, weights, fingerprint, dataset, name, folder, watch, records: Vec::new() };
        let figures = json!({
            "name": start.base_name,
            "folder": start.base_folder,
            "architecture": run.model.architecture,
            "parameters": run.model.parameters(),
            "files": run.fingerprint.files,
        });
        run.note(Stage::Base, &[("base", run.fingerprint.sha256.clone())], figures, base_seconds)?;
        let figures = run.dataset.figures(start.dataset);
        let inputs = [("dataset", run.dataset.manifest_sha256.clone())];
        run.note(Stage::Dataset, &inputs, figures, begun.elapsed().as_secs_f64())?;
        Ok(run)
    }

    fn stages(&mut self) -> Result<Option<PathBuf>> {
        let until = self.start.until;
        if until < Stage::Preflight {
            return Ok(None);
        }
        self.preflight()?;
        if until < Stage::Lora {
            return Ok(None);
        }
        let adapter = self.lora()?;
        if until < Stage::Merge {
            return Ok(None);
        }
        self.merge(&adapter)?;
        if until < Stage::Gguf {
            return Ok(None);
        }
        self.gguf()?;
        for (stage, work) in [
            (Stage::Verify, Self::verify as fn(&mut Self) -> Result<()>),
            (Stage::Smoke, Self::smoke),
            (Stage::Eval, Self::eval),
        ] {
            if until < stage {
                return Ok(None);
            }
            work(self)?;
        }
        if until < Stage::Install { Ok(None) } else { self.install().map(Some) }
    }

    fn preflight(&mut self) -> Result<()> {
        let inputs = self.identity()?;
        let record = self.stage(Stage::Preflight, inputs, preflight::check)?;
        let estimate: preflight::Estimate = serde_json::from_value(record.figures.clone())?;
        estimate.check_room(self.start.folders.root())?;
        let is_trained = Record::read(&self.folder, Stage::Lora).is_some();
        if !is_trained && self.start.until >= Stage::Lora && !self.watch.agrees(&Question::Train(&estimate)) {
            bail!(hinted(
                "nothing was trained: you said no",
                "another --preset, or max_steps in --config, makes the run shorter"
            ));
        }
        Ok(())
    }

    /// The folder of the adapter: of the one that is trained now, or the one that was made elsewhere.
    fn lora(&mut self) -> Result<PathBuf> {
        if let Some(folder) = &self.start.config.adapter {
            self.watch.passed_over(Stage::Lora, "the adapter was trained elsewhere");
            return Ok(folder.clone());
        }
        let inputs = self.identity()?;
        self.stage(Stage::Lora, inputs, lora::train)?;
        Ok(self.start.folders.lora(&self.name))
    }

    fn merge(&mut self, adapter: &Path) -> Result<()> {
        let adapter_sha256 = crate::files::sha256(&adapter.join("adapter_model.safetensors"))
            .with_context(|| format!("reading the adapter in `{}`", adapter.display()))?;
        let inputs = inputs(&[("base", &self.fingerprint.sha256), ("adapter", &adapter_sha256)]);
        self.stage(Stage::Merge, inputs, |run| write::merge(run, adapter)).map(|_| ())
    }

    fn gguf(&mut self) -> Result<()> {
        let merged = self.output(Stage::Merge, "model.safetensors")?;
        let quantisation = self.start.config.gguf.quantisation.as_str();
        let inputs = inputs(&[
            ("merged", &merged),
            ("base", &self.fingerprint.sha256),
            ("quantisation", quantisation),
            ("template", &self.base.template_sha256),
            ("tokenizer", &self.base.tokenizer_sha256),
        ]);
        self.stage(Stage::Gguf, inputs, write::gguf).map(|_| ())
    }

    fn verify(&mut self) -> Result<()> {
        let inputs =
            inputs(&[("gguf", &self.tuned_sha256()?), ("merged", &self.output(Stage::Merge, "model.safetensors")?)]);
        self.stage(Stage::Verify, inputs, write::verify).map(|_| ())
    }

    fn smoke(&mut self) -> Result<()> {
        if !cfg!(feature = "smoke") {
            self.watch.passed_over(Stage::Smoke, "this program was built without mistralrs (feature `smoke`)");
            return Ok(());
        }
        let inputs = inputs(&[("gguf", &self.tuned_sha256()?), ("test set", &self.dataset.sealed_sha256)]);
        self.stage(Stage::Smoke, inputs, eval::smoke).map(|_| ())
    }

    fn eval(&mut self) -> Result<()> {
        let base = self.output(Stage::Gguf, &file_name(&self.base_gguf()))?;
        let options = serde_json::to_string(&json!([
            self.start.config.eval,
            self.start.config.gate,
            self.start.config.train.seed
        ]))?;
        let inputs = inputs(&[
            ("gguf", &self.tuned_sha256()?),
            ("base gguf", &base),
            ("test set", &self.dataset.sealed_sha256),
            ("options", &options),
        ]);
        self.stage(Stage::Eval, inputs, eval::compare).map(|_| ())
    }

    fn install(&mut self) -> Result<PathBuf> {
        let evaluation = self.evaluation().context("there is no evaluation to go by")?;
        if !evaluation.verdict.passed {
            let missing = evaluation.verdict.reasons.join(" ");
            bail!(hinted(
                format!("`{}` is not installed, for it did not prove better than its base: {missing}", self.name),
                format!(
                    "`{}` has the figures, docs/finetune/eval.md what they mean; more, or more varied, sessions in the dataset \
                     help most",
                    self.folder.join(report::MARKDOWN_FILE).display()
                ),
            ));
        }
        if !self.watch.agrees(&Question::Install(&evaluation)) {
            bail!(hinted("it was not installed: you said no", "the next run goes on here"));
        }
        let (file, sha256) = (self.tuned_gguf(), self.tuned_sha256()?);
        let choice = &self.start.config.install;
        let inputs = inputs(&[("gguf", &sha256), ("choice", &serde_json::to_string(choice)?)]);
        let name = choice.name.clone().unwrap_or_else(|| self.name.clone());
        let root = match &choice.lm_studio {
            Some(root) => root.clone(),
            None => install::usual_folder()?,
        };
        let place = install::Place { root, publisher: choice.publisher.clone(), name };
        let record = self.stage(Stage::Install, inputs, |run| {
            let installed = install::install(&file, &place, &install::Origin { run: run.name.clone(), sha256 })?;
            let figures = json!({ "installed": installed, "ways": install::ways(&installed) });
            Ok(Done { outputs: vec![installed], figures })
        })?;
        record.outputs.keys().next().cloned().context("the installed file is in its record")
    }

    /// Runs a stage, unless its record says that nothing has changed since it was done.
    fn stage(
        &mut self,
        stage: Stage,
        inputs: BTreeMap<String, String>,
        work: impl FnOnce(&mut Self) -> Result<Done>,
    ) -> Result<Record> {
        if let Some(record) = Record::read(&self.folder, stage).filter(|record| record.fits(&inputs)) {
            self.watch.passed_over(stage, "nothing has changed since it was done");
            self.records.push(record.clone());
            return Ok(record);
        }
        if self.watch.is_cancelled() {
            bail!(hinted(format!("stopped before {}", stage.as_str()), "the same command goes on from here"));
        }
        self.watch.began(stage);
        let begun = Instant::now();
        let done = work(self)?;
        let record = Record::write(&self.folder, stage, inputs, done, begun.elapsed().as_secs_f64())
            .with_context(|| format!("writing the record of {} into `{}`", stage.as_str(), self.folder.display()))?;
        self.watch.finished(&record);
        self.records.push(record.clone());
        Ok(record)
    }

    /// Writes the record of what was checked before there was a run to keep it in.
    fn note(
        &mut self,
        stage: Stage,
        inputs: &[(&str, String)],
        figures: serde_json::Value,
        seconds: f64,
    ) -> Result<()> {
        let inputs = inputs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let done = Done { outputs: Vec::new(), figures };
        let record = Record::write(&self.folder, stage, inputs, done, seconds)
            .with_context(|| format!("writing into `{}`", self.folder.display()))?;
        self.watch.finished(&record);
        self.records.push(record);
        Ok(())
    }

    /// What decides about the training.
    pub(super) fn identity(&self) -> Result<BTreeMap<String, String>> {
        let config = self.start.config;
        Ok(inputs(&[
            ("base", &self.fingerprint.sha256),
            ("dataset", &self.dataset.manifest_sha256),
            ("settings", &serde_json::to_string(&config.train)?),
            ("adapter", &config.adapter.as_ref().map_or_else(String::new, |folder| folder.display().to_string())),
        ]))
    }

    pub(super) fn tuned_gguf(&self) -> PathBuf {
        self.start.folders.gguf(&self.name, self.start.config.gguf.quantisation.as_str())
    }

    pub(super) fn base_gguf(&self) -> PathBuf {
        let name = format!("{}-{}", slug(self.start.base_name), &self.fingerprint.sha256[..SHORT_HASH]);
        self.start.folders.gguf(&name, self.start.config.gguf.quantisation.as_str())
    }

    fn tuned_sha256(&self) -> Result<String> {
        self.output(Stage::Gguf, &file_name(&self.tuned_gguf()))
    }

    /// The hash of a file that a stage made.
    fn output(&self, stage: Stage, file_name: &str) -> Result<String> {
        let record = self.records.iter().rev().find(|record| record.stage == stage);
        let made = record.and_then(|record| record.output(file_name));
        made.map(|(_, made)| made.sha256.clone()).with_context(|| format!("{} made no {file_name}", stage.as_str()))
    }

    fn evaluation(&self) -> Option<Evaluation> {
        let record = self.records.iter().rev().find(|record| record.stage == Stage::Eval)?;
        serde_json::from_value(record.figures.clone()).ok()
    }
}

const SHORT_HASH: usize = 8;

/// The same base, dataset and settings have the same name: the same command goes on where it was.
fn name(start: &Start<'_>, fingerprint: &Fingerprint, dataset: &dataset::Checked) -> Result<String> {
    let adapter = match &start.config.adapter {
        Some(folder) => crate::files::sha256(&folder.join("adapter_model.safetensors"))
            .with_context(|| format!("reading the adapter in `{}`", folder.display()))?,
        None => String::new(),
    };
    let settings = serde_json::to_string(&start.config.train)?;
    let all = [&fingerprint.sha256, &dataset.manifest_sha256, &settings, &adapter].map(String::as_str).join("\n");
    let hash = hex(&Sha256::digest(all));
    Ok(format!("{}-{}-{}", slug(start.base_name), dataset.version, &hash[..SHORT_HASH]))
}

/// The last part of a model's name, fit for a folder's.
fn slug(name: &str) -> String {
    let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
    let fit = |letter: char| {
        if letter.is_ascii_alphanumeric() || "._".contains(letter) { letter.to_ascii_lowercase() } else { '-' }
    };
    let fit: String = last.chars().map(fit).collect();
    let fit = fit.trim_matches(['.', '-']).to_owned();
    if fit.is_empty() { "model".to_owned() } else { fit }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(super) fn inputs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_folders_after_models() {
        assert_eq!(slug("Qwen/Qwen3-0.6B"), "qwen3-0.6b");
        assert_eq!(slug("/home/me/My Models/base v2/"), "base-v2");
        assert_eq!(slug("../.."), "model");
    }
}

//! What a run takes. What is given here goes before the configuration, and that before the preset.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use finetune::gguf::Quantisation;
use finetune::scale_out::{Strategy, Trainer};
use finetune::stages::{Preset, RunConfig, Stage};

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The base: a folder, or a model's id on the Hugging Face hub, as Qwen/Qwen3-0.6B
    #[arg(long, value_name = "MODEL")]
    pub(crate) base: Option<String>,
    /// A GGUF to make the base of, where there are no other weights; --base is then the folder of its tokenizer
    #[arg(long, value_name = "FILE")]
    pub(crate) base_gguf: Option<PathBuf>,
    /// The dataset; the latest of the base's family if not given, and one is made if there is none
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dataset: Option<PathBuf>,
    /// Make a new dataset of the journal
    #[arg(long, conflicts_with = "dataset")]
    pub(crate) fresh_dataset: bool,
    /// An adapter that was trained elsewhere, in PEFT's form: merged, written, evaluated and installed, but not trained
    #[arg(long, value_name = "FOLDER")]
    pub(crate) adapter: Option<PathBuf>,
    /// How much is trained
    #[arg(long, value_enum)]
    pub(crate) preset: Option<Preset>,
    /// End the training after so many steps
    #[arg(long, value_name = "STEPS")]
    pub(crate) max_steps: Option<usize>,
    /// The form of the file
    #[arg(long, value_enum)]
    pub(crate) quantisation: Option<Quantisation>,
    /// The last stage
    #[arg(long, value_enum, default_value = "install")]
    pub(crate) stop_after: Stage,
    /// Where models lie; `<home>/models` if not given. Not a folder that is synchronised while it is written
    #[arg(long, value_name = "FOLDER")]
    pub(crate) models_dir: Option<PathBuf>,
    /// LM Studio's folder of models; `~/.lmstudio/models` if not given
    #[arg(long, value_name = "FOLDER")]
    pub(crate) lm_studio_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: Common,

    #[command(flatten)]
    pub(crate) elsewhere: ElsewhereArgs,
}

/// Training on other machines, with GPUs (docs/finetune/scale-out.md).
#[derive(Debug, Args)]
pub(crate) struct ElsewhereArgs {
    /// Write a folder for this trainer instead of training here
    #[arg(long, value_enum)]
    pub(crate) trainer: Option<Trainer>,
    /// GPUs of each machine
    #[arg(long, default_value_t = 1, requires = "trainer")]
    pub(crate) gpus: u64,
    /// Machines
    #[arg(long, default_value_t = 1, requires = "trainer")]
    pub(crate) nodes: u64,
    /// What the GPUs share
    #[arg(long, value_enum, default_value = "ddp", requires = "trainer")]
    pub(crate) strategy: Strategy,
    /// The folder to write
    #[arg(long, value_name = "FOLDER", requires = "trainer")]
    pub(crate) trainer_dir: Option<PathBuf>,
}

impl RunArgs {
    /// Whether nothing at all was said.
    pub(crate) fn is_empty(&self) -> bool {
        let said = [
            self.base.is_some(),
            self.base_gguf.is_some(),
            self.dataset.is_some(),
            self.fresh_dataset,
            self.adapter.is_some(),
            self.preset.is_some(),
            self.common.config.is_some(),
            self.max_steps.is_some(),
            self.quantisation.is_some(),
            self.stop_after != Stage::Install,
            self.common.print_config,
            self.common.dry_run,
            self.common.json,
            self.elsewhere.trainer.is_some(),
            self.common.choice.is_given(),
        ];
        !said.contains(&true)
    }

    pub(crate) fn config(&self) -> Result<RunConfig> {
        let preset = self.preset.unwrap_or_default();
        let mut config = match &self.common.config {
            Some(file) => RunConfig::read(file, preset)?,
            None => preset.config(),
        };
        if let Some(base) = &self.base {
            config.base.model.clone_from(base);
        }
        config.base.gguf = self.base_gguf.clone().or(config.base.gguf);
        config.dataset.folder = self.dataset.clone().or(config.dataset.folder);
        config.dataset.fresh |= self.fresh_dataset || self.common.choice.is_given();
        config.adapter = self.adapter.clone().or(config.adapter);
        config.train.max_steps = self.max_steps.or(config.train.max_steps);
        config.gguf.quantisation = self.quantisation.unwrap_or(config.gguf.quantisation);
        config.install.lm_studio = self.lm_studio_dir.clone().or(config.install.lm_studio);
        if let Some(seed) = self.common.choice.seed() {
            config.train.seed = seed;
        }
        config.check()?;
        Ok(config)
    }
}

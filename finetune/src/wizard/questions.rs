//! What is asked before a run, in order, and what is to happen then.

use std::path::PathBuf;

use clap::ValueEnum as _;
use finetune::files;
use finetune::gguf::Quantisation;
use finetune::stages::{BaseChoice, Preset, RunConfig};

use super::around::Around;
use super::ask::{Asked, Asker, Left, Likely};
use super::dataset::{self, Filters};
use super::{base, error_text, told};

/// A run that was put together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answers {
    pub(super) preset: Preset,
    pub(super) config: RunConfig,
    pub(super) filters: Filters,
}

#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    Start(Box<Answers>),
    /// The file, and the command that goes on with it.
    Wrote(PathBuf, String),
}

pub(super) const FILE_NAME: &str = "train.toml";

/// Asks until there is a decision. Nothing is written before that but a model that the person has fetched.
pub(super) fn ask(asker: &mut dyn Asker, around: &Around) -> Asked<Decision> {
    loop {
        let answers = answers(asker, around)?;
        if let Some(decision) = decide(asker, around, answers)? {
            return Ok(decision);
        }
    }
}

fn answers(asker: &mut dyn Asker, around: &Around) -> Asked<Answers> {
    let base = base::ask(asker, around)?;
    let (dataset, filters) = dataset::ask(asker, around, &base)?;
    let (preset, mut config) = size(asker, around)?;
    let quantisation = quantisation(asker)?;
    let lm_studio = lm_studio(asker, around)?;
    config.base = BaseChoice { model: base.model, gguf: None };
    config.dataset = dataset;
    config.gguf.quantisation = quantisation;
    config.install.lm_studio = lm_studio;
    config.train.seed = around.seed.unwrap_or(config.train.seed);
    Ok(Answers { preset, config, filters })
}

/// A preset, or what a file says that was written here before.
fn size(asker: &mut dyn Asker, around: &Around) -> Asked<(Preset, RunConfig)> {
    let presets = Preset::value_variants();
    let mut choices: Vec<_> = presets.iter().map(|preset| told::size(*preset)).collect();
    let likely = presets.iter().position(|preset| *preset == Preset::default()).unwrap_or_default();
    let path = around.here.join(FILE_NAME);
    if path.is_file() {
        choices.push(format!("As the {FILE_NAME} here says"));
    }
    loop {
        if let Some(preset) = presets.get(asker.select("How much is trained?", &choices, likely)?) {
            return Ok((*preset, preset.config()));
        }
        match RunConfig::read(&path, Preset::default()) {
            Ok(config) => return Ok((Preset::default(), config)),
            Err(error) => asker.tell(&error_text(&error.into())),
        }
    }
}

fn quantisation(asker: &mut dyn Asker) -> Asked<Quantisation> {
    const FORMS: [(Quantisation, &str); 7] = [
        (Quantisation::Q8_0, "half of f16; what a small model's tool calls still survive"),
        (Quantisation::F16, "nearly exact"),
        (Quantisation::Bf16, "as most bases are published; slow on old processors"),
        (Quantisation::F32, "exact, and twice f16"),
        (Quantisation::Q6K, "smaller than q8_0; whether it still says the same is not checked"),
        (Quantisation::Q5K, "smaller still, for large models"),
        (Quantisation::Q4K, "the smallest, for large models"),
    ];
    let choices = FORMS.map(|(form, meaning)| format!("{}: {meaning}", form.as_str()));
    Ok(FORMS[asker.select("In which form is the file?", &choices, 0)?].0)
}

/// Nothing stands for the usual folder.
fn lm_studio(asker: &mut dyn Asker, around: &Around) -> Asked<Option<PathBuf>> {
    let known: Vec<_> = around.named_lm_studio.iter().chain(&around.usual_lm_studio).cloned().collect();
    let mut choices: Vec<_> = known.iter().map(|folder| told::lm_studio_folder(folder)).collect();
    choices.push("Another folder".to_owned());
    loop {
        let place = asker.select("Where do LM Studio's models lie?", &choices, 0)?;
        if let Some(folder) = known.get(place) {
            let is_usual = Some(folder) == around.usual_lm_studio.as_ref();
            return Ok((!is_usual).then(|| folder.clone()));
        }
        let typed = asker.input("Which folder?")?;
        if typed.is_empty() {
            continue;
        }
        let folder = around.typed(&typed);
        if folder.exists() && !folder.is_dir() {
            asker.tell(&format!("`{}` is a file", folder.display()));
            continue;
        }
        return Ok(Some(folder));
    }
}

/// Nothing if all is to be asked again.
fn decide(asker: &mut dyn Asker, around: &Around, answers: Answers) -> Asked<Option<Decision>> {
    asker.tell(&told::summary(&answers, around));
    let choices = [
        "Start; you are asked again before training and installing".to_owned(),
        format!("Write {FILE_NAME} and stop"),
        "Answer again".to_owned(),
        "Leave".to_owned(),
    ];
    loop {
        match asker.select("What now?", &choices, 0)? {
            0 => return Ok(Some(Decision::Start(Box::new(answers)))),
            1 => {
                if let Some(decision) = write(asker, around, &answers)? {
                    return Ok(Some(decision));
                }
            }
            2 => return Ok(None),
            _ => return Err(Left),
        }
    }
}

fn write(asker: &mut dyn Asker, around: &Around, answers: &Answers) -> Asked<Option<Decision>> {
    let path = around.here.join(FILE_NAME);
    if path.exists() && !asker.confirm(&format!("Replace the {FILE_NAME} that is there?"), Likely::No)? {
        return Ok(None);
    }
    let command = told::command(answers, around);
    let written = toml::to_string(&answers.config)
        .map_err(anyhow::Error::from)
        .and_then(|text| Ok(files::write(&path, format!("# {command}\n\n{text}").as_bytes())?));
    match written {
        Ok(()) => Ok(Some(Decision::Wrote(path, command))),
        Err(error) => {
            asker.tell(&error_text(&error.context(format!("writing `{}`", path.display()))));
            Ok(None)
        }
    }
}

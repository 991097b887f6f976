//! Which dataset: the latest that fits the base, or a new one of some of the journal.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use chrono::{DateTime, Local};
use finetune::dataset::audit::Audit;
use finetune::dataset::{self, Manifest};
use finetune::stages::DatasetChoice;

use super::around::Around;
use super::ask::{Asked, Asker, Likely};
use super::base::ChosenBase;
use super::error_text;

/// What of the journal becomes a new dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filters {
    /// All, if none is named.
    pub(super) projects: Vec<String>,
    pub(super) only_successful: bool,
}

/// A dataset as it is offered.
struct Offered {
    folder: PathBuf,
    manifest: Manifest,
    written: String,
}

pub(super) fn ask(asker: &mut dyn Asker, around: &Around, base: &ChosenBase) -> Asked<(DatasetChoice, Filters)> {
    let family = base.base.family.as_str();
    let offered = match latest(&around.datasets.join(format!("{family}_tools"))) {
        Ok(Some(offered)) if fits(&offered.manifest, base) => offered,
        Ok(Some(offered)) => {
            let folder = offered.folder.display();
            asker.tell(&format!(
                "The dataset in {folder} was made with another tokenizer or template; a new one is made."
            ));
            return new(asker, around);
        }
        Ok(None) => {
            asker.tell(&format!("There is no dataset for a {family} yet; one is made of the journal."));
            return new(asker, around);
        }
        Err(error) => {
            asker.tell(&error_text(&error));
            asker.tell("A new dataset is made of the journal.");
            return new(asker, around);
        }
    };
    let choices = [offered.described(), "A new one of the journal".to_owned()];
    loop {
        if asker.select("Which dataset?", &choices, usize::from(!offered.manifest.audit_passed))? == 1 {
            return new(asker, around);
        }
        if offered.manifest.audit_passed || is_taken_all_the_same(asker, &offered)? {
            let chosen = DatasetChoice { folder: Some(offered.folder), fresh: false };
            return Ok((chosen, Filters::default()));
        }
    }
}

fn latest(family: &Path) -> Result<Option<Offered>> {
    let Ok(folder) = dataset::latest(family) else { return Ok(None) };
    let manifest = Manifest::read(&folder)?;
    let file = folder.join(dataset::MANIFEST_FILE);
    let written = std::fs::metadata(&file).and_then(|file| file.modified());
    let written: DateTime<Local> = written.with_context(|| format!("reading `{}`", file.display()))?.into();
    Ok(Some(Offered { folder, manifest, written: written.format("%Y-%m-%d").to_string() }))
}

fn fits(manifest: &Manifest, base: &ChosenBase) -> bool {
    let base = &base.base;
    let made_with = (&manifest.tokenizer_sha256, &manifest.template_sha256);
    manifest.family == base.family && made_with == (&base.tokenizer_sha256, &base.template_sha256)
}

impl Offered {
    fn described(&self) -> String {
        let rows: u64 = self.manifest.splits.values().sum();
        let verdict = if self.manifest.audit_passed { "passed its audit" } else { "FAILED its audit" };
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        format!("The latest, {name} of {}: {rows} rows, {verdict}", self.written)
    }

    /// What the audit found wrong.
    fn failures(&self) -> Result<Vec<String>> {
        let file = self.folder.join("audit.json");
        let text = std::fs::read(&file).with_context(|| format!("reading `{}`", file.display()))?;
        let audit: Audit = serde_json::from_slice(&text).with_context(|| format!("reading `{}`", file.display()))?;
        let failed = audit.checks.iter().filter(|check| !check.passed);
        Ok(failed.map(|check| format!("{} is {:.4}, must be {}", check.name, check.value, check.limit)).collect())
    }
}

fn is_taken_all_the_same(asker: &mut dyn Asker, offered: &Offered) -> Asked<bool> {
    asker.tell("This dataset failed its audit:");
    match offered.failures() {
        Ok(failures) => failures.iter().for_each(|failure| asker.tell(&format!("  {failure}"))),
        Err(error) => asker.tell(&error_text(&error)),
    }
    asker.tell(&format!("{} names the rows.", offered.folder.join("audit.md").display()));
    asker.confirm("Train on it all the same?", Likely::No)
}

fn new(asker: &mut dyn Asker, around: &Around) -> Asked<(DatasetChoice, Filters)> {
    let projects = match &around.projects {
        Some(projects) if projects.is_empty() => {
            asker.tell("The journal has no prompt with a tool call yet, so there is nothing to make rows of.");
            Vec::new()
        }
        Some(projects) => chosen(asker, projects)?,
        None => {
            asker.tell("The database does not answer, so that projects cannot be listed; `cargo xtask up` starts it.");
            typed(asker)?
        }
    };
    let turns = ["All turns; a call that failed is shown and not learnt", "Only turns in which every call worked"];
    let only_successful = asker.select("Which turns?", &turns.map(str::to_owned), 0)? == 1;
    Ok((DatasetChoice { folder: None, fresh: true }, Filters { projects, only_successful }))
}

fn chosen(asker: &mut dyn Asker, projects: &[super::around::Project]) -> Asked<Vec<String>> {
    let prompts: i64 = projects.iter().map(|project| project.prompts).sum();
    let choices = [format!("All: {prompts} prompts in {}", counted(projects.len())), "Only some".to_owned()];
    loop {
        if asker.select("Which projects?", &choices, 0)? == 0 {
            return Ok(Vec::new());
        }
        let names: Vec<_> =
            projects.iter().map(|project| format!("{} ({} prompts)", project.name, project.prompts)).collect();
        let some = asker.select_some("Which ones?", &names)?;
        if some.is_empty() {
            asker.tell("None was chosen.");
            continue;
        }
        return Ok(some.into_iter().map(|place| projects[place].name.clone()).collect());
    }
}

fn counted(projects: usize) -> String {
    if projects == 1 { "one project".to_owned() } else { format!("{projects} projects") }
}

fn typed(asker: &mut dyn Asker) -> Asked<Vec<String>> {
    loop {
        let choices = ["All".to_owned(), "Only some".to_owned()];
        if asker.select("Which projects?", &choices, 0)? == 0 {
            return Ok(Vec::new());
        }
        let line = asker.input("Their names, with commas between them")?;
        let names: Vec<_> = line.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if !names.is_empty() {
            return Ok(names);
        }
    }
}

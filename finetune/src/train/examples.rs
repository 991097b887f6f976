//! The samples of a dataset as token ids.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::dataset::render::{Base, RenderError, Sample};
use crate::dataset::{self, Split};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The id of the row that it is a sample of.
    pub row: String,
    pub ids: Vec<u32>,
    pub carries_loss: Vec<bool>,
}

#[derive(Debug, thiserror::Error)]
pub enum ExamplesError {
    #[error("`{path}` cannot be read")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("line {line} of `{path}` is no rendered sample")]
    Invalid { path: PathBuf, line: usize, source: serde_json::Error },
    #[error("row {row} cannot be tokenised")]
    Tokens { row: String, source: RenderError },
    #[error(
        "row {row} is {found} tokens, and was {expected} when the dataset was made: it was made for another tokenizer"
    )]
    Tokenizer { row: String, found: usize, expected: usize },
}

#[derive(Deserialize)]
struct Line {
    row: String,
    text: String,
    trained: Vec<[usize; 2]>,
    tokens: usize,
}

/// Reads the rendered samples of a split.
pub fn read(folder: &Path, split: Split, base: &Base) -> Result<Vec<Example>, ExamplesError> {
    let path = folder.join(dataset::rendered(split));
    let unreadable = |source| ExamplesError::Unreadable { path: path.clone(), source };
    let mut examples = Vec::new();
    for (number, line) in BufReader::new(File::open(&path).map_err(unreadable)?).lines().enumerate() {
        let line = line.map_err(unreadable)?;
        let line: Line = serde_json::from_str(&line).map_err(|source| ExamplesError::Invalid {
            path: path.clone(),
            line: number + 1,
            source,
        })?;
        examples.push(example(line, base)?);
    }
    Ok(examples)
}

fn example(line: Line, base: &Base) -> Result<Example, ExamplesError> {
    let trained = line.trained.iter().map(|[start, end]| *start..*end).collect();
    let sample = Sample::of(line.text, trained, base)
        .map_err(|source| ExamplesError::Tokens { row: line.row.clone(), source })?;
    if sample.ids.len() != line.tokens {
        return Err(ExamplesError::Tokenizer { row: line.row, found: sample.ids.len(), expected: line.tokens });
    }
    Ok(Example { row: line.row, ids: sample.ids, carries_loss: sample.carries_loss })
}

//! Whether a GGUF is what engines need, and what the folder said that it was made of: one check after another, each with what was found.

mod structure;
#[cfg(test)]
mod tests;
mod tokenizer;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Gguf, GgufError, Value, sha256_file};
use crate::dataset::render;
use crate::files;

pub(super) use structure::{config_of, known};

#[derive(Debug, Clone, Serialize)]
pub struct Verified {
    pub path: PathBuf,
    pub checks: Vec<Check>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub passed: bool,
    /// What was found; of a check that failed, also what was expected.
    pub value: String,
}

impl Verified {
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }

    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.passed)
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.path.display())?;
        for Check { name, passed, value } in &self.checks {
            write!(to, "\n  {} {name}: {value}", if *passed { "ok    " } else { "FAILED" })?;
        }
        Ok(())
    }
}

/// Opens a file and checks it; where the folder is given that it was made of, also against that. A file that cannot be opened is an error,
/// one that says something wrong is not: the checks tell.
pub fn verify(path: &Path, against: Option<&Path>) -> Result<Verified, GgufError> {
    let gguf = Gguf::open(path)?;
    let mut checks = vec![
        check("version", Ok(gguf.header.version.to_string())),
        check("keys", structure::keys(&gguf)),
        check("layout", structure::layout(&gguf)),
        check("tensors", structure::tensors(&gguf)),
        check("numbers", structure::numbers(&gguf)?),
        check("vocabulary", structure::vocabulary(&gguf)),
        check("template", template(&gguf, against)?),
        check("end of turn", end_of_turn(&gguf)),
        check("no BOS", no_bos(&gguf)),
    ];
    if let Some(folder) = against {
        checks.push(check("tokens", tokenizer::agrees(&gguf, folder)?));
    }
    if let Some(outcome) = sha256(path)? {
        checks.push(check("sha256", outcome));
    }
    Ok(Verified { path: path.to_owned(), checks })
}

/// What was found, or why that is wrong.
type Outcome = Result<String, String>;

fn check(name: &'static str, outcome: Outcome) -> Check {
    let passed = outcome.is_ok();
    Check { name, passed, value: outcome.unwrap_or_else(|why| why) }
}

fn chat_template(gguf: &Gguf) -> Option<&str> {
    gguf.value("tokenizer.chat_template").and_then(Value::as_str)
}

fn is_chatml(gguf: &Gguf) -> bool {
    chat_template(gguf).is_some_and(|template| template.contains("<|im_start|>"))
}

fn template(gguf: &Gguf, against: Option<&Path>) -> Result<Outcome, GgufError> {
    let Some(template) = chat_template(gguf).filter(|template| !template.is_empty()) else {
        return Ok(Err("there is none".into()));
    };
    let Some(folder) = against else { return Ok(Ok(format!("{} bytes", template.len()))) };
    let expected = render::template_of(folder)?;
    Ok(if template == expected {
        Ok(format!("{} bytes, the folder's own", template.len()))
    } else {
        let same = template.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
        Err(format!("{} bytes; the folder's {} differ from byte {same} on", template.len(), expected.len()))
    })
}

fn end_of_turn(gguf: &Gguf) -> Outcome {
    let id = gguf.of_tokenizer("eos_token_id").and_then(Value::as_u64).ok_or("no eos_token_id")?;
    let texts = gguf.texts("tokens").unwrap_or_default();
    let text = texts.get(id as usize).ok_or_else(|| format!("{id} is no token"))?;
    if is_chatml(gguf) && *text != "<|im_end|>" {
        return Err(format!("{id} {text}; the template ends turns with <|im_end|>"));
    }
    Ok(format!("{id} {text}"))
}

/// A template of ChatML begins with the first turn. Engines add nothing to byte-level vocabularies unless told.
fn no_bos(gguf: &Gguf) -> Outcome {
    match gguf.of_tokenizer("add_bos_token").and_then(Value::as_bool) {
        Some(true) if is_chatml(gguf) => Err("add_bos_token is true, and the template begins with a turn".into()),
        Some(adds) => Ok(format!("add_bos_token is {adds}")),
        None => Ok("add_bos_token is not said".into()),
    }
}

/// Nothing where no hash stands beside the file.
fn sha256(path: &Path) -> Result<Option<Outcome>, GgufError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| GgufError::Unreadable { path, source }
    };
    let beside = sha256_file(path);
    if !beside.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&beside).map_err(unreadable(&beside))?;
    let expected = text.split_whitespace().next().unwrap_or_default();
    let found = files::sha256(path).map_err(unreadable(path))?;
    Ok(Some(if found == expected { Ok(found) } else { Err(format!("{found}; {expected} stands beside it")) }))
}

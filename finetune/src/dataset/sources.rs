//! Whose words are trained on: the licence class of each source model. `sources.toml` has what is known; a person's file of the
//! same form goes before it.

use std::path::Path;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

const BUILT_IN: &str = include_str!("sources.toml");

/// What the terms of a model say about training on what it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Licence {
    Open,
    Restricted,
    Unknown,
}

impl Licence {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Restricted => "restricted",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Debug)]
pub struct Sources(Vec<(Regex, Source)>);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pattern: String,
    pub provider: String,
    pub licence: Licence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    source: Vec<Source>,
}

#[derive(Debug, thiserror::Error)]
pub enum SourcesError {
    #[error("`{path}` cannot be read")]
    Unreadable { path: String, source: std::io::Error },
    #[error("`{path}` is not a list of sources")]
    Invalid { path: String, source: Box<toml::de::Error> },
    #[error("the pattern `{pattern}` in `{path}` is no regular expression")]
    Pattern { path: String, pattern: String, source: Box<regex::Error> },
}

impl Sources {
    /// What is known, after what the person's file says, if there is one.
    pub fn load(own: Option<&Path>) -> Result<Self, SourcesError> {
        let mut sources = Vec::new();
        if let Some(own) = own {
            let path = own.display().to_string();
            let text = std::fs::read_to_string(own)
                .map_err(|source| SourcesError::Unreadable { path: path.clone(), source })?;
            sources.extend(parse(&text, &path)?);
        }
        sources.extend(parse(BUILT_IN, "the built-in list")?);
        Ok(Self(sources))
    }

    /// Who made the model, if that is known.
    pub fn find(&self, model: &str) -> Option<&Source> {
        self.0.iter().find(|(pattern, _)| pattern.is_match(model)).map(|(_, source)| source)
    }

    pub fn licence(&self, model: Option<&str>) -> Licence {
        model.and_then(|model| self.find(model)).map_or(Licence::Unknown, |source| source.licence)
    }
}

fn parse(text: &str, path: &str) -> Result<Vec<(Regex, Source)>, SourcesError> {
    let file: File = toml::from_str(text)
        .map_err(|source| SourcesError::Invalid { path: path.to_owned(), source: Box::new(source) })?;
    let compile = |source: Source| {
        let pattern = RegexBuilder::new(&source.pattern).case_insensitive(true).build().map_err(|error| {
            SourcesError::Pattern { path: path.to_owned(), pattern: source.pattern.clone(), source: Box::new(error) }
        })?;
        Ok((pattern, source))
    };
    file.source.into_iter().map(compile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(model: &str, expected: Licence) {
        let sources = Sources::load(None).unwrap();
        assert_eq!(sources.licence(Some(model)), expected, "{model}");
    }

    #[test]
    fn knows_whose_terms_restrict_training() {
        check("claude-sonnet-4-5", Licence::Restricted);
        check("us.anthropic.claude-opus-4", Licence::Restricted);
        check("gpt-5.2-codex", Licence::Restricted);
        check("o4-mini", Licence::Restricted);
        check("gemini-3-pro", Licence::Restricted);
    }

    #[test]
    fn knows_what_is_open() {
        check("Qwen3-Coder-30B", Licence::Open);
        check("openai/gpt-oss-20b", Licence::Open);
        check("deepseek-v3.2", Licence::Open);
    }

    #[test]
    fn takes_nothing_for_granted() {
        check("my-model", Licence::Unknown);
        check("olmo", Licence::Unknown);
        assert_eq!(Sources::load(None).unwrap().licence(None), Licence::Unknown);
    }

    #[test]
    fn lets_a_person_say_it_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sources.toml");
        let own = "[[source]]\npattern = '^my-model$'\nprovider = \"me\"\nlicence = \"open\"\n";
        std::fs::write(&path, own).unwrap();
        let sources = Sources::load(Some(&path)).unwrap();
        assert_eq!(sources.licence(Some("my-model")), Licence::Open);
        assert_eq!(sources.licence(Some("claude-x")), Licence::Restricted);
        std::fs::write(&path, "[[source]]\npattern = '('\nprovider = \"me\"\nlicence = \"open\"\n").unwrap();
        assert!(Sources::load(Some(&path)).unwrap_err().to_string().contains("no regular expression"));
    }
}

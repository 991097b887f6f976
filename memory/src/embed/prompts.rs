//! What a model wants to read before a text: many are trained with one prefix for questions and another for documents, and their cards say
//! which. Models in the form of sentence-transformers bring them in a file.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use super::{EmbedError, PROMPTS_FILE};

/// The prefixes; empty where the model wants none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompts {
    pub(super) query: String,
    pub(super) document: String,
}

impl Prompts {
    /// Reads the file in the model's folder; a model without one wants none.
    pub(super) fn of(folder: &Path) -> Result<Self, EmbedError> {
        #[derive(Deserialize)]
        struct File {
            #[serde(default)]
            prompts: HashMap<String, String>,
        }
        let path = folder.join(PROMPTS_FILE);
        let content = match std::fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(EmbedError::Read { path, source: source.into() }),
        };
        let File { prompts } = serde_json::from_slice(&content)
            .map_err(|error| EmbedError::Load(format!("`{}` cannot be understood: {error}", path.display())))?;
        // The same thing by the names that cards give it.
        let prompt = |names: &[&str]| names.iter().find_map(|name| prompts.get(*name)).cloned().unwrap_or_default();
        Ok(Self {
            query: prompt(&["query", "search_query", "Retrieval-query"]),
            document: prompt(&["document", "passage", "search_document", "Retrieval-document"]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &str) -> Result<Prompts, EmbedError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(PROMPTS_FILE), content).unwrap();
        Prompts::of(folder.path())
    }

    #[test]
    fn reads_the_prefixes_by_any_of_their_names() {
        let prompts = |query: &str, document: &str| Prompts { query: query.into(), document: document.into() };
        let e5 = of(r#"{"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": null}"#);
        assert_eq!(e5.unwrap(), prompts("query: ", "passage: "));
        assert_eq!(of(r#"{"prompts": {"query": "Search: "}}"#).unwrap(), prompts("Search: ", ""));
        assert_eq!(of(r#"{"__version__": {}}"#).unwrap(), Prompts::default());
    }

    #[test]
    fn a_model_without_the_file_wants_none_and_a_broken_file_is_an_error() {
        assert_eq!(Prompts::of(tempfile::tempdir().unwrap().path()).unwrap(), Prompts::default());
        assert!(of("{").unwrap_err().to_string().contains(PROMPTS_FILE));
    }
}

//! A person who knows beforehand what to answer, for tests.

use std::collections::VecDeque;

use super::ask::{Asked, Asker, Left, Likely};

#[derive(Debug, Clone)]
pub(super) enum Say {
    /// Enter and nothing else.
    Enter,
    /// The choice that has this in it.
    Pick(&'static str),
    PickSome(Vec<&'static str>),
    Type(String),
    Yes,
    No,
    Leave,
}

pub(super) struct ScriptedAsker {
    says: VecDeque<Say>,
    /// Every question with its choices, and all that was told.
    pub(super) shown: Vec<String>,
}

impl ScriptedAsker {
    pub(super) fn new(says: impl IntoIterator<Item = Say>) -> Self {
        Self { says: says.into_iter().collect(), shown: Vec::new() }
    }

    pub(super) fn has_shown(&self, text: &str) -> bool {
        self.shown.iter().any(|shown| shown.contains(text))
    }

    pub(super) fn is_through(&self) -> bool {
        self.says.is_empty()
    }

    fn next(&mut self, question: &str) -> Say {
        self.shown.push(question.to_owned());
        self.says
            .pop_front()
            .unwrap_or_else(|| panic!("nobody knows an answer to {question:?}; shown: {:#?}", self.shown))
    }
}

fn find(choices: &[String], part: &str) -> usize {
    let found = choices.iter().position(|choice| choice.contains(part));
    found.unwrap_or_else(|| panic!("{part:?} is not among {choices:#?}"))
}

impl Asker for ScriptedAsker {
    fn select(&mut self, question: &str, choices: &[String], likely: usize) -> Asked<usize> {
        assert!(likely < choices.len(), "{question}");
        match self.next(&format!("{question}\n{}", choices.join("\n"))) {
            Say::Enter => Ok(likely),
            Say::Pick(part) => Ok(find(choices, part)),
            Say::Leave => Err(Left),
            other => panic!("{other:?} is no answer to {question}"),
        }
    }

    fn select_some(&mut self, question: &str, choices: &[String]) -> Asked<Vec<usize>> {
        match self.next(&format!("{question}\n{}", choices.join("\n"))) {
            Say::Enter => Ok(Vec::new()),
            Say::PickSome(parts) => Ok(parts.iter().map(|part| find(choices, part)).collect()),
            Say::Leave => Err(Left),
            other => panic!("{other:?} is no answer to {question}"),
        }
    }

    fn input(&mut self, question: &str) -> Asked<String> {
        match self.next(question) {
            Say::Enter => Ok(String::new()),
            Say::Type(text) => Ok(text),
            Say::Leave => Err(Left),
            other => panic!("{other:?} is no answer to {question}"),
        }
    }

    fn confirm(&mut self, question: &str, likely: Likely) -> Asked<bool> {
        match self.next(question) {
            Say::Enter => Ok(likely == Likely::Yes),
            Say::Yes => Ok(true),
            Say::No => Ok(false),
            Say::Leave => Err(Left),
            other => panic!("{other:?} is no answer to {question}"),
        }
    }

    fn tell(&mut self, text: &str) {
        self.shown.push(text.to_owned());
    }
}

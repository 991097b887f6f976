//! Where a transcript's events happened: a folder, asked once, and whether anything that was done there is wanted.

use std::collections::HashMap;
use std::path::Path;

use crate::project::{Checkout, GitCheckout, inspect};

/// Why events of a folder are not wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwanted {
    Excluded,
    OtherProject,
}

impl Unwanted {
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Excluded => "excluded folder",
            Self::OtherProject => "other project",
        }
    }
}

/// What an agent noted of the repository itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) remote_url: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) head: Option<String>,
}

type Judge = dyn Fn(&Checkout) -> Result<(), Unwanted> + Send;

/// Folders that were asked already.
pub struct Places {
    inspect: Box<dyn Fn(&Path) -> Checkout + Send>,
    judge: Box<Judge>,
    known: HashMap<String, Result<Checkout, Unwanted>>,
}

impl Places {
    /// Places as they are on this machine; `judge` says whether what was done there is wanted.
    pub fn of_this_machine(judge: impl Fn(&Checkout) -> Result<(), Unwanted> + Send + 'static) -> Self {
        Self::new(inspect, judge)
    }

    pub fn new(
        inspect: impl Fn(&Path) -> Checkout + Send + 'static,
        judge: impl Fn(&Checkout) -> Result<(), Unwanted> + Send + 'static,
    ) -> Self {
        Self { inspect: Box::new(inspect), judge: Box::new(judge), known: HashMap::new() }
    }

    /// The checkout around a folder, with what the agent noted of it where git no longer knows.
    pub(super) fn checkout(&mut self, folder: Option<&str>, noted: &Noted) -> Result<Checkout, Unwanted> {
        let folder = folder.unwrap_or_default();
        if !self.known.contains_key(folder) {
            let checkout = self.ask(folder, noted);
            let judged = (self.judge)(&checkout).map(|()| checkout);
            self.known.insert(folder.to_owned(), judged);
        }
        let mut checkout = self.known[folder].clone()?;
        if let Some(git) = &mut checkout.git {
            git.branch.clone_from(&noted.branch);
            git.head.clone_from(&noted.head);
        }
        Ok(checkout)
    }

    fn ask(&self, folder: &str, noted: &Noted) -> Checkout {
        if folder.is_empty() {
            return Checkout::default();
        }
        let mut checkout = (self.inspect)(Path::new(folder));
        if checkout.git.is_none() && noted.remote_url.is_some() {
            checkout.git = Some(GitCheckout {
                root: folder.to_owned(),
                common_dir: format!("{}/.git", folder.trim_end_matches('/')),
                remote_url: noted.remote_url.clone(),
                ..GitCheckout::default()
            });
        }
        checkout
    }
}

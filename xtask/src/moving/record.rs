//! What moves have left behind, in `moved.json` of the home: databases that are kept until a person has them removed, and a move that
//! was killed on its way.

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use memory::home::Home;
use serde::{Deserialize, Serialize};

use super::place::Leaving;
use crate::files;
use crate::install::layout::moved_file;
use crate::runtime::{Installation, RuntimeKind};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Oldest first.
    pub kept: Vec<Kept>,
    pub under_way: Option<UnderWay>,
}

/// A database that a move has left as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub runtime: RuntimeKind,
    /// Where it is, without user and password.
    pub database: String,
    pub moved_at: DateTime<Utc>,
}

/// A move that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnderWay {
    pub from: Installation,
    pub to: Installation,
    /// What becomes of the other database where nothing comes of it.
    pub leaving: Leaving,
}

impl Record {
    pub fn read(home: &Home) -> Result<Self> {
        let path = moved_file(home);
        let Some(text) = files::read_if_there(&path)? else { return Ok(Self::default()) };
        serde_json::from_str(&text).with_context(|| format!("cannot understand `{}`", path.display()))
    }

    /// Without anything to remember there is no file.
    pub fn keep(&self, home: &Home) -> Result<()> {
        if *self == Self::default() {
            return files::remove(&moved_file(home)).map(drop);
        }
        let text = serde_json::to_string(self).context("cannot write what is moved")?;
        files::write_private(&moved_file(home), &format!("{text}\n"))
    }

    /// The former place is kept; the new one is in use.
    pub fn moved(&mut self, from: &Installation, to: &Installation) {
        self.under_way = None;
        self.kept.retain(|kept| !kept.is_at(to) && !kept.is_at(from));
        self.kept.push(Kept { runtime: from.runtime, database: from.database.clone(), moved_at: Utc::now() });
    }
}

impl Kept {
    /// There is one database of ours in each runtime; of the user's own there may be several.
    fn is_at(&self, installation: &Installation) -> bool {
        self.runtime == installation.runtime
            && (self.runtime != RuntimeKind::External || self.database == installation.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installation(runtime: RuntimeKind, database: &str) -> Installation {
        Installation {
            version: "0.1.0".into(),
            runtime,
            address: "127.0.0.1:9".parse().unwrap(),
            database: database.into(),
            embedding_model: "m".into(),
            installed_at: DateTime::UNIX_EPOCH,
            folder: None,
        }
    }

    #[test]
    fn what_is_in_use_is_not_among_what_is_kept() {
        let (embedded, one, other) = (
            installation(RuntimeKind::Embedded, "127.0.0.1:5433/d"),
            installation(RuntimeKind::External, "h/one"),
            installation(RuntimeKind::External, "h/other"),
        );
        let mut record = Record::default();
        record.moved(&embedded, &one);
        record.moved(&one, &other);
        record.moved(&other, &embedded);
        let kept: Vec<_> = record.kept.iter().map(|kept| kept.database.as_str()).collect();
        assert_eq!(kept, ["h/one", "h/other"]);

        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        record.keep(&home).unwrap();
        assert_eq!(Record::read(&home).unwrap(), record);
        Record::default().keep(&home).unwrap();
        assert!(!moved_file(&home).exists());
    }
}

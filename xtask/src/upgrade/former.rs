//! What ran before an upgrade, kept in `bin/former` until what is new has proven that it runs. There is never more than one set: one that
//! is there already is of programs that ran, which those in `bin` since then never did, so it stays.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use memory::home::Home;
use serde::{Deserialize, Serialize};

use crate::files;
use crate::install::layout::PROGRAMS;
use crate::runtime::Installation;

/// A file beside the programs: what was installed when they ran.
const RECORD: &str = "upgrade.json";

/// What the programs from before had around them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    pub installation: Installation,
    /// The schema that they worked on; unknown where the database did not answer.
    pub schema_version: Option<i64>,
    /// The backup that holds that schema, where a newer one was about to come.
    pub backup: Option<PathBuf>,
    /// The server's image by its name, where it runs in a container.
    pub image: Option<String>,
    /// The programs that there were: an older version may have had fewer.
    #[serde(default)]
    programs: Vec<String>,
}

impl Former {
    pub fn of(installation: Installation, schema_version: Option<i64>, backup: Option<PathBuf>) -> Self {
        Self { installation, schema_version, backup, image: None, programs: Vec::new() }
    }

    /// What is kept, if anything is.
    pub fn read(home: &Home) -> Result<Option<Self>> {
        let path = folder(home).join(RECORD);
        let Some(text) = files::read_if_there(&path)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).with_context(|| format!("cannot understand `{}`", path.display()))
    }

    /// Keeps the programs in `bin`, all or none. They stay where they are too, and take no room until others take their names.
    pub fn keep(mut self, home: &Home) -> Result<Self> {
        let (folder, unfinished) = (folder(home), home.bin().join(".tmp-former"));
        files::remove(&unfinished)?;
        files::remove(&folder)?;
        files::create_private_folder(&unfinished)?;
        for program in PROGRAMS {
            let from = home.program(program.installed);
            if from.is_file() {
                // A running server is found by its program's path, which a program that is moved away would take along.
                link(&from, &unfinished)?;
                self.programs.push(program.installed.to_owned());
            }
        }
        let text = serde_json::to_string(&self).context("cannot write what is kept")?;
        files::write_private(&unfinished.join(RECORD), &format!("{text}\n"))?;
        std::fs::rename(&unfinished, &folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
        Ok(self)
    }

    /// The kept program of that name.
    pub fn program(&self, home: &Home, name: &str) -> PathBuf {
        folder(home).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// Whether the programs in `bin` are others.
    pub fn differs(&self, home: &Home) -> Result<bool> {
        for program in PROGRAMS {
            let (kept, place) = (self.program(home, program.installed), home.program(program.installed));
            let is_same = match (kept.is_file(), place.is_file()) {
                (true, true) => files::is_copy(&place, &kept)?,
                (kept, placed) => kept == placed,
            };
            if !is_same {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives the programs their places back. Broken off, it can be done again.
    pub fn put_back(&self, home: &Home) -> Result<()> {
        for program in PROGRAMS {
            let (kept, place) = (self.program(home, program.installed), home.program(program.installed));
            if kept.is_file() {
                std::fs::rename(&kept, &place).with_context(|| format!("cannot put `{}` back", place.display()))?;
            } else if !self.programs.iter().any(|name| name == program.installed) {
                files::remove(&place)?;
            }
        }
        forget(home)
    }
}

/// Removes what is kept.
pub fn forget(home: &Home) -> Result<()> {
    files::remove(&folder(home)).map(drop)
}

fn folder(home: &Home) -> PathBuf {
    home.bin().join("former")
}

fn link(from: &Path, into: &Path) -> Result<()> {
    let to = into.join(from.file_name().context("a program without a name")?);
    std::fs::hard_link(from, &to)
        .or_else(|_| std::fs::copy(from, &to).map(drop))
        .with_context(|| format!("cannot keep `{}`", from.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Mode;
    use crate::runtime::RuntimeKind;

    fn installed(programs: &[&str]) -> (tempfile::TempDir, Home, Former) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        crate::install::layout::create(&home).unwrap();
        for program in programs {
            std::fs::write(home.program(program), "old").unwrap();
        }
        let installation = Installation {
            version: "0.1.0".into(),
            runtime: RuntimeKind::Embedded,
            address: "127.0.0.1:9".parse().unwrap(),
            database: "d".into(),
            embedding_model: "m".into(),
            installed_at: chrono::DateTime::UNIX_EPOCH,
            folder: None,
        };
        (folder, home, Former::of(installation, Some(10), None))
    }

    fn content(home: &Home, name: &str) -> Option<String> {
        files::read_if_there(&home.program(name)).unwrap()
    }

    #[test]
    fn programs_come_back_and_one_that_was_not_there_goes() {
        let (_folder, home, former) = installed(&["agent-memory-server", "agent-memory"]);
        let former = former.keep(&home).unwrap();
        assert_eq!(Former::read(&home).unwrap(), Some(former.clone()));
        for program in ["agent-memory-server", "agent-memory", "agent-memory-finetune"] {
            files::write(&home.program(program), b"new", Mode::Executable).unwrap();
        }
        former.put_back(&home).unwrap();
        assert_eq!(content(&home, "agent-memory-server").as_deref(), Some("old"));
        assert_eq!(content(&home, "agent-memory").as_deref(), Some("old"));
        assert_eq!(content(&home, "agent-memory-finetune"), None);
        assert_eq!(Former::read(&home).unwrap(), None, "nothing piles up");
    }

    #[test]
    fn goes_on_where_a_killed_one_ended() {
        let (_folder, home, former) = installed(&["agent-memory-server", "agent-memory"]);
        let former = former.keep(&home).unwrap();
        std::fs::rename(former.program(&home, "agent-memory"), home.program("agent-memory")).unwrap();
        files::write(&home.program("agent-memory-server"), b"new", Mode::Executable).unwrap();
        Former::read(&home).unwrap().unwrap().put_back(&home).unwrap();
        assert_eq!(content(&home, "agent-memory-server").as_deref(), Some("old"));
        assert_eq!(content(&home, "agent-memory").as_deref(), Some("old"), "it was back already");
    }
}

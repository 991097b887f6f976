//! The process that owns the run's Postgres, and the test process's end of it.
//!
//! A static is never dropped, and a killed process drops nothing at all, so no container may hang on either. The keeper
//! (the program `tests-database`) starts the Postgres, says where it is in one line, and waits for its stdin to close:
//! that happens when the test process is gone, whether it ended, panicked or was killed. Then it removes what it made.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::programs;

/// What the keeper says on stdout once it is ready.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Announcement {
    Ready { url: String, description: String },
    Failed { message: String },
}

/// A running keeper. Dropping it, or dying with it, ends the Postgres.
#[derive(Debug)]
pub struct Keeper {
    url: String,
    description: String,
    /// Its stdin is the line that must not break.
    _process: Child,
}

impl Keeper {
    /// `prefix` begins the names of all databases of this run.
    pub async fn start(prefix: &str) -> Result<Self> {
        let program = programs::own_folder()?.join(format!("tests-database{}", std::env::consts::EXE_SUFFIX));
        let mut command = Command::new(&program);
        command.arg(prefix).stdin(Stdio::piped()).stdout(Stdio::piped());
        // An interrupt from the terminal must reach the tests, not the one who cleans up after them.
        #[cfg(unix)]
        command.process_group(0);
        let mut process = command.spawn().with_context(|| format!("starting `{}`", program.display()))?;
        let stdout = process.stdout.take().context("the database's keeper has no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await.context("listening to the database's keeper")?;
        match serde_json::from_str(&line) {
            Ok(Announcement::Ready { url, description }) => Ok(Self { url, description, _process: process }),
            Ok(Announcement::Failed { message }) => bail!("{message}"),
            Err(_) => bail!("the database's keeper ended without a word"),
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn description(&self) -> &str {
        &self.description
    }
}

//! The process that is measured: it does one thing, and prints how long that took and how much memory it ever had.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use memory::event::Agent;
use memory::home::Home;
use memory::process;
use memory::project::{Checkout, ProjectPolicy};
use memory::store::ProjectCache;
use memory::transcripts::{self, Places, TranscriptFile};

use super::{Measured, generate};
use crate::cli::{BackfillWork, BackfillWorkerArgs};
use crate::journal;
use crate::output::Printer;

pub(crate) async fn run(arguments: &BackfillWorkerArgs, home: &Home, printer: &Printer) -> Result<()> {
    let files = || files_below(&arguments.path);
    let begun = Instant::now();
    let (bytes, count) = match arguments.work {
        BackfillWork::WriteMany => {
            let written = generate::many(&arguments.path, arguments.bytes)?;
            (arguments.bytes, written.len() as u64)
        }
        BackfillWork::WriteOne => (generate::one(&arguments.path, "claude", 1, arguments.bytes)?, 1),
        BackfillWork::Parse => parse(&files()?)?,
        BackfillWork::Read => read(&files()?)?,
        BackfillWork::Store => store(&files()?, home).await?,
    };
    let measured = Measured { seconds: begun.elapsed().as_secs_f64(), bytes, count, peak_bytes: process::peak_bytes() };
    printer.data(serde_json::to_string(&measured).context("cannot write the measurement as JSON")?);
    Ok(())
}

/// All files below a folder, or the file itself.
pub(super) fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list `{}`", folder.display()))? {
            let path = entry.context("cannot list a folder")?.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

fn parse(files: &[PathBuf]) -> Result<(u64, u64)> {
    let (mut bytes, mut lines) = (0, 0);
    let mut line = Vec::new();
    for path in files {
        let file = File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let mut source = BufReader::with_capacity(256 * 1024, file);
        loop {
            line.clear();
            let read =
                source.read_until(b'\n', &mut line).with_context(|| format!("cannot read `{}`", path.display()))?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            lines += 1;
            let value: serde_json::Value = serde_json::from_slice(&line).context("a line that is no JSON")?;
            std::hint::black_box(value);
        }
    }
    Ok((bytes, lines))
}

fn context(agent: Agent) -> transcripts::Context {
    transcripts::Context::new(agent, Places::new(inspected, |_| Ok(())))
}

/// A folder of which nothing else is known.
pub(crate) fn inspected(folder: &Path) -> Checkout {
    Checkout { folder: Some(folder.display().to_string()), git: None }
}

fn transcript(path: &Path) -> Result<(Agent, TranscriptFile)> {
    let agent = transcripts::written_by(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let agent = agent.with_context(|| format!("`{}` is no transcript", path.display()))?;
    let file = transcripts::of_path(agent, path).with_context(|| format!("`{}` is no file", path.display()))?;
    Ok((agent, file))
}

fn read(files: &[PathBuf]) -> Result<(u64, u64)> {
    let (mut bytes, mut events) = (0, 0);
    for path in files {
        let (agent, file) = transcript(path)?;
        let report = transcripts::read(&file, &mut context(agent), &mut |event| {
            std::hint::black_box(event);
            events += 1;
            ControlFlow::Continue(())
        });
        bytes += report.with_context(|| format!("cannot read `{}`", path.display()))?.bytes;
    }
    Ok((bytes, events))
}

async fn store(files: &[PathBuf], home: &Home) -> Result<(u64, u64)> {
    let db = journal::open(home).await?;
    let mut projects = ProjectCache::new(ProjectPolicy::default());
    let (mut bytes, mut events) = (0, 0);
    for path in files {
        let (agent, file) = transcript(path)?;
        let (_, taken) = transcripts::take_in(&db, &file, context(agent), &mut projects).await;
        let taken = taken.with_context(|| format!("cannot store `{}`", path.display()))?;
        bytes += taken.read.bytes;
        events += taken.inserted.total();
    }
    db.close().await;
    Ok((bytes, events))
}

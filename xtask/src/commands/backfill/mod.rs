//! `backfill`: reads what agents recorded by themselves into the journal, as a run that can be taken back.

mod import;
mod outcome;
mod runs;
mod sources;
mod wanted;

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use memory::home::Home;
use memory::store::{self, Db, ProjectCache, RunEnd};
use memory::transcripts::{self, TakenIn};

use crate::cli::BackfillArgs;
use crate::journal;
use crate::output::{HintExt, Printer, Step, hinted};

use outcome::{AgentOutcome, FileOutcome, Outcome};
use sources::Source;
use wanted::Wanted;

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(150);

pub(super) async fn run(arguments: &BackfillArgs, home: &Home, printer: &Printer) -> Result<()> {
    if arguments.list {
        return runs::list(arguments, home, printer).await;
    }
    if let Some(run) = arguments.rollback {
        return runs::roll_back(run, arguments, home, printer).await;
    }
    memory::redact::install_from(arguments.redact_rules.as_deref(), Some(&memory::settings::folder(home)))
        .map_err(|error| hinted(anyhow::anyhow!("{error}"), error.hint()))?;
    if let [system, file] = &arguments.from[..] {
        return import::run(system, std::path::Path::new(file), arguments, home, printer).await;
    }
    let sources = sources::of(arguments)?;
    let wanted = Wanted::of(arguments, home)?;
    let db = if arguments.dry_run { None } else { Some(journal::open(home).await?) };
    let mut outcome = Outcome { is_dry_run: arguments.dry_run, agents: Vec::new() };
    for source in &sources {
        outcome.agents.push(read(source, &wanted, db.as_ref(), printer).await?);
    }
    if let Some(db) = db {
        db.close().await;
    }
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&outcome).context("cannot write the outcome as JSON")?);
    } else {
        printer.data(outcome.text(&sources).trim_end());
    }
    let failed = outcome.failures().count();
    if failed > 0 {
        for (path, error) in outcome.failures() {
            printer.warn(format_args!("{path}: {error}"));
        }
        return Err(anyhow::anyhow!("{failed} of the files could not be read or stored; the others were"))
            .hint("run the same command again when the cause is mended: what is stored is not stored twice");
    }
    Ok(())
}

/// Reads one agent's transcripts. An error is one of the database before the first file, or after the last.
async fn read(source: &Source, wanted: &Wanted, db: Option<&Db>, printer: &Printer) -> Result<AgentOutcome> {
    let agent = source.agent.as_str();
    let mut outcome = AgentOutcome { agent, run: None, total: TakenIn::default(), files: Vec::new() };
    let files: Vec<_> = source.files.iter().filter(|file| wanted.may_hold(file)).collect();
    if files.is_empty() {
        return Ok(outcome);
    }
    let run = match db {
        Some(db) => {
            let run = store::start_run(db, agent, &source.name).await;
            Some(run.context("cannot note the run").hint("run `cargo xtask migrate` if the schema is older")?)
        }
        None => None,
    };
    outcome.run = run.map(|run| run.0);
    let mut context = wanted.context(source.agent, run);
    let length = files.iter().map(|file| file.size_bytes).sum();
    let step = printer.step(format!("Reading {} of {agent}", counted(files.len(), "transcript")));
    let bar = Bar::over(&step, context.read_bytes.clone(), length);
    let mut projects = ProjectCache::new(wanted.policy());
    for file in files {
        let (returned, taken) = bar.moving(one(db, file, context, &mut projects)).await;
        context = returned;
        let taken = taken.map_err(|error| format!("{:#}", anyhow::Error::from(error)));
        if let Ok(taken) = &taken {
            outcome.total += taken;
        }
        outcome.files.push(FileOutcome::new(&file.path, taken));
    }
    if let (Some(db), Some(run)) = (db, run) {
        let end = if outcome.failures().next().is_some() { RunEnd::Failed } else { RunEnd::Done };
        let counts = serde_json::to_value(&outcome.total).context("cannot write the counts as JSON")?;
        store::finish_run(db, run, end, &counts).await.context("cannot note the run's end")?;
    }
    step.done(format!("Read {} of {agent}", counted(outcome.files.len(), "transcript")));
    Ok(outcome)
}

async fn one(
    db: Option<&Db>,
    file: &transcripts::TranscriptFile,
    mut context: transcripts::Context,
    projects: &mut ProjectCache,
) -> (transcripts::Context, Result<TakenIn, transcripts::TakeInError>) {
    if let Some(db) = db {
        return transcripts::take_in(db, file, context, projects).await;
    }
    let file = file.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let read = transcripts::read(&file, &mut context, &mut |_| ControlFlow::Continue(()));
        let taken = read.map(|read| TakenIn { read, ..TakenIn::default() });
        (context, taken.map_err(|source| transcripts::TakeInError::Read { path: file.path, source }))
    });
    match reading.await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Moves a step's bar while something is read.
struct Bar<'a> {
    step: &'a Step,
    read_bytes: Arc<AtomicU64>,
    length: u64,
}

impl<'a> Bar<'a> {
    fn over(step: &'a Step, read_bytes: Arc<AtomicU64>, length: u64) -> Self {
        Self { step, read_bytes, length }
    }

    async fn moving<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            if let Ok(done) = tokio::time::timeout(TICK, &mut work).await {
                return done;
            }
            self.step.progress(self.read_bytes.load(Ordering::Relaxed).min(self.length), self.length);
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// `12 not JSON, 3 interruption`, the most frequent first.
fn reasons(counts: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<_> = counts.iter().collect();
    counts.sort_by(|one, two| two.1.cmp(one.1).then(one.0.cmp(two.0)));
    counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ")
}

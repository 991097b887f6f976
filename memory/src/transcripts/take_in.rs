//! From a transcript into the journal: one thread reads and parses, and what it has read is committed some hundred events at a
//! time, so that neither the file's size nor the database's pace counts in memory.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use serde::Serialize;
use tokio::sync::mpsc;

use super::emit::Context;
use super::find::TranscriptFile;
use super::report::Report;
use crate::event::{Event, EventKind};
use crate::store::{self, Db, ProjectCache, Recorded, StoreError};

/// Events in one transaction, at most.
const MAX_BATCH_EVENTS: usize = 256;
/// The size of their texts, about. Three batches exist at once: one is read, one waits, one is committed.
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// How often a transaction that stood in another's way is tried again.
const MAX_CONFLICTS: u32 = 5;

#[derive(Debug, thiserror::Error)]
pub enum TakeInError {
    #[error("`{path}` could not be read")]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a file came to.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct TakenIn {
    pub read: Report,
    pub inserted: Inserted,
    /// Rows that were there already, and now tell more.
    pub amended: u64,
    /// Events that the journal held.
    pub known: u64,
}

/// Rows that were not there before, by table.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Inserted {
    pub prompts: u64,
    pub answers: u64,
    pub calls: u64,
    pub happenings: u64,
}

impl Inserted {
    pub fn total(&self) -> u64 {
        self.prompts + self.answers + self.calls + self.happenings
    }
}

impl std::ops::AddAssign<&Self> for TakenIn {
    fn add_assign(&mut self, other: &Self) {
        self.read += &other.read;
        self.inserted.prompts += other.inserted.prompts;
        self.inserted.answers += other.inserted.answers;
        self.inserted.calls += other.inserted.calls;
        self.inserted.happenings += other.inserted.happenings;
        self.amended += other.amended;
        self.known += other.known;
    }
}

/// Reads a transcript into the journal. `context` goes through and comes back, for it knows what earlier files held.
pub async fn take_in(
    db: &Db,
    file: &TranscriptFile,
    mut context: Context,
    projects: &mut ProjectCache,
) -> (Context, Result<TakenIn, TakeInError>) {
    let (batches, mut waiting) = mpsc::channel(1);
    let reading = tokio::task::spawn_blocking({
        let file = file.clone();
        move || {
            let read = read_batches(&file, &mut context, &batches);
            (context, read)
        }
    });
    let mut taken = TakenIn::default();
    let mut failure = None;
    while let Some(batch) = waiting.recv().await {
        if let Err(error) = commit(db, projects, batch, &mut taken).await {
            failure = Some(error);
            break;
        }
    }
    // Without this end of the channel the reader stops at its next batch.
    drop(waiting);
    let (context, read) = match reading.await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    };
    let outcome = match (failure, read) {
        (Some(error), _) => Err(error.into()),
        (None, Err(source)) => Err(TakeInError::Read { path: file.path.clone(), source }),
        (None, Ok(report)) => {
            taken.read = report;
            Ok(taken)
        }
    };
    (context, outcome)
}

fn read_batches(
    file: &TranscriptFile,
    context: &mut Context,
    batches: &mpsc::Sender<Vec<Event>>,
) -> io::Result<Report> {
    let mut batch = Vec::new();
    let mut batch_bytes = 0;
    let report = super::read(file, context, &mut |event| {
        batch_bytes += size_of(&event);
        batch.push(event);
        if batch.len() < MAX_BATCH_EVENTS && batch_bytes < MAX_BATCH_BYTES {
            return ControlFlow::Continue(());
        }
        batch_bytes = 0;
        match batches.blocking_send(std::mem::take(&mut batch)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    if !batch.is_empty() {
        // Whoever went away has said why.
        let _ = batches.blocking_send(batch);
    }
    Ok(report)
}

/// About what an event takes, in bytes.
fn size_of(event: &Event) -> usize {
    match &event.kind {
        EventKind::PromptSubmitted { prompt, .. } => prompt.text.len(),
        EventKind::TurnEnded { answer, .. } => answer.text.len(),
        EventKind::ToolCalled(call) => {
            let output =
                call.output_preview.as_ref().map_or(0, String::len) + call.output.as_ref().map_or(0, String::len);
            output + call.input.to_string().len()
        }
        EventKind::Happened(happening) => happening.text.as_ref().map_or(0, |text| text.text.len()),
        EventKind::SessionStarted { .. } | EventKind::SessionEnded { .. } => 0,
    }
}

async fn commit(
    db: &Db,
    projects: &mut ProjectCache,
    events: Vec<Event>,
    taken: &mut TakenIn,
) -> Result<(), StoreError> {
    let mut connection = db.acquire().await?;
    let mut conflicts = 0;
    loop {
        match store::commit(&mut connection, projects, &events).await {
            Ok(recorded) => {
                for (event, recorded) in events.iter().zip(recorded) {
                    taken.count(event, recorded);
                }
                return Ok(());
            }
            Err(error) => {
                // A project that this transaction made is gone with it.
                projects.clear();
                conflicts += 1;
                if !error.is_conflict() || conflicts > MAX_CONFLICTS {
                    return Err(error);
                }
            }
        }
    }
}

impl TakenIn {
    fn count(&mut self, event: &Event, recorded: Recorded) {
        match recorded {
            Recorded::Amended => self.amended += 1,
            Recorded::Known => self.known += 1,
            Recorded::Stored => match &event.kind {
                EventKind::PromptSubmitted { .. } => self.inserted.prompts += 1,
                EventKind::TurnEnded { .. } => self.inserted.answers += 1,
                EventKind::ToolCalled(_) => self.inserted.calls += 1,
                EventKind::Happened(_) => self.inserted.happenings += 1,
                EventKind::SessionStarted { .. } | EventKind::SessionEnded { .. } => {}
            },
        }
    }
}

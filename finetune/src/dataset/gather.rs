//! The first pass: from the journal to rows without tools, written to a file, with what the decisions over all rows need to know of
//! each kept in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use memory::store::{self, Db, TrainingSession, TrainingTurn};
use serde::{Deserialize, Serialize};

use super::balance::Weighed;
use super::build::BuildError;
use super::clean::{Cleaner, Places, for_each_string};
use super::duplicates::{Shingles, shingles};
use super::render::Base;
use super::row::{Row, turn_of};
use super::schema::Seen;
use super::select::{Dropped, Turn, select};
use super::settings::Settings;
use super::shape::{Measured, Room, Session, rows};
use super::sources::Licence;

/// What is known of a row while it lies in the file.
#[derive(Debug)]
pub(super) struct Entry {
    pub weighed: Weighed,
    pub shingles: Shingles,
    /// The turn that it is a part of.
    pub turn: u64,
    /// Its session's number, and its project's.
    pub session: u32,
    pub project: u32,
}

/// What was left out, as `dropped.jsonl` tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DropNote {
    pub reason: Dropped,
    /// The row, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    pub agent: String,
    pub session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The row that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub entries: Vec<Entry>,
    pub projects: Vec<String>,
    pub seen: Seen,
    pub dropped: Vec<DropNote>,
    pub sessions: u64,
    pub turns: u64,
    tools: BTreeMap<String, u16>,
}

impl DropNote {
    pub(super) fn of_row(reason: Dropped, row: &Row) -> Self {
        Self {
            reason,
            row: Some(row.id.clone()),
            agent: row.source.agent.clone(),
            session: row.source.session.clone(),
            prompt: row.source.prompts.last().cloned(),
            like: None,
        }
    }

    fn of_turn(reason: Dropped, session: &TrainingSession, prompt: Option<&str>) -> Self {
        Self {
            reason,
            row: None,
            agent: session.agent.clone(),
            session: session.external_id.clone(),
            prompt: prompt.map(str::to_owned),
            like: None,
        }
    }
}

/// Reads the sessions in their order and writes their rows to the file, one a line.
pub(super) async fn gather(
    db: &Db,
    sessions: &[(TrainingSession, Licence)],
    base: &Base,
    settings: &Settings,
    file: &Path,
) -> Result<Gathered, BuildError> {
    let mut gathered = Gathered::default();
    let mut out = BufWriter::new(File::create(file).map_err(BuildError::writing(file))?);
    for (session, licence) in sessions {
        if !settings.filter.takes(session, *licence) {
            if !settings.filter.licences.contains(licence) {
                gathered.dropped.push(DropNote::of_turn(Dropped::Licence, session, None));
            }
            continue;
        }
        let turns = store::training_turns(db, session.id).await?;
        gathered.sessions += 1;
        gathered.turns += turns.len() as u64;
        for row in gathered.session(session, *licence, turns, base, settings) {
            serde_json::to_writer(&mut out, &row).map_err(|error| BuildError::writing(file)(error.into()))?;
            out.write_all(b"\n").map_err(BuildError::writing(file))?;
        }
    }
    out.into_inner().map_err(|error| BuildError::writing(file)(error.into_error()))?;
    Ok(gathered)
}

impl Gathered {
    fn session(
        &mut self,
        session: &TrainingSession,
        licence: Licence,
        turns: Vec<TrainingTurn>,
        base: &Base,
        settings: &Settings,
    ) -> Vec<Row> {
        let places = Places::of(session.folder.as_deref(), texts(&turns));
        let cleaner = Cleaner { control: &base.control, places: &places, result_bytes: settings.result_bytes };
        let count = |text: &str| base.tokens.count(text);
        let room = Room {
            tokens: settings.max_tokens - settings.tools_tokens,
            earlier_turns: settings.earlier_turns,
            count: &count,
            seed: settings.seed,
        };
        let of = Session {
            agent: session.agent.clone(),
            id: session.external_id.clone(),
            project: session.project.clone(),
            source_model: session.source_model.clone(),
            licence,
            folder: places.folder().map(str::to_owned),
        };
        let mut earlier: Vec<Measured> = Vec::new();
        let mut made = Vec::new();
        for turn in turns {
            let prompt_id = turn.prompt_id.clone();
            let mut turn = match select(turn, settings) {
                Ok(turn) => turn,
                Err(reason) => {
                    self.dropped.push(DropNote::of_turn(reason, session, Some(&prompt_id)));
                    // What comes after something that is missing does not follow from what was before it.
                    earlier.clear();
                    continue;
                }
            };
            cleaner.turn(&mut turn);
            self.see(&turn);
            let turn = Measured::of(turn, &count);
            for row in rows(&of, &earlier, &turn, room) {
                match row {
                    Ok(row) => {
                        self.note(&row);
                        made.push(row);
                    }
                    Err(reason) => self.dropped.push(DropNote::of_turn(reason, session, Some(&prompt_id))),
                }
            }
            earlier.push(turn);
            if earlier.len() > settings.earlier_turns {
                earlier.remove(0);
            }
        }
        made
    }

    /// Learns what the tools take.
    fn see(&mut self, turn: &Turn) {
        for step in &turn.steps {
            self.seen.add(&step.tool, &step.arguments, step.is_trained);
        }
    }

    fn note(&mut self, row: &Row) {
        let mut calls = Vec::new();
        for index in &row.trained {
            for call in row.messages[*index].calls() {
                let next = self.tools.len() as u16;
                let tool = *self.tools.entry(call.function.name.clone()).or_insert(next);
                calls.push((tool, *index as u32));
            }
        }
        let project = self.projects.iter().position(|project| *project == row.source.project).unwrap_or_else(|| {
            self.projects.push(row.source.project.clone());
            self.projects.len() - 1
        });
        self.entries.push(Entry {
            weighed: Weighed { id: row.id.clone(), ending: row.ending, calls },
            shingles: shingles(row),
            turn: turn_of(row),
            session: self.sessions as u32,
            project: project as u32,
        });
    }
}

/// Everything that a session says, to find who is named in it.
fn texts(turns: &[TrainingTurn]) -> impl Iterator<Item = &str> {
    turns.iter().flat_map(|turn| {
        let mut texts = vec![turn.prompt.as_str()];
        texts.extend(turn.answer.as_deref());
        for call in &turn.calls {
            for_each_string(&call.input, &mut |text| texts.push(text));
            texts.extend(call.output.as_deref());
            texts.extend(call.error.as_deref());
        }
        texts
    })
}

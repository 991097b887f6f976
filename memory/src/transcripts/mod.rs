//! The agents' own records of their sessions, read into events: what happened before there were hooks, and what hooks do not
//! say.
//!
//! A file is read line by line in bounded memory; what is kept and under which key is the same as from a hook, so that the two
//! meet in one row (`store`). The formats are the agents' own and change: what is not understood is counted, never an error.
//! `find` knows where the files lie, `take_in` writes what was read into the journal, `worker` does that at a session's end.

mod claude_code;
mod codex;
mod emit;
mod find;
mod gemini;
mod json;
mod lines;
mod places;
mod report;
mod take_in;
#[cfg(test)]
mod testing;
mod worker;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::event::Agent;

pub use emit::{Context, Sink};
pub use find::{TranscriptFile, find, folders, of_path, subagents_of, transcript, usual_folder, written_by};
pub use places::{Places, Unwanted};
pub use report::Report;
pub use take_in::{Inserted, TakeInError, TakenIn, take_in};
pub use worker::ReadTranscript;

/// What a person typed of a text that a client tells as a prompt: without what clients put in by themselves; nothing if all of it is
/// theirs.
pub fn typed_by_person(text: &str) -> Option<String> {
    claude_code::typed_by_person(text)
}

use emit::Emitter;
use lines::{Line, Lines};

/// Large enough that reading costs few system calls, small enough to stay in a cache.
const READ_BYTES: usize = 256 * 1024;

/// Reads one transcript. An error is one of the disk.
pub fn read(file: &TranscriptFile, context: &mut Context, sink: &mut Sink<'_>) -> io::Result<Report> {
    let source = BufReader::with_capacity(READ_BYTES, File::open(&file.path)?);
    let mut emit = Emitter {
        context,
        transcript_path: (!file.is_subagent).then(|| file.path.to_string_lossy().into_owned()),
        report: Report::default(),
        sink,
        flow: ControlFlow::Continue(()),
    };
    match emit.context.agent {
        Agent::ClaudeCode => {
            let mut reader = if file.is_subagent {
                claude_code::Reader::of_subagent(subagent_kind(&file.path))
            } else {
                claude_code::Reader::of_session()
            };
            each_line(source, &mut emit, |line, emit| {
                let mut mended = Vec::new();
                let parsed = json::parse::<claude_code::Line<'_>>(line, &mut mended);
                parsed.map(|line| reader.line(&line, emit)).is_some()
            })?;
            if emit.flow.is_continue() {
                reader.end(&mut emit);
            }
        }
        Agent::Codex => {
            let mut reader = codex::Reader::default();
            each_line(source, &mut emit, |line, emit| {
                let mut mended = Vec::new();
                json::parse::<codex::Line<'_>>(line, &mut mended).map(|line| reader.line(&line, emit)).is_some()
            })?;
            if emit.flow.is_continue() {
                reader.end(&mut emit);
            }
        }
        Agent::GeminiCli => {
            let mut reader = gemini::Reader::of_file(&file.path);
            let mut read = |line: &[u8], emit: &mut Emitter<'_, '_>| {
                let mut mended = Vec::new();
                json::parse::<gemini::Line<'_>>(line, &mut mended).map(|line| reader.line(&line, emit)).is_some()
            };
            if file.path.extension().is_some_and(|ending| ending == "json") {
                whole(source, &mut emit, read)?;
            } else {
                each_line(source, &mut emit, &mut read)?;
            }
            if emit.flow.is_continue() {
                reader.end(&mut emit);
            }
        }
        _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "no transcripts of this agent are read")),
    }
    Ok(emit.report)
}

/// Hands each line on; `read` says whether it could be parsed.
fn each_line<'a, 'sink>(
    source: impl BufRead,
    emit: &mut Emitter<'a, 'sink>,
    mut read: impl FnMut(&[u8], &mut Emitter<'a, 'sink>) -> bool,
) -> io::Result<()> {
    let mut lines = Lines::of(source);
    let before = emit.context.read_bytes.load(Ordering::Relaxed);
    while emit.flow.is_continue() {
        emit.context.read_bytes.store(before + lines.read_bytes(), Ordering::Relaxed);
        let (text, is_ended) = match lines.next()? {
            None => break,
            Some(Line::TooLong) => {
                emit.report.lines += 1;
                emit.skip("longer than is read");
                continue;
            }
            Some(Line::Whole(text)) => (text, true),
            Some(Line::Unended(text)) => (text, false),
        };
        emit.report.lines += 1;
        if text.iter().all(u8::is_ascii_whitespace) {
            emit.skip("empty");
        } else if !read(text, emit) {
            emit.skip(if is_ended { "not JSON" } else { "still being written" });
        }
    }
    emit.report.bytes = lines.read_bytes();
    emit.context.read_bytes.store(before + lines.read_bytes(), Ordering::Relaxed);
    Ok(())
}

/// Hands a whole file on as if it were one line: that is how older versions of Gemini CLI wrote a chat.
fn whole<'a, 'sink>(
    source: impl Read,
    emit: &mut Emitter<'a, 'sink>,
    read: impl FnOnce(&[u8], &mut Emitter<'a, 'sink>) -> bool,
) -> io::Result<()> {
    let mut text = Vec::new();
    let limit_bytes = lines::MAX_LINE_BYTES as u64;
    source.take(limit_bytes + 1).read_to_end(&mut text)?;
    emit.report.lines += 1;
    emit.report.bytes = text.len() as u64;
    emit.context.read_bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
    if text.len() as u64 > limit_bytes {
        emit.skip("longer than is read");
    } else if !read(&text, emit) {
        emit.skip("not JSON");
    }
    Ok(())
}

/// What `agent-<id>.meta.json` beside a subagent's transcript says of it.
fn subagent_kind(path: &Path) -> Option<String> {
    let text = std::fs::read(path.with_extension("meta.json")).ok()?;
    let meta: serde_json::Value = serde_json::from_slice(&text).ok()?;
    meta.get("agentType")?.as_str().filter(|kind| !kind.is_empty()).map(str::to_owned)
}

//! The real hook program, called by several sessions at once as their agents do, each call beside an empty process, so that what
//! the machine is busy with is told apart from what the hook waits for.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use memory::home::Home;

use super::{Clock, Key, Session};
use crate::bench::hook::timed;

/// How the hook is called.
#[derive(Debug, Clone)]
pub(crate) struct HookLoad {
    /// The program, and what starts it where it is not started directly.
    pub(crate) program: PathBuf,
    pub(crate) through: Vec<String>,
    /// A program that does nothing.
    pub(crate) empty: PathBuf,
    /// The sessions' homes, in turn.
    pub(crate) homes: Vec<Home>,
    pub(crate) sessions: usize,
    /// Between two events of a session.
    pub(crate) pause: Duration,
    /// Each session ends after so many events, or when it is told to.
    pub(crate) events_each: Option<usize>,
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct HookCall {
    pub(crate) key: Key,
    pub(crate) hook: Duration,
    /// The empty process that ran next to it.
    pub(crate) empty: Duration,
}

impl HookLoad {
    /// Calls until every session is at its end, or `stop` is set. A hook that does not exit with 0 is an error.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<Vec<HookCall>> {
        std::thread::scope(|scope| {
            let sessions: Vec<_> = (0..self.sessions)
                .map(|number| {
                    scope.spawn(move || self.session(number, stop).inspect_err(|_| stop.store(true, Ordering::Relaxed)))
                })
                .collect();
            let mut calls = Vec::new();
            for session in sessions {
                calls.extend(session.join().ok().context("a session broke off")??);
            }
            Ok(calls)
        })
    }

    fn session(&self, number: usize, stop: &AtomicBool) -> Result<Vec<HookCall>> {
        let home = &self.homes[number % self.homes.len()];
        let mut session = Session::new(&format!("hook-{number}"), Clock::Right);
        let mut empty = quiet(Command::new(&self.empty));
        let mut calls = Vec::new();
        while !stop.load(Ordering::Relaxed) && self.events_each.is_none_or(|events| calls.len() < events) {
            let outgoing = session.next();
            let mut hook = self.command(home.root(), outgoing.event);
            // Neither always runs in the wake of the other.
            let (hook, empty) = if calls.len().is_multiple_of(2) {
                let hook = timed(&mut hook, &outgoing.payload)?;
                (hook, timed(&mut empty, "")?)
            } else {
                let empty = timed(&mut empty, "")?;
                (timed(&mut hook, &outgoing.payload)?, empty)
            };
            calls.push(HookCall { key: outgoing.key, hook, empty });
            std::thread::sleep(self.pause);
        }
        Ok(calls)
    }

    fn command(&self, home: &Path, event: &str) -> Command {
        let mut command = match self.through.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.args(["claude-code", event]).env("AGENT_MEMORY_HOME", home).env_remove("AGENT_MEMORY_DISABLE");
        quiet(command)
    }
}

fn quiet(mut command: Command) -> Command {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

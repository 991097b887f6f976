//! A person's terminal: a program is started in it, what stands on its screen is read, and keys are pressed when it asks.

use std::ffi::OsString;
use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::wait;

/// Higher than any conversation, so that nothing scrolls away.
const ROWS: u16 = 500;
const COLUMNS: u16 = 80;

/// What stands before a question that waits for its answer, and before the choice that Enter would take.
const ASKED: &str = "? ";
const ACTIVE: &str = "❯ ";

const ENTER: &str = "\r";
const DOWN: &str = "\x1b[B";

pub struct Terminal {
    shown: Arc<Mutex<Shown>>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// Closing it hangs up.
    _master: Box<dyn MasterPty + Send>,
}

struct Shown {
    screen: vt100::Parser,
    raw: Vec<u8>,
}

impl Terminal {
    /// Starts a program in `folder`, in an environment that holds these variables only.
    pub fn start(program: &Path, arguments: &[&str], environment: &[(&str, OsString)], folder: &Path) -> Result<Self> {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).context("opening a terminal")?;
        // A key that is pressed before the program reads it would be echoed into what the program draws.
        let mut command = CommandBuilder::new("/bin/sh");
        command.args(["-c", "stty -echo; exec \"$0\" \"$@\""]);
        command.arg(program);
        command.args(arguments);
        command.env_clear();
        for (name, value) in environment {
            command.env(name, value);
        }
        command.cwd(folder);
        let child = pair.slave.spawn_command(command).context("starting a program in a terminal")?;
        let mut output = pair.master.try_clone_reader().context("reading the terminal")?;
        let keys = pair.master.take_writer().context("writing to the terminal")?;
        let (rows, columns) = NonZeroU16::new(ROWS).zip(NonZeroU16::new(COLUMNS)).context("the size of the screen")?;
        let shown = Arc::new(Mutex::new(Shown { screen: vt100::Parser::new(rows, columns, 0), raw: Vec::new() }));
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It ends, or fails, when the program has closed its end.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let mut seen = lock(&seen);
                seen.screen.process(&bytes[..count]);
                seen.raw.extend_from_slice(&bytes[..count]);
            }
        });
        Ok(Self { shown, keys, child, _master: pair.master })
    }

    /// All that stands on the screen.
    pub fn screen(&self) -> String {
        lock(&self.shown).screen.screen().contents()
    }

    /// Whether anything was ever shown in colour.
    pub fn was_coloured(&self) -> bool {
        let raw = String::from_utf8_lossy(&lock(&self.shown).raw).into_owned();
        raw.split("\x1b[").skip(1).any(|rest| {
            let (codes, end) =
                rest.split_at(rest.find(|c: char| c != ';' && !c.is_ascii_digit()).unwrap_or(rest.len()));
            // 30 to 49 and 90 to 107 are colours; bold and the like are none.
            let is_colour = |code: &str| code.parse().is_ok_and(|code: u8| (30..50).contains(&code) || code >= 90);
            end.starts_with('m') && codes.split(';').any(is_colour)
        })
    }

    pub async fn shows(&self, text: &str) -> Result<()> {
        self.shows_within(wait::PATIENCE, text).await
    }

    pub async fn shows_within(&self, patience: Duration, text: &str) -> Result<()> {
        self.wait(patience, text, |screen| screen.contains(text).then_some(())).await
    }

    /// Moves to the choice that has this in it, once that question is asked, and takes it.
    pub async fn pick(&mut self, question: &str, part: &str) -> Result<()> {
        self.is_asked(wait::PATIENCE, question).await?;
        let first = self.active(|_| true).await?;
        let mut active = first.clone();
        while !active.contains(part) {
            self.press(DOWN)?;
            active = self.active(|other| other != active).await?;
            ensure!(active != first, "{part:?} is no choice of {question:?}; the screen:\n{}", self.screen());
        }
        self.press(ENTER)
    }

    /// Types a line, once that question is asked.
    pub async fn answer(&mut self, question: &str, line: &str) -> Result<()> {
        self.is_asked(wait::PATIENCE, question).await?;
        self.press(&format!("{line}{ENTER}"))
    }

    /// Waits for the question, which may be long in coming.
    pub async fn is_asked(&self, patience: Duration, question: &str) -> Result<()> {
        let asked = format!("{ASKED}{question}");
        self.wait(patience, &asked, |screen| screen.contains(&asked).then_some(())).await
    }

    pub fn press(&mut self, keys: &str) -> Result<()> {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).context("pressing keys")
    }

    /// The exit code, once the program has ended.
    pub async fn ends_within(&mut self, patience: Duration) -> Result<u32> {
        let child = &mut self.child;
        let ended = wait::until_within(patience, "the program's end", async || Ok(child.try_wait()?)).await;
        let ended = ended.with_context(|| format!("the screen:\n{}", self.screen()))?;
        Ok(ended.exit_code())
    }

    async fn active(&self, is_wanted: impl Fn(&str) -> bool) -> Result<String> {
        let active = |screen: &str| {
            let line = screen.lines().rev().find(|line| line.trim_start().starts_with(ACTIVE))?;
            is_wanted(line).then(|| line.to_owned())
        };
        self.wait(wait::PATIENCE, "the next choice", active).await
    }

    async fn wait<T>(&self, patience: Duration, what: &str, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        let found = wait::until_within(patience, what, async || Ok(find(&self.screen()))).await;
        found.with_context(|| format!("the screen:\n{}", self.screen()))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.child.kill();
    }
}

fn lock(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

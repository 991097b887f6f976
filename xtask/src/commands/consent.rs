//! Asking a person before something that cannot be taken back, or that they did not expect.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, Result, anyhow, bail};

use crate::output::hinted;

/// What is asked, the word that means yes, and the command that does not ask.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub text: &'a str,
    pub word: &'a str,
    pub without_asking: &'a str,
}

/// Anything but the word ends the command with nothing done.
pub(super) fn confirm(question: Question<'_>) -> Result<()> {
    let Question { text, word, without_asking } = question;
    if !std::io::stdin().is_terminal() {
        return Err(hinted(
            anyhow!("{text} There is no terminal to ask for your consent"),
            format!("run `{without_asking}`"),
        ));
    }
    let mut stderr = std::io::stderr().lock();
    write!(stderr, "{text}\nType \"{word}\" to go on: ").and_then(|()| stderr.flush()).context("cannot ask")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    if answer.trim() != word {
        bail!("nothing was done: the answer was not \"{word}\"");
    }
    Ok(())
}

//! How a person is asked: a trait, so that what is asked can be tested without a terminal, and the two terminals there are.

use std::io::{BufRead, Write};

use dialoguer::console::{Term, is_dumb};
use dialoguer::theme::ColorfulTheme;
use dialoguer::{Confirm, Input, MultiSelect, Select};

/// The person went away, or the terminal did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left;

pub(crate) type Asked<T> = Result<T, Left>;

/// What a question is answered with by whoever only presses Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Likely {
    Yes,
    No,
}

pub(crate) trait Asker {
    /// One of the choices, by its place; the likely one is chosen at first.
    fn select(&mut self, question: &str, choices: &[String], likely: usize) -> Asked<usize>;

    /// Some of the choices, or none.
    fn select_some(&mut self, question: &str, choices: &[String]) -> Asked<Vec<usize>>;

    /// A line; the empty one is for whoever wants back.
    fn input(&mut self, question: &str) -> Asked<String>;

    fn confirm(&mut self, question: &str, likely: Likely) -> Asked<bool>;

    /// Something to know before the next question.
    fn tell(&mut self, text: &str);
}

/// For the terminal that this is. A dumb one can neither move its cursor nor be read key by key.
pub(crate) fn terminal() -> Box<dyn Asker + Send> {
    if is_dumb() {
        Box::new(LineAsker { input: std::io::BufReader::new(std::io::stdin()), output: std::io::stderr() })
    } else {
        Box::new(TerminalAsker { theme: ColorfulTheme::default() })
    }
}

/// A question that is broken off leaves the cursor hidden.
pub(crate) fn restore_terminal() {
    if !is_dumb() {
        // There is nothing more to do if the terminal is gone.
        let _ = Term::stderr().show_cursor();
    }
}

/// Lists to move in, on stderr; colour only where the terminal has it and nobody objects (`NO_COLOR`).
struct TerminalAsker {
    theme: ColorfulTheme,
}

/// What stands before a choice, and a column that stays empty.
const MARGIN: usize = 7;

/// Choices that take one line each: lists are drawn anew over themselves, and what wraps is not covered.
fn fitted(choices: &[String]) -> Vec<String> {
    let width = usize::from(Term::stderr().size().1).saturating_sub(MARGIN);
    choices.iter().map(|choice| shortened(choice, width)).collect()
}

/// Without its middle, if it is longer: beginning and end of a path say most.
fn shortened(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let head: String = text.chars().take(kept / 2).collect();
    let tail: String = text.chars().skip(count - (kept - kept / 2)).collect();
    format!("{head}…{tail}")
}

/// Escape gives nothing, Ctrl-C an error, and so does a terminal that is gone.
fn answer<T>(answered: dialoguer::Result<Option<T>>) -> Asked<T> {
    answered.ok().flatten().ok_or(Left)
}

impl Asker for TerminalAsker {
    fn select(&mut self, question: &str, choices: &[String], likely: usize) -> Asked<usize> {
        let choices = fitted(choices);
        answer(Select::with_theme(&self.theme).with_prompt(question).items(&choices).default(likely).interact_opt())
    }

    fn select_some(&mut self, question: &str, choices: &[String]) -> Asked<Vec<usize>> {
        let question = format!("{question} (space chooses, Enter goes on)");
        let choices = fitted(choices);
        answer(MultiSelect::with_theme(&self.theme).with_prompt(question).items(&choices).interact_opt())
    }

    fn input(&mut self, question: &str) -> Asked<String> {
        let question = format!("{question} (nothing: back)");
        answer(Input::with_theme(&self.theme).with_prompt(question).allow_empty(true).interact_text().map(Some))
    }

    fn confirm(&mut self, question: &str, likely: Likely) -> Asked<bool> {
        let asked = Confirm::with_theme(&self.theme).with_prompt(question).default(likely == Likely::Yes);
        answer(asked.interact_opt())
    }

    fn tell(&mut self, text: &str) {
        // Nothing is left to tell the person with if stderr is gone.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Numbered lists and whole lines, for dumb terminals.
struct LineAsker<R, W> {
    input: R,
    output: W,
}

impl<R: BufRead, W: Write> LineAsker<R, W> {
    fn line(&mut self, prompt: &str) -> Asked<String> {
        let mut line = String::new();
        let read = write!(self.output, "{prompt} ")
            .and_then(|()| self.output.flush())
            .and_then(|()| self.input.read_line(&mut line));
        match read {
            Ok(1..) if line.trim() != "q" => Ok(line.trim().to_owned()),
            _ => Err(Left),
        }
    }

    fn list(&mut self, question: &str, choices: &[String]) {
        let lines = choices.iter().zip(1..).map(|(choice, number)| format!("\n  {number}  {choice}"));
        let list: String = lines.collect();
        self.tell(&format!("{question}{list}"));
    }
}

/// The place of a choice by the number that it is shown with.
fn place(typed: &str, choices: &[String]) -> Option<usize> {
    typed.parse::<usize>().ok()?.checked_sub(1).filter(|place| *place < choices.len())
}

impl<R: BufRead, W: Write> Asker for LineAsker<R, W> {
    fn select(&mut self, question: &str, choices: &[String], likely: usize) -> Asked<usize> {
        self.list(question, choices);
        loop {
            let typed = self.line(&format!("Type a number, or q to leave [{}]:", likely + 1))?;
            if typed.is_empty() {
                return Ok(likely);
            }
            if let Some(place) = place(&typed, choices) {
                return Ok(place);
            }
        }
    }

    fn select_some(&mut self, question: &str, choices: &[String]) -> Asked<Vec<usize>> {
        self.list(question, choices);
        loop {
            let typed = self.line("Type numbers with spaces between them, or q to leave:")?;
            if let Some(places) = typed.split_whitespace().map(|typed| place(typed, choices)).collect() {
                return Ok(places);
            }
        }
    }

    fn input(&mut self, question: &str) -> Asked<String> {
        self.line(&format!("{question} (nothing: back; q to leave):"))
    }

    fn confirm(&mut self, question: &str, likely: Likely) -> Asked<bool> {
        let choices = if likely == Likely::Yes { "Y/n" } else { "y/N" };
        loop {
            match self.line(&format!("{question} [{choices}, q to leave]"))?.to_lowercase().as_str() {
                "" => return Ok(likely == Likely::Yes),
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => {}
            }
        }
    }

    fn tell(&mut self, text: &str) {
        // Nothing is left to tell the person with if stderr is gone.
        let _ = writeln!(self.output, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> LineAsker<&[u8], Vec<u8>> {
        LineAsker { input: text.as_bytes(), output: Vec::new() }
    }

    #[test]
    fn asks_by_the_line_where_the_cursor_cannot_move() {
        let choices = ["tea".to_owned(), "water".to_owned()];
        let mut asker = typed("3\nwater\n2\n\n1 2\n\nyes\n  ~/models \n");
        assert_eq!(asker.select("What?", &choices, 0), Ok(1), "what is no number of the list is asked again");
        assert_eq!(asker.select("What?", &choices, 1), Ok(1));
        assert_eq!(asker.select_some("Which?", &choices), Ok(vec![0, 1]));
        assert_eq!(asker.confirm("So?", Likely::No), Ok(false));
        assert_eq!(asker.confirm("So?", Likely::No), Ok(true));
        assert_eq!(asker.input("Where?"), Ok("~/models".to_owned()));
        let shown = String::from_utf8(asker.output).unwrap();
        assert!(shown.contains("What?\n  1  tea\n  2  water\n") && shown.contains("[y/N"), "{shown}");
    }

    #[test]
    fn shortens_in_the_middle() {
        assert_eq!(shortened("/home/me/models", 15), "/home/me/models");
        assert_eq!(shortened("/home/me/models", 9), "/hom…dels");
        assert_eq!(shortened("/home/me/models", 0), "…");
    }

    #[test]
    fn is_left_by_q_and_by_the_end_of_input() {
        assert_eq!(typed("q\n").select("What?", &["tea".to_owned()], 0), Err(Left));
        assert_eq!(typed("").confirm("So?", Likely::Yes), Err(Left));
        assert_eq!(typed("q\n").input("Where?"), Err(Left));
    }
}

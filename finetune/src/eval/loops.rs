//! Whether an answer goes round in circles: the failure of small models that were trained too long, or without the end of turn.

use super::Answer;
use super::parse::Parsed;

/// The same eight words four times in a row; nobody who means something writes that.
const WORDS: usize = 8;
const TIMES: usize = 4;
/// What an answer that was cut off must end in, in characters, if it has no words to count: `a/a/a/a/`.
const TAIL_CHARS: usize = 64;

pub(super) fn loops(answer: &Answer, parsed: &Parsed) -> bool {
    let is_twice = |place: usize| parsed.calls[..place].contains(&parsed.calls[place]);
    let words: Vec<&str> = answer.text.split_whitespace().collect();
    repeats(&words) || (0..parsed.calls.len()).any(is_twice) || (!answer.stopped && ends_in_repetition(&answer.text))
}

/// Whether some words come four times in a row; fewer than eight words must come as often as fill four times eight.
fn repeats(words: &[&str]) -> bool {
    (1..=words.len() / TIMES).any(|period| {
        let needed = period.max(WORDS) * TIMES;
        let mut length = period;
        (period..words.len()).any(|place| {
            length = if words[place] == words[place - period] { length + 1 } else { period };
            length >= needed
        })
    })
}

fn ends_in_repetition(text: &str) -> bool {
    let backwards: Vec<char> = text.chars().rev().collect();
    (1..=backwards.len() / TIMES).any(|period| {
        let length = (period * TIMES).max(TAIL_CHARS);
        length <= backwards.len() && (period..length).all(|place| backwards[place] == backwards[place - period])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::parse;

    fn is_loop(text: &str, stopped: bool) -> bool {
        loops(&Answer { text: text.into(), stopped, tokens: 9 }, &parse(text))
    }

    fn words(count: usize) -> String {
        (0..count).fold(String::new(), |text, number| text + &format!("w{number} "))
    }

    #[test]
    fn finds_words_that_come_four_times_in_a_row() {
        assert!(is_loop(&words(8).repeat(4), true));
        assert!(is_loop(&format!("so {} end", words(13).repeat(4)), true), "longer than eight words");
        assert!(is_loop(&words(3).repeat(11), true), "shorter, but as many words");
    }

    #[test]
    fn lets_pass_what_comes_less_often() {
        assert!(!is_loop(&words(8).repeat(3), true));
        assert!(!is_loop(&words(3).repeat(4), true));
        assert!(!is_loop(&format!("{0}other {0}other words {0}and {0}", words(8)), true), "not in a row");
        let twice: Vec<_> = (0..9).map(|number| format!("{0}{0}then{number}", words(8))).collect();
        assert!(!is_loop(&twice.join(" "), true), "each time twice only");
        assert!(!is_loop(&words(200), true));
        assert!(!is_loop("", true));
    }

    #[test]
    fn finds_a_call_that_is_made_twice() {
        let call =
            |path: &str| format!("<tool_call>{{\"name\": \"Read\", \"arguments\": {{\"p\": \"{path}\"}}}}</tool_call>");
        assert!(is_loop(&format!("{}{}{}", call("a"), call("b"), call("a")), true));
        assert!(!is_loop(&format!("{}{}", call("a"), call("b")), true));
    }

    #[test]
    fn finds_what_was_cut_off_while_it_repeated_itself() {
        let text = format!("ls src/{}", "node_modules/".repeat(8));
        assert!(is_loop(&text, false));
        assert!(!is_loop(&text, true), "it found an end");
        assert!(!is_loop("cut off in the middle of a sentence that says one thing after anoth", false));
        assert!(!is_loop("aaaa", false));
    }
}

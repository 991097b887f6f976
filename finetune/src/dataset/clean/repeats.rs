//! Lines that only repeat, and texts that are too long.

use std::borrow::Cow;
use std::collections::HashMap;

use super::any_string;
use crate::dataset::row::Message;

/// So many equal lines in a row are still read as such; more teach endless repetition.
const KEPT_LINES: usize = 3;

/// Leaves three of equal lines that follow each other.
pub(super) fn collapse_repeats(text: &str) -> Cow<'_, str> {
    let lines: Vec<_> = text.lines().collect();
    let mut kept: Vec<Cow<'_, str>> = Vec::with_capacity(lines.len());
    let mut is_changed = false;
    let mut start = 0;
    while start < lines.len() {
        let count = lines[start..].iter().take_while(|line| **line == lines[start]).count();
        if count > KEPT_LINES + 1 {
            kept.extend(lines[start..start + KEPT_LINES].iter().map(|line| Cow::Borrowed(*line)));
            kept.push(Cow::Owned(format!("[... {} equal lines cut ...]", count - KEPT_LINES)));
            is_changed = true;
        } else {
            kept.extend(lines[start..start + count].iter().map(|line| Cow::Borrowed(*line)));
        }
        start += count;
    }
    if is_changed { Cow::Owned(kept.join("\n")) } else { Cow::Borrowed(text) }
}

/// The head and the tail of a text that is longer than so many bytes, cut between lines where it has lines, with a mark of what is
/// missing. The result may be longer by that mark.
pub(super) fn cut_middle(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let head_bytes = bytes * 2 / 3;
    let head = floor(text, head_bytes);
    let tail = ceil(text, text.len() - (bytes - head_bytes));
    // Between lines, unless that would give up half of what may be kept.
    let head_end = text[..head].rfind('\n').map(|at| at + 1).filter(|end| end * 2 >= head);
    let tail_start = text[tail..].find('\n').map(|at| tail + at + 1);
    let tail_start = tail_start.filter(|start| (text.len() - start) * 2 >= text.len() - tail);
    if let (Some(head_end), Some(tail_start)) = (head_end, tail_start) {
        let cut = text[head_end..tail_start].lines().count();
        return format!("{}[... {cut} lines cut ...]\n{}", &text[..head_end], &text[tail_start..]);
    }
    let cut = text[head..tail].chars().count();
    format!("{}[... {cut} characters cut ...]{}", &text[..head], &text[tail..])
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// Whether a message, or an argument of a call in it, is for the most part one line again and again.
pub(crate) fn repeats_itself(message: &Message) -> bool {
    is_repetitive(message.content()) || message.arguments().any(|value| any_string(value, &is_repetitive))
}

/// Whether a text is for the most part one line again and again. Short lines (braces, rules) are no repetition.
fn is_repetitive(text: &str) -> bool {
    const SHORTEST: usize = 12;
    const MOST: usize = 8;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut lines = 0;
    for line in text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST) {
        *counts.entry(line).or_default() += 1;
        lines += 1;
    }
    let most = counts.into_values().max().unwrap_or_default();
    most >= MOST && most * 3 > lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn collapses_lines_that_follow_each_other() {
        let text = format!("start\n{}end", "retrying\n".repeat(9));
        assert_eq!(collapse_repeats(&text), "start\nretrying\nretrying\nretrying\n[... 6 equal lines cut ...]\nend");
        assert!(matches!(collapse_repeats("a\na\na\na\nb\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn cuts_between_lines_and_says_how_many() {
        let text = (0..100).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n") + "\n";
        let cut = cut_middle(&text, 120);
        assert!(cut.starts_with("line 0\n") && cut.ends_with("line 99\n"), "{cut}");
        let said: usize = cut.split("[... ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert_eq!(cut.lines().count() - 1 + said, 100);
    }

    #[test]
    fn cuts_one_long_line_in_its_middle() {
        let cut = cut_middle(&"ä".repeat(1_000), 100);
        assert!(cut.contains("characters cut") && cut.len() < 140, "{cut}");
    }

    #[test]
    fn tells_a_text_that_repeats_itself_from_one_that_has_equal_lines() {
        assert!(is_repetitive(&"and then once more\n".repeat(9)));
        assert!(!is_repetitive(&"}\n".repeat(50)));
        let tests = (0..20)
            .map(|number| format!("#[serde(default)]\npub field_{number}: String,"))
            .collect::<Vec<_>>()
            .join("\n");
        assert!(is_repetitive(&"#[serde(default)]\n".repeat(8)));
        assert!(is_repetitive(&tests), "half of it is one line");
    }

    proptest! {
        #[test]
        fn never_keeps_more_than_asked_and_a_mark(text in "(?s).{0,400}", bytes in 8_usize..200) {
            let cut = cut_middle(&text, bytes);
            prop_assert!(cut.len() <= bytes.max(text.len().min(bytes)) + 40);
        }
    }
}

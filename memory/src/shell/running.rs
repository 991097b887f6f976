//! Which program runs in the end: without what only runs it, and with what the command itself has named.

use std::collections::HashMap;

use super::commands::is_in;

/// What the command itself gives a name before it uses it: `F=--force; git push $F`, `alias p='git push'; p`.
#[derive(Default)]
pub(super) struct Named {
    variables: HashMap<String, String>,
    aliases: HashMap<String, String>,
}

impl Named {
    pub(super) fn learn(&mut self, words: &[String]) {
        let (names, words) = match words.split_first() {
            Some((first, rest)) if first == "alias" => (&mut self.aliases, rest),
            Some((first, rest)) if ["export", "local", "readonly"].contains(&first.as_str()) => {
                (&mut self.variables, rest)
            }
            // Before a program they hold for that program only.
            _ if words.iter().all(|word| is_assignment(word)) => (&mut self.variables, words),
            _ => return,
        };
        let pairs = words.iter().filter_map(|word| word.split_once('='));
        names.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    /// The words with what they stand for, as far as a person would read.
    pub(super) fn replaced(&self, words: &[String]) -> Vec<String> {
        let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut replaced = Vec::with_capacity(words.len());
        for (at, word) in words.iter().enumerate() {
            if replaced.len() > MAX_WORDS {
                break;
            }
            let variable = || {
                let name = word.strip_prefix('$')?;
                let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
                self.variables.get(name)
            };
            match self.aliases.get(word).filter(|_| at == 0).or_else(variable) {
                Some(value) => replaced.extend(split(value)),
                None => replaced.push(word.clone()),
            }
        }
        replaced
    }
}

/// A text of many words, used many times, would be longer than any command.
const MAX_WORDS: usize = 2_000;

/// What stands before a program and is not what is run.
const KEYWORDS: &str = "do then else elif if while until ! { ( time";
/// What runs the program that follows, and which of its flags have values.
const RUNNERS: [(&str, &str); 16] = [
    ("sudo", "-u -g -h -p -C -T"),
    ("doas", "-u"),
    ("env", "-u -C"),
    ("nohup", ""),
    ("command", ""),
    ("builtin", ""),
    ("exec", "-a"),
    ("time", "-f -o"),
    ("timeout", "-s -k"),
    ("nice", "-n"),
    ("ionice", "-c -n"),
    ("stdbuf", "-i -o -e"),
    ("setsid", ""),
    ("xargs", "-n -I -P -L -d -a -s"),
    ("watch", "-n"),
    ("caffeinate", "-t"),
];

/// The words from the program on that is run in the end.
pub(super) fn running(words: &[String]) -> &[String] {
    let mut words = words;
    while let [first, rest @ ..] = words {
        if is_in(KEYWORDS, first) && !rest.is_empty() || is_assignment(first) {
            words = rest;
            continue;
        }
        let name = name_of(first);
        let Some((_, with_value)) = RUNNERS.iter().find(|(runner, _)| *runner == name) else { break };
        let mut next = rest;
        while let [word, after @ ..] = next {
            if word.starts_with('-') && word.len() > 1 {
                next = if is_in(with_value, word) { after.get(1..).unwrap_or_default() } else { after };
            } else if is_assignment(word) || name == "timeout" && word.starts_with(|c: char| c.is_ascii_digit()) {
                next = after;
                if name == "timeout" {
                    break;
                }
            } else {
                break;
            }
        }
        if next.is_empty() {
            break;
        }
        words = next;
    }
    words
}

pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// `/usr/bin/python3.12` is `python`.
pub(super) fn name_of(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if ["python", "pip"].contains(&plain) { plain } else { name }
}

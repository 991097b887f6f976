//! Cutting text into tokens: words, identifiers and paths with the pieces that they are made of, and runs of scripts that write no
//! spaces.

/// What stands between the pieces of an identifier, a path, an address or a flag.
const JOINERS: &str = "_-./:\\@+~";
/// What is longer is no word of anyone's: a key, an encoded file.
const MAX_TOKEN_BYTES: usize = 160;
/// A mix of hexadecimal digits that is as long as this is a hash.
const MIN_HASH_LENGTH: usize = 7;

/// One token as it stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) script: Script,
}

impl<'a> Token<'a> {
    /// The words it is made of.
    pub(super) fn pieces(&self) -> Vec<&'a str> {
        match self.script {
            Script::Unspaced => pairs(self.text),
            Script::Spaced => pieces(self.text),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    /// Words stand apart.
    Spaced,
    /// Chinese, Japanese, Korean: pieces are pairs of characters.
    Unspaced,
}

/// The tokens of a text in their order. `-` and `.` at a token's ends are no part of it, but for the dashes of a flag.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    text.split(|c: char| !is_part(c)).flat_map(runs).filter_map(|(run, script)| match script {
        Script::Unspaced => Some(Token { text: run, script }),
        Script::Spaced => spaced(run),
    })
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || JOINERS.contains(c) || is_mark(c)
}

/// A combining mark belongs to the letter before it.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036f}' | '\u{0900}'..='\u{0dff}' | '\u{3099}' | '\u{309a}')
}

fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Cuts where one kind of script meets the other.
fn runs(chunk: &str) -> impl Iterator<Item = (&str, Script)> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        let unspaced = is_unspaced(rest.chars().next()?);
        let end = rest.find(|c| is_unspaced(c) != unspaced).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        Some((run, if unspaced { Script::Unspaced } else { Script::Spaced }))
    })
}

fn pairs(run: &str) -> Vec<&str> {
    let ends: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    if ends.len() <= 3 {
        return vec![run];
    }
    ends.windows(3).map(|window| &run[window[0]..window[2]]).collect()
}

fn spaced(run: &str) -> Option<Token<'_>> {
    let inner = run.trim_matches(|c: char| !c.is_alphanumeric() && !is_mark(c));
    if inner.is_empty() || inner.len() > MAX_TOKEN_BYTES {
        return None;
    }
    let start = inner.as_ptr() as usize - run.as_ptr() as usize;
    let is_flag = run[..start].ends_with("--") && inner.starts_with(char::is_alphabetic);
    let text = if is_flag { &run[start - 2..start + inner.len()] } else { inner };
    Some(Token { text, script: Script::Spaced })
}

/// The words in an identifier: `SearchRequest`, `search_request` and `search::request` have the same two.
fn pieces(token: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    for part in token.split(|c: char| !c.is_alphanumeric() && !is_mark(c)).filter(|part| !part.is_empty()) {
        if is_code(part) {
            pieces.push(part);
        } else {
            humps(part, &mut pieces);
        }
    }
    pieces
}

/// `E0308`, `v2`, `utf8`, a hash: letters and digits that mean something only together.
fn is_code(part: &str) -> bool {
    let digits_follow_letters = part
        .find(|c: char| c.is_ascii_digit())
        .is_some_and(|at| at > 0 && part[at..].bytes().all(|byte| byte.is_ascii_digit()));
    let is_hash = part.len() >= MIN_HASH_LENGTH
        && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        && part.bytes().any(|byte| byte.is_ascii_digit());
    digits_follow_letters && !part.bytes().any(|byte| byte.is_ascii_lowercase()) || is_hash
}

/// Cuts at `aB`, `ABc`, `a1` and `1a`.
fn humps<'a>(part: &'a str, pieces: &mut Vec<&'a str>) {
    let letters: Vec<(usize, char)> = part.char_indices().collect();
    let mut start = 0;
    for at in 1..letters.len() {
        let (before, (place, here)) = (letters[at - 1].1, letters[at]);
        let next = letters.get(at + 1).map(|(_, next)| *next);
        let begins = before.is_lowercase() && here.is_uppercase()
            || before.is_uppercase() && here.is_uppercase() && next.is_some_and(char::is_lowercase)
            || before.is_numeric() != here.is_numeric() && !is_mark(here) && !is_mark(before);
        if begins {
            pieces.push(&part[start..place]);
            start = place;
        }
    }
    pieces.push(&part[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &[&str])]) {
        let found: Vec<_> = tokens(text).map(|token| (token.text, token.pieces())).collect();
        let expected: Vec<_> = expected.iter().map(|(text, pieces)| (*text, pieces.to_vec())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn cuts_identifiers_at_case_digits_and_marks() {
        check("parseConfig_v2", &[("parseConfig_v2", &["parse", "Config", "v", "2"])]);
        check("HTTPServer.listen", &[("HTTPServer.listen", &["HTTP", "Server", "listen"])]);
        check("recall::fuse(utf8)", &[("recall::fuse", &["recall", "fuse"]), ("utf8", &["utf", "8"])]);
        check("src/lib.rs:42", &[("src/lib.rs:42", &["src", "lib", "rs", "42"])]);
    }

    #[test]
    fn keeps_codes_and_hashes_whole() {
        check("error[E0308]:", &[("error", &["error"]), ("E0308", &["E0308"])]);
        check("TS2345 4b825dc", &[("TS2345", &["TS2345"]), ("4b825dc", &["4b825dc"])]);
    }

    #[test]
    fn knows_flags_from_dashes() {
        check(
            "git commit --no-verify -m",
            &[("git", &["git"]), ("commit", &["commit"]), ("--no-verify", &["no", "verify"]), ("m", &["m"])],
        );
        check("done. -- (end) …", &[("done", &["done"]), ("end", &["end"])]);
    }

    #[test]
    fn pairs_the_characters_of_scripts_without_spaces() {
        check(
            "数据库连接 rust検索",
            &[("数据库连接", &["数据", "据库", "库连", "连接"]), ("rust", &["rust"]), ("検索", &["検索"])],
        );
        check("字", &[("字", &["字"])]);
    }

    #[test]
    fn leaves_out_what_is_no_word() {
        check(&"x".repeat(MAX_TOKEN_BYTES + 1), &[]);
        check("--- ... ///", &[]);
    }
}

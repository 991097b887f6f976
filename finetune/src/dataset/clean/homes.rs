//! Home folders in a text, as far as what stands there is a path from the root and not the end of a shorter one: `src/pages/home/a.tsx`
//! is nobody's home.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Who everybody becomes.
pub(super) const OWNER: &str = "user";

/// What no name of a person has in it.
const OWNER_CHARS: &str = r#"[^\s/\\"'`<>:|,;()\[\]{}*?!&$=@#%^~+…]+"#;

static UNIX: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r"/(?:home|Users)/(?P<owner>{OWNER_CHARS})")).expect("the pattern is constant")
});
static WINDOWS: LazyLock<Regex> = LazyLock::new(|| {
    // A name with spaces is one only where the path goes on behind it.
    let spaced = r#"(?P<spaced>[^\s/\\:*?"<>|][^/\\:*?"<>|\r\n]{0,38}[^\s/\\:*?"<>|])(?:\\|/)"#;
    let pattern = format!(r"(?i)\b[a-z]:(?:\\{{1,4}}|/)Users(?:\\{{1,4}}|/)(?:{spaced}|(?P<owner>{OWNER_CHARS}))");
    Regex::new(&pattern).expect("the pattern is constant")
});
static ROOT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"/root(?P<after>/|$|[^A-Za-z0-9_.-])").expect("the pattern is constant"));

/// Where the owners of homes are named, in order.
pub(super) fn owners(text: &str) -> Vec<Range<usize>> {
    let unix = UNIX.captures_iter(text).filter(|found| begins_path(&text[..found.get_match().start()]));
    let unix = unix.filter_map(|found| found.name("owner"));
    let windows = WINDOWS.captures_iter(text).filter_map(|found| found.name("spaced").or_else(|| found.name("owner")));
    let mut owners: Vec<_> = unix.chain(windows).map(|owner| owner.range()).collect();
    // A full stop at the end is the sentence's.
    for owner in &mut owners {
        owner.end -= text[owner.clone()].len() - text[owner.clone()].trim_end_matches('.').len();
    }
    owners.retain(|owner| !owner.is_empty());
    owners.sort_by_key(|owner| owner.start);
    owners.dedup_by_key(|owner| owner.start);
    owners
}

/// Where the home of root stands, the slash before it included.
pub(super) fn roots(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    // Two may share what stands between them.
    while let Some(next) = ROOT.find_at(text, from) {
        let root = next.start()..next.start() + "/root".len();
        if begins_path(&text[..root.start]) {
            found.push(root.clone());
        }
        from = root.end;
    }
    found
}

/// Whether a path that begins with a slash can begin after this text: nothing of a path stands right before it, unless it is a flag
/// (`-I/home/...`), an escaped end of a line, or `file://`.
pub(super) fn begins_path(before: &str) -> bool {
    const BORDERS: &str = "\"'`=:,;()[]{}<>|&!@$*?^#";
    if before.ends_with("file://") {
        return true;
    }
    let start = before.rfind(|c: char| c.is_whitespace() || BORDERS.contains(c));
    let token = start.map_or(before, |at| &before[at + before[at..].chars().next().map_or(1, char::len_utf8)..]);
    let is_flag =
        token.strip_prefix('-').is_some_and(|flag| flag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
    let is_escape = token.rsplit_once('\\').is_some_and(|(_, escape)| matches!(escape, "n" | "t" | "r"));
    token.is_empty() || is_flag || is_escape
}

/// The first home in a text that is not everybody's.
pub(crate) fn foreign_home(text: &str) -> Option<&str> {
    let owner = owners(text).into_iter().find(|owner| &text[owner.clone()] != OWNER);
    owner.or_else(|| roots(text).into_iter().next()).map(|place| &text[place])
}

/// The same text with other words at some places, which come in order.
pub(super) fn with(text: &str, places: &[Range<usize>], word: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for place in places {
        out.push_str(&text[from..place.start]);
        out.push_str(word);
        from = place.end;
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = owners(text).into_iter().map(|owner| &text[owner]).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn finds_owners_of_homes() {
        check("cd /home/alice/x && ls /Users/Élodie", &["alice", "Élodie"]);
        check("PATH=/home/jürgen/bin:/home/_svc/bin", &["jürgen", "_svc"]);
        check("gcc -I/home/bob/include -isystem/home/bob/y", &["bob", "bob"]);
        check(r#"{"cwd":"a\n/home/alice"} file:///home/bob/z"#, &["alice", "bob"]);
        check(r"C:\Users\John Smith\x and C:\\Users\\Bob\\y, c:/users/Eve", &["John Smith", "Bob", "Eve"]);
        check("in /home/alice.", &["alice"]);
    }

    #[test]
    fn takes_no_part_of_a_path_for_a_home() {
        check("src/pages/home/index.tsx components/home/Hero.tsx ./home/x ../Users/y", &[]);
        check("https://x.dev/home/about.html http://h/Users/list", &[]);
    }

    #[test]
    fn finds_the_home_of_root() {
        assert_eq!(roots("run -v /root:/root x").len(), 2);
        assert!(roots("src/root/mod.rs /srv/root/x /rooted").is_empty());
        assert_eq!(foreign_home("x /home/user/y"), None);
        assert_eq!(foreign_home("x /home/alice/y"), Some("alice"));
        assert_eq!(foreign_home("cat /root/x"), Some("/root"));
    }
}

//! Whose computer it was: home folders, user names, addresses, and the folder of the checkout.
//!
//! A model that sees one folder in most of its rows writes that folder into everybody's paths. So the checkout's folder becomes
//! another one in each row, which the system message names: what is left to learn is to take it from there.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, NoExpand, Regex};

use super::homes::{OWNER, begins_path, owners, roots, with};
use crate::dataset::row::draw;

/// Stands for the folder above the checkout until its row is known.
const ABOVE_CHECKOUT: &str = "/‹above the checkout›";

/// Where checkouts lie, in the rows.
const PARENTS: [&str; 12] = [
    "/home/user",
    "/home/user/src",
    "/home/user/code",
    "/home/user/projects",
    "/Users/user",
    "/Users/user/dev",
    "/workspace",
    "/workspaces",
    "/srv/code",
    "/opt/work",
    "/data/repos",
    "/mnt/projects",
];

/// Names of accounts that are no person's, and words that text is full of.
const COMMON: [&str; 24] = [
    "user",
    "users",
    "root",
    "dev",
    "admin",
    "test",
    "build",
    "runner",
    "ubuntu",
    "debian",
    "home",
    "work",
    "git",
    "node",
    "app",
    "code",
    "main",
    "data",
    "postgres",
    "vscode",
    "agent",
    "shared",
    "public",
    "linuxbrew",
];

static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    // A host begins with a letter: `icon@2x.png` and `lodash@4.17.21` are no addresses.
    Regex::new(r"\b[A-Za-z0-9._%+-]+@[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*\.(?P<top>[A-Za-z]{2,})\b")
        .expect("the pattern is constant")
});

/// What of one session is replaced by what.
#[derive(Debug)]
pub(crate) struct Places {
    checkout: Option<Checkout>,
    names: Option<Regex>,
}

/// The checkout's folder, and what it becomes.
#[derive(Debug)]
struct Checkout {
    pattern: Regex,
    becomes: String,
}

impl Places {
    /// `folder` is that of the checkout, `texts` are all of the session's: who is named in a path is a user wherever named.
    pub(crate) fn of<'a>(folder: Option<&'a str>, texts: impl Iterator<Item = &'a str>) -> Self {
        /// More are no people but the lines of some listing.
        const MOST_NAMES: usize = 64;
        let mut names = BTreeSet::new();
        for text in folder.into_iter().chain(texts) {
            names
                .extend(owners(text).into_iter().map(|owner| text[owner].to_owned()).filter(|name| is_somebodys(name)));
            if names.len() >= MOST_NAMES {
                break;
            }
        }
        let names = names_pattern(names.iter().map(String::as_str));
        let checkout = folder.and_then(|folder| checkout(folder, names.as_ref()));
        Self { checkout, names }
    }

    /// The checkout's folder, as [`settle`] reads it.
    pub(crate) fn folder(&self) -> Option<&str> {
        self.checkout.as_ref().map(|checkout| checkout.becomes.as_str())
    }

    pub(crate) fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        if let Some(Checkout { pattern, becomes }) = &self.checkout {
            let found: Vec<Range<usize>> = pattern
                .captures_iter(&text)
                .filter_map(|found| found.name("folder"))
                .filter(|folder| begins_path(&text[..folder.start()]))
                .map(|folder| folder.range())
                .collect();
            text = replaced(text, &found, becomes);
        }
        let found = owners(&text);
        text = replaced(text, &found, OWNER);
        let found = roots(&text);
        text = replaced(text, &found, "/home/user");
        if EMAIL.is_match(&text) {
            text = Cow::Owned(without_addresses(&text));
        }
        match &self.names {
            Some(names) if names.is_match(&text) => Cow::Owned(names.replace_all(&text, NoExpand(OWNER)).into_owned()),
            _ => text,
        }
    }
}

/// Whether a name is a person's, and not one that every machine or every text has.
pub(crate) fn is_somebodys(name: &str) -> bool {
    name.chars().count() > 2 && !COMMON.contains(&name.to_lowercase().as_str())
}

/// These names as whole words; none if there are none.
pub(crate) fn names_pattern<'a>(names: impl Iterator<Item = &'a str>) -> Option<Regex> {
    let names = names.map(regex::escape).collect::<Vec<_>>().join("|");
    if names.is_empty() { None } else { Regex::new(&format!(r"\b(?:{names})\b")).ok() }
}

/// What the checkout's folder becomes. A home is no checkout, and a folder at the top only if it is more than a letter or two.
fn checkout(folder: &str, names: Option<&Regex>) -> Option<Checkout> {
    let folder = folder.trim_end_matches(['/', '\\']);
    let (parent, name) = folder.rsplit_once(['/', '\\'])?;
    let is_home = owners(folder).iter().any(|owner| owner.end == folder.len());
    if name.is_empty() || is_home || (parent.is_empty() && name.len() < 3) {
        return None;
    }
    let name = names.map_or(Cow::Borrowed(name), |names| names.replace_all(name, NoExpand(OWNER)));
    // In JSON, and in a shell, a backslash may be doubled.
    let folder = regex::escape(folder).replace(r"\\", r"\\{1,4}");
    let pattern = format!(r"(?P<folder>{folder})(?:/|\\|$|[^A-Za-z0-9_.-]|\.\s|\.$)");
    Some(Checkout { pattern: Regex::new(&pattern).ok()?, becomes: format!("{ABOVE_CHECKOUT}/{name}") })
}

/// Gives the checkout its place in a row.
pub(crate) fn settle<'a>(text: &'a str, row: &str, seed: u64) -> Cow<'a, str> {
    if !text.contains(ABOVE_CHECKOUT) {
        return Cow::Borrowed(text);
    }
    let parent = PARENTS[(draw(seed, &["checkout", row]) % PARENTS.len() as u64) as usize];
    Cow::Owned(text.replace(ABOVE_CHECKOUT, parent))
}

fn replaced<'a>(text: Cow<'a, str>, places: &[Range<usize>], word: &str) -> Cow<'a, str> {
    if places.is_empty() { text } else { Cow::Owned(with(&text, places, word)) }
}

/// `git@host:path` is no person's address, examples are nobody's, and a file is none.
fn without_addresses(text: &str) -> String {
    const FILES: [&str; 12] = ["png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "js", "ts", "rs", "py", "json"];
    let replace = |found: &Captures<'_>| {
        let address = &found[0];
        let is_nobodys = address.starts_with("git@") || address.contains("@example.") || FILES.contains(&&found["top"]);
        if is_nobodys { address.to_owned() } else { "user@example.com".to_owned() }
    };
    EMAIL.replace_all(text, replace).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::homes::foreign_home;
    use super::*;

    fn places(folder: &str, texts: &[&str]) -> Places {
        Places::of(Some(folder), texts.iter().copied())
    }

    #[test]
    fn moves_the_checkout_to_another_folder_in_each_row() {
        let places = places("/home/alice/widgets", &[]);
        let hidden = places.hide("/home/alice/widgets/src");
        let settled: BTreeSet<_> = (0..60).map(|row| settle(&hidden, &row.to_string(), 7).into_owned()).collect();
        assert_eq!(settled.len(), PARENTS.len());
        assert!(settled.iter().all(|path| path.ends_with("/widgets/src") && foreign_home(path).is_none()));
    }

    #[test]
    fn writes_every_path_below_it_in_the_same_way() {
        let places = places("/home/alice/widgets", &[]);
        let folder = places.folder().unwrap();
        assert_eq!(places.hide("cat /home/alice/widgets/src/a.rs"), format!("cat {folder}/src/a.rs"));
        assert_eq!(places.hide("in /home/alice/widgets."), format!("in {folder}."));
        assert_eq!(places.hide("/home/alice/widgets-old/a"), "/home/user/widgets-old/a");
    }

    #[test]
    fn hides_homes_and_their_owners() {
        let places = places("/srv/alicia/widgets", &["see /Users/alicia/notes"]);
        assert_eq!(places.hide("-rw-r--r-- 1 alicia staff a.rs"), "-rw-r--r-- 1 user staff a.rs");
        assert_eq!(places.hide(r"C:\Users\Bob\x and C:\\Users\\Bob\\x"), r"C:\Users\user\x and C:\\Users\\user\\x");
        assert_eq!(places.hide("ls /root/.cargo"), "ls /home/user/.cargo");
        assert_eq!(places.hide("run -v /root:/root x"), "run -v /home/user:/home/user x");
        assert_eq!(places.hide("src/root/mod.rs and /srv/root/x"), "src/root/mod.rs and /srv/root/x");
        assert_eq!(places.hide("mail a.person@widgets.dev"), "mail user@example.com");
        assert_eq!(places.hide("git@github.com:acme/widgets.git"), "git@github.com:acme/widgets.git");
    }

    #[test]
    fn names_the_checkout_in_the_system_message_as_everywhere() {
        let places = places("/home/alicia/alicia-tools", &[]);
        assert_eq!(places.hide("/home/alicia/alicia-tools/a.rs"), format!("{}/a.rs", places.folder().unwrap()));
        assert!(!places.folder().unwrap().contains("alicia"));
    }

    #[test]
    fn leaves_common_words_that_are_somebodys_account() {
        let places = places("/home/dev/widgets", &[]);
        assert_eq!(places.hide("npm run dev"), "npm run dev");
        assert_eq!(places.hide("/home/dev/x"), "/home/user/x");
    }

    #[test]
    fn changes_no_path_that_only_ends_like_one() {
        let places = places("/app", &["ls components/home/Hero.tsx"]);
        for text in ["src/app/main.ts", "components/home/Hero.tsx", "Hero.tsx", "icon@2x.png", "lodash@4.17.21-next.rc"]
        {
            assert_eq!(places.hide(text), text);
        }
        assert_eq!(places.hide("cat /app/main.ts"), format!("cat {}/main.ts", places.folder().unwrap()));
    }

    #[test]
    fn moves_a_checkout_on_windows() {
        let places = places(r"C:\Users\Bob Builder\widgets", &[]);
        let folder = places.folder().unwrap();
        assert!(folder.ends_with("/widgets"));
        assert_eq!(places.hide(r"type C:\Users\Bob Builder\widgets\a.rs"), format!(r"type {folder}\a.rs"));
        assert_eq!(places.hide(r"by Bob Builder"), "by user");
    }
}

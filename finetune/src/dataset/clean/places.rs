//! Whose computer it was: home folders, user names, addresses, and the folder of the checkout.
//!
//! A model that sees one folder in most of its rows writes that folder into everybody's paths. So the checkout's folder becomes
//! another one in each row, which the system message names: what is left to learn is to take it from there.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Captures, NoExpand, Regex, RegexBuilder};

use crate::dataset::row::draw;

/// Who everybody becomes.
pub(super) const OWNER: &str = "user";

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

static HOME: LazyLock<Regex> = LazyLock::new(|| {
    let pattern =
        r"(?P<before>/home/|/Users/|(?i:[a-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)))(?P<owner>[A-Za-z0-9][A-Za-z0-9._-]*)";
    Regex::new(pattern).expect("the pattern is constant")
});
static ROOT_HOME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(^|[^A-Za-z0-9_./-])/root(/|$|[^A-Za-z0-9_.-])").expect("the pattern is constant"));
static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b")
        .expect("the pattern is constant")
});

/// What of one session is replaced by what.
#[derive(Debug)]
pub(crate) struct Places {
    folder: Option<(Regex, String)>,
    names: Option<Regex>,
}

impl Places {
    /// `folder` is that of the checkout, `texts` are all of the session's: who is named in a path is a user wherever named.
    pub(crate) fn of<'a>(folder: Option<&'a str>, texts: impl Iterator<Item = &'a str>) -> Self {
        let mut names = BTreeSet::new();
        for text in folder.into_iter().chain(texts) {
            names.extend(HOME.captures_iter(text).map(|found| found["owner"].trim_end_matches('.').to_owned()));
        }
        names.retain(|name| name.len() > 2 && !COMMON.contains(&name.to_ascii_lowercase().as_str()));
        let names = (!names.is_empty()).then(|| {
            let names = names.iter().map(|name| regex::escape(name)).collect::<Vec<_>>().join("|");
            RegexBuilder::new(&format!(r"\b(?:{names})\b"))
                .size_limit(1 << 24)
                .build()
                .expect("escaped names are a pattern")
        });
        let folder = folder.and_then(checkout).map(|(pattern, name)| {
            let name = names.as_ref().map_or(Cow::Borrowed(name), |names| names.replace_all(name, NoExpand(OWNER)));
            (pattern, format!("{ABOVE_CHECKOUT}/{name}"))
        });
        Self { folder, names }
    }

    /// The checkout's folder, as [`settle`] reads it.
    pub(crate) fn folder(&self) -> Option<&str> {
        self.folder.as_ref().map(|(_, folder)| folder.as_str())
    }

    pub(crate) fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        if let Some((pattern, folder)) = &self.folder {
            let replaced = pattern.replace_all(&text, |found: &Captures<'_>| format!("{folder}{}", &found[1]));
            text = Cow::Owned(replaced.into_owned());
        }
        text = replaced(text, &HOME, |text| {
            HOME.replace_all(text, |found: &Captures<'_>| format!("{}{OWNER}", &found["before"])).into_owned()
        });
        // Two that share what stands between them are found one after the other.
        while ROOT_HOME.is_match(&text) {
            text = Cow::Owned(ROOT_HOME.replace_all(&text, "${1}/home/user${2}").into_owned());
        }
        text = replaced(text, &EMAIL, without_addresses);
        if let Some(names) = &self.names {
            text = replaced(text, names, |text| names.replace_all(text, NoExpand(OWNER)).into_owned());
        }
        text
    }
}

/// The pattern of the checkout's folder, and its last name. A folder at the top is nobody's, and would be found in everything.
fn checkout(folder: &str) -> Option<(Regex, &str)> {
    let folder = folder.trim_end_matches('/');
    let (parent, name) = folder.rsplit_once('/')?;
    let is_home = HOME.find(folder).is_some_and(|home| home.end() == folder.len());
    if parent.is_empty() && name.len() < 3 || is_home || name.is_empty() {
        return None;
    }
    let pattern = format!(r"{}(/|$|[^A-Za-z0-9_.-]|\.\s|\.$)", regex::escape(folder));
    Some((Regex::new(&pattern).ok()?, name))
}

/// Gives the checkout its place in a row.
pub(crate) fn settle<'a>(text: &'a str, row: &str, seed: u64) -> Cow<'a, str> {
    if !text.contains(ABOVE_CHECKOUT) {
        return Cow::Borrowed(text);
    }
    let parent = PARENTS[(draw(seed, &["checkout", row]) % PARENTS.len() as u64) as usize];
    Cow::Owned(text.replace(ABOVE_CHECKOUT, parent))
}

fn replaced<'a>(text: Cow<'a, str>, pattern: &Regex, replace: impl Fn(&str) -> String) -> Cow<'a, str> {
    if pattern.is_match(&text) { Cow::Owned(replace(&text)) } else { text }
}

/// `git@host:path` is no person's address, and examples are nobody's.
fn without_addresses(text: &str) -> String {
    let replace = |found: &Captures<'_>| {
        let address = &found[0];
        let is_nobodys = address.starts_with("git@") || address.contains("@example.");
        if is_nobodys { address.to_owned() } else { "user@example.com".to_owned() }
    };
    EMAIL.replace_all(text, replace).into_owned()
}

/// The first home folder in a text that is not everybody's.
pub(crate) fn foreign_home(text: &str) -> Option<&str> {
    let home = HOME.captures_iter(text).find(|found| &found["owner"] != OWNER);
    home.map(|found| found.get(0).map_or("", |whole| whole.as_str()))
        .or_else(|| ROOT_HOME.find(text).map(|found| found.as_str()))
}

#[cfg(test)]
mod tests {
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
    fn finds_a_home_that_was_left() {
        assert_eq!(foreign_home("x /home/alice/y"), Some("/home/alice"));
        assert_eq!(foreign_home("x /home/user/y, /opt/root/z"), None);
        assert!(foreign_home("cat /root/x").is_some());
    }
}

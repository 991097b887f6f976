//! What a person may set: `settings.toml` in the folder `config` of the home. Every value has a default, so that the file need not
//! be there; a key that nobody knows is an error, so that a misspelt limit is not taken for none.
//!
//! This module reads and names; what a limit means is `store::retention`'s and the server's.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};

use crate::home::Home;

/// The file's name in the folder.
pub const FILE_NAME: &str = "settings.toml";

/// What `up` writes where there is no file: every key with its default, commented out.
pub const TEMPLATE: &str = include_str!("settings.toml");

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub retention: Retention,
    pub disk: Disk,
    pub recall: Recall,
    pub lessons: Lessons,
    pub backup: Backup,
    pub server: Server,
    pub database: Database,
    pub logs: Logs,
}

/// How long what is kept, and how much.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    pub outputs_days: u32,
    pub calls_days: u32,
    pub prompts_days: u32,
    pub project_max_bytes: ByteSize,
    /// By the project's name; what is not set there is as above.
    pub projects: BTreeMap<String, ProjectRetention>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProjectRetention {
    pub outputs_days: Option<u32>,
    pub calls_days: Option<u32>,
    pub prompts_days: Option<u32>,
    pub max_bytes: Option<ByteSize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disk {
    /// Above this size of the database only metadata is kept.
    pub ceiling_bytes: ByteSize,
}

/// What an agent is told without having asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recall {
    /// At a session's start.
    pub brief: bool,
    /// With a prompt.
    pub prompt_hits: bool,
}

/// What is said about a call before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lessons {
    /// Whether calls are held against the lessons at all.
    pub gate: bool,
}

/// Where backups go, how many stay, and who can read them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Backup {
    /// An absolute path; empty is `backups` in the home.
    pub folder: PathBuf,
    /// Of those that a schedule makes: the newest of so many days, weeks and months.
    pub daily: usize,
    pub weekly: usize,
    pub monthly: usize,
    /// Public keys of age (`age1...`): only who has one of the secret keys can restore.
    pub recipients: Vec<String>,
    /// A file with the passphrase to encrypt with instead; empty is none.
    pub passphrase_file: PathBuf,
}

/// How other machines reach the server; without an address, not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Address and port; empty is none. Beside the loopback address, which stays as it is.
    pub bind: String,
    /// The certificate with its chain, in PEM.
    pub tls_certificate: PathBuf,
    pub tls_key: PathBuf,
    /// The names by which other machines reach it.
    pub hosts: Vec<String>,
}

/// How a server uses its database; read at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// The most connections for all but events, which have [`EVENT_CONNECTIONS`] of their own.
    #[serde(deserialize_with = "enough")]
    pub connections: u32,
    /// When Postgres gives up on a statement; 0 is never.
    pub statement_timeout_seconds: u32,
}

/// Two for each of the loops that write events: one may still be cleaning up after a transaction that broke off.
pub const EVENT_CONNECTIONS: u32 = 4;
/// Fewer would have searches wait for the worker.
const FEWEST_CONNECTIONS: u32 = 3;

/// How the server logs, where it logs into files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Logs {
    /// A file that is longer becomes an older one.
    pub max_bytes: ByteSize,
    /// So many older ones stay.
    pub files: usize,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One line an event, for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The limits of one project. 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub outputs_days: u32,
    pub calls_days: u32,
    pub prompts_days: u32,
    pub max_bytes: u64,
}

/// A size: a number of bytes, or text such as `"10 GiB"` or `"500 MB"`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ByteSize(pub u64);

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("cannot read `{path}`")]
    Read { path: PathBuf, source: io::Error },
    #[error("`{path}` does not hold settings: {message}")]
    Content { path: PathBuf, message: String },
}

impl SettingsError {
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "make the file readable for the user that the server runs as",
            Self::Content { .. } => "docs/configuration.md lists the keys; without the file the defaults count",
        }
    }
}

/// The folder with the files that a person edits: `AGENT_MEMORY_CONFIG`, else `config` in the home.
#[allow(clippy::disallowed_methods, reason = "the one place that reads where the settings are")]
pub fn folder(home: &Home) -> PathBuf {
    let named = std::env::var_os("AGENT_MEMORY_CONFIG").map(PathBuf::from).filter(|path| path.is_absolute());
    named.unwrap_or_else(|| home.config())
}

impl Settings {
    /// Reads the file in that folder; without one everything is as by default.
    pub fn read(folder: &Path) -> Result<Self, SettingsError> {
        let path = folder.join(FILE_NAME);
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).map_err(|message| SettingsError::Content { path, message }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(SettingsError::Read { path, source }),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].lines().count().max(1));
            let place = line.map(|line| format!(" (line {line})")).unwrap_or_default();
            format!("{}{place}", error.message())
        })
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            outputs_days: 90,
            calls_days: 0,
            prompts_days: 0,
            project_max_bytes: ByteSize(0),
            projects: BTreeMap::new(),
        }
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self { ceiling_bytes: ByteSize(10 << 30) }
    }
}

impl Default for Recall {
    fn default() -> Self {
        Self { brief: true, prompt_hits: true }
    }
}

impl Default for Lessons {
    fn default() -> Self {
        Self { gate: true }
    }
}

impl Default for Logs {
    fn default() -> Self {
        Self { max_bytes: ByteSize(10_000_000), files: 3, format: LogFormat::Text }
    }
}

impl Default for Backup {
    fn default() -> Self {
        Self {
            folder: PathBuf::new(),
            daily: 7,
            weekly: 4,
            monthly: 6,
            recipients: Vec::new(),
            passphrase_file: PathBuf::new(),
        }
    }
}

impl Default for Database {
    fn default() -> Self {
        Self { connections: 8, statement_timeout_seconds: 30 }
    }
}

fn enough<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let connections = u32::deserialize(deserializer)?;
    if connections < FEWEST_CONNECTIONS {
        let message = format!("{connections} connections are too few: at least {FEWEST_CONNECTIONS} are needed");
        return Err(serde::de::Error::custom(message));
    }
    Ok(connections)
}

impl Retention {
    /// The limits of the project of that name.
    pub fn limits_of(&self, project: &str) -> Limits {
        let own = self.projects.iter().find(|(name, _)| name.eq_ignore_ascii_case(project)).map(|(_, own)| own);
        let own = own.cloned().unwrap_or_default();
        Limits {
            outputs_days: own.outputs_days.unwrap_or(self.outputs_days),
            calls_days: own.calls_days.unwrap_or(self.calls_days),
            prompts_days: own.prompts_days.unwrap_or(self.prompts_days),
            max_bytes: own.max_bytes.unwrap_or(self.project_max_bytes).0,
        }
    }
}

impl ByteSize {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            "kib" | "k" => 1 << 10,
            "mib" | "m" => 1 << 20,
            "gib" | "g" => 1 << 30,
            "tib" | "t" => 1 << 40,
            _ => return None,
        };
        let number: f64 = number.parse().ok()?;
        Some(Self((number * factor as f64) as u64))
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a size such as `\"10 GiB\"`, or a number of bytes")]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(bytes) => Ok(Self(bytes)),
            Written::Text(text) => Self::parse(&text).ok_or_else(|| {
                serde::de::Error::custom(format!("`{text}` is no size: expected one such as `10 GiB` or `500 MB`"))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_a_default_and_the_template_shows_it() {
        assert_eq!(Settings::read(Path::new("/nowhere/at/all")).unwrap(), Settings::default());
        assert_eq!(Settings::parse(TEMPLATE).unwrap(), Settings::default());
        // An example, which is no default, is set back from the margin.
        let shown: String = TEMPLATE
            .lines()
            .filter_map(|line| match line.strip_prefix("# ") {
                Some(shown) => Some(shown).filter(|shown| shown.contains(" = ") && !shown.starts_with(' ')),
                None => Some(line).filter(|line| line.starts_with('[')),
            })
            .flat_map(|line| [line, "\n"])
            .collect();
        assert_eq!(Settings::parse(&shown).unwrap(), Settings::default(), "{shown}");
        assert!(
            [
                "outputs_days",
                "calls_days",
                "prompts_days",
                "project_max_bytes",
                "ceiling_bytes",
                "brief",
                "prompt_hits",
                "folder",
                "daily",
                "weekly",
                "monthly",
                "recipients",
                "passphrase_file",
                "bind",
                "tls_certificate",
                "tls_key",
                "hosts",
                "connections",
                "statement_timeout_seconds",
                "max_bytes",
                "files",
                "format"
            ]
            .iter()
            .all(|key| shown.contains(key))
        );
    }

    #[test]
    fn a_project_has_its_own_limits_where_they_are_set() {
        let text = "[retention]\noutputs_days = 30\nproject_max_bytes = \"1 GiB\"\n[retention.projects.\"big/one\"]\n\
                    calls_days = 7\nmax_bytes = 500";
        let retention = Settings::parse(text).unwrap().retention;
        let own = retention.limits_of("Big/One");
        assert_eq!(own, Limits { outputs_days: 30, calls_days: 7, prompts_days: 0, max_bytes: 500 });
        assert_eq!(retention.limits_of("other").max_bytes, 1 << 30);
    }

    #[test]
    fn names_the_key_that_it_does_not_know() {
        for (text, told) in [
            ("[retention]\ncall_days = 3", "call_days"),
            ("[disc]\n", "disc"),
            ("[disk]\nceiling_bytes = \"much\"", "much"),
            ("[retention]\nprompts_days = -1", "-1"),
            ("[database]\nconnections = 2", "at least 3"),
        ] {
            let message = Settings::parse(text).unwrap_err();
            assert!(message.contains(told) && message.contains("line"), "{message}");
        }
    }

    #[test]
    fn reads_sizes_as_people_write_them() {
        for (text, bytes) in [("10 GiB", 10 << 30), ("500MB", 500_000_000), ("1.5k", 1_536), ("42", 42)] {
            assert_eq!(ByteSize::parse(text), Some(ByteSize(bytes)));
        }
        assert_eq!(ByteSize::parse("10 gallons"), None);
    }
}

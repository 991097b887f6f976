//! The envelope: one JSON object that carries an agent's event, unread, together with what only the hook can know.
//!
//! It is the body of the request and the content of a spool file, under the same event id, so that an event which
//! arrives on both ways is one event.

use std::fmt::Write;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::git::Repository;

/// An event on its way, in the first version of the format.
pub(crate) struct Envelope {
    json: String,
    file_name: String,
}

/// What an envelope is made of.
pub(crate) struct Parts<'a> {
    pub(crate) agent: &'a str,
    pub(crate) event: &'a str,
    pub(crate) occurred_at: SystemTime,
    pub(crate) cwd: Option<&'a Path>,
    pub(crate) repository: Option<&'a Repository>,
    /// The agent's own JSON object, taken as it is.
    pub(crate) payload: &'a str,
}

impl Envelope {
    pub(crate) fn new(parts: &Parts<'_>) -> Self {
        Self::with_id(&format_id(random_bytes()), parts)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.json.as_bytes()
    }

    /// The name of its spool file. Names sort by time.
    pub(crate) fn file_name(&self) -> &str {
        &self.file_name
    }

    fn with_id(event_id: &str, parts: &Parts<'_>) -> Self {
        let occurred_at_us = parts.occurred_at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
        let mut json = String::with_capacity(parts.payload.len() + 1024);
        json.push_str(r#"{"envelope":1,"event_id":""#);
        json.push_str(event_id);
        json.push_str(r#"","agent":"#);
        push_string(&mut json, parts.agent);
        json.push_str(r#","event":"#);
        push_string(&mut json, parts.event);
        let _ = write!(json, r#","occurred_at_us":{occurred_at_us},"cwd":"#);
        push_path(&mut json, parts.cwd);
        json.push_str(r#","git":"#);
        push_repository(&mut json, parts.repository);
        json.push_str(r#","payload":"#);
        json.push_str(parts.payload);
        json.push('}');
        Self { json, file_name: format!("{occurred_at_us:020}-{event_id}.json") }
    }
}

fn push_repository(json: &mut String, repository: Option<&Repository>) {
    let Some(repository) = repository else {
        json.push_str("null");
        return;
    };
    json.push_str(r#"{"root":"#);
    push_path(json, Some(&repository.root));
    json.push_str(r#","common_dir":"#);
    push_path(json, Some(&repository.common_dir));
    let members = [("remote_url", &repository.remote_url), ("branch", &repository.branch), ("head", &repository.head)];
    for (name, value) in members {
        let _ = write!(json, r#","{name}":"#);
        push_optional(json, value.as_deref());
    }
    let _ = write!(json, r#","worktree":{}"#, repository.is_worktree);
    let members = [("created_at_us", repository.instance.created_at_us), ("inode", repository.instance.inode)];
    for (name, value) in members {
        let _ = match value {
            Some(number) => write!(json, r#","{name}":{number}"#),
            None => write!(json, r#","{name}":null"#),
        };
    }
    json.push('}');
}

/// Paths that are no Unicode lose the bytes that are not.
fn push_path(json: &mut String, path: Option<&Path>) {
    push_optional(json, path.map(Path::to_string_lossy).as_deref());
}

fn push_optional(json: &mut String, text: Option<&str>) {
    match text {
        Some(text) => push_string(json, text),
        None => json.push_str("null"),
    }
}

fn push_string(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(json, "\\u{:04x}", u32::from(control));
            }
            other => json.push(other),
        }
    }
    json.push('"');
}

/// A UUID of version 4 in its usual form.
fn format_id(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut id = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        let _ = write!(id, "{byte:02x}");
    }
    id
}

fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    if read.is_err() {
        // Windows has no such file. The standard library's hash keys are random numbers of the system.
        for half in bytes.chunks_mut(8) {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u32(std::process::id());
            half.copy_from_slice(&hasher.finish().to_le_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::git::Instance;

    fn check(parts: &Parts<'_>, expected: &str) {
        assert_eq!(Envelope::with_id("id", parts).json, expected);
    }

    fn parts<'a>() -> Parts<'a> {
        Parts {
            agent: "claude-code",
            event: "Stop",
            occurred_at: UNIX_EPOCH + Duration::from_micros(1_795_968_338_704_123),
            cwd: None,
            repository: None,
            payload: "{ }",
        }
    }

    #[test]
    fn wraps_a_payload_verbatim() {
        check(
            &parts(),
            r#"{"envelope":1,"event_id":"id","agent":"claude-code","event":"Stop","occurred_at_us":1795968338704123,"cwd":null,"git":null,"payload":{ }}"#,
        );
    }

    #[test]
    fn carries_the_repository_with_nulls_for_what_is_unknown() {
        let repository = Repository {
            root: "/w".into(),
            common_dir: "/w/.git".into(),
            remote_url: None,
            branch: Some("main".into()),
            head: None,
            is_worktree: false,
            instance: Instance { created_at_us: Some(7), inode: None },
        };
        check(
            &Parts { cwd: Some(Path::new("/w/src")), repository: Some(&repository), ..parts() },
            r#"{"envelope":1,"event_id":"id","agent":"claude-code","event":"Stop","occurred_at_us":1795968338704123,"cwd":"/w/src","git":{"root":"/w","common_dir":"/w/.git","remote_url":null,"branch":"main","head":null,"worktree":false,"created_at_us":7,"inode":null},"payload":{ }}"#,
        );
    }

    #[test]
    fn escapes_what_json_does_not_allow_in_a_string() {
        let mut json = String::new();
        push_string(&mut json, "C:\\a \"b\"\n\u{1}ü");
        assert_eq!(json, r#""C:\\a \"b\"\u000a\u0001ü""#);
    }

    #[cfg(unix)]
    #[test]
    fn keeps_what_is_readable_of_a_path_that_is_no_unicode() {
        use std::os::unix::ffi::OsStrExt;
        let mut json = String::new();
        push_path(&mut json, Some(Path::new(std::ffi::OsStr::from_bytes(b"/a\xff"))));
        assert_eq!(json, "\"/a\u{fffd}\"");
    }

    #[test]
    fn marks_its_ids_as_random_uuids() {
        assert_eq!(format_id([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_ne!(random_bytes(), random_bytes());
    }

    #[test]
    fn names_files_so_that_they_sort_by_time() {
        let early = Envelope::with_id("b", &Parts { occurred_at: UNIX_EPOCH + Duration::from_secs(9), ..parts() });
        let late = Envelope::with_id("a", &Parts { occurred_at: UNIX_EPOCH + Duration::from_secs(10), ..parts() });
        assert_eq!(early.file_name(), "00000000000009000000-b.json");
        assert!(early.file_name() < late.file_name());
    }
}

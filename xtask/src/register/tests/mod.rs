//! Registration with Claude Code as a whole, in folders of their own. What holds for every agent is in `every_agent`.

use std::fs;

use super::file::{Saved, TextFile};
use super::report::Outcome;
use super::*;

mod every_agent;

/// A user's folder and a registration in it.
struct Place {
    folder: tempfile::TempDir,
    registration: Registration,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let registration = Registration {
            agent: Agent::Claude,
            hook_program: "/opt/am/bin/agent-memory-hook".into(),
            mcp_program: "/opt/am/bin/agent-memory-mcp".into(),
            around: Surroundings { home: Some(folder.path().into()), ..Default::default() },
        };
        Self { folder, registration }
    }

    fn with(settings: &str, servers: &str) -> Self {
        let place = Self::new();
        fs::create_dir(place.folder.path().join(".claude")).unwrap();
        fs::write(place.settings_path(), settings).unwrap();
        fs::write(place.servers_path(), servers).unwrap();
        place
    }

    fn settings_path(&self) -> PathBuf {
        self.folder.path().join(".claude/settings.json")
    }

    fn servers_path(&self) -> PathBuf {
        self.folder.path().join(".claude.json")
    }

    fn settings(&self) -> String {
        fs::read_to_string(self.settings_path()).unwrap()
    }

    fn servers(&self) -> String {
        fs::read_to_string(self.servers_path()).unwrap()
    }

    fn moved(&self) -> Registration {
        Registration {
            hook_program: "/home/dev/new place/agent-memory-hook".into(),
            mcp_program: "/home/dev/new place/agent-memory-mcp".into(),
            ..self.registration.clone()
        }
    }

    /// Every file in the folder, with its content.
    fn everything(&self) -> Vec<(PathBuf, String)> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    files.push((path.clone(), "folder".to_owned()));
                    folders.push(path);
                } else {
                    files.push((path.clone(), fs::read_to_string(path).unwrap()));
                }
            }
        }
        files.sort();
        files
    }
}

const SETTINGS: &str = r#"{
    // mine
    "model" : "opus",
    "hooks": {
        "Stop": [
            { "hooks": [ {"type":"command","command":"say done"} ] },
        ],
        "Notification": [],
    },
    "permissions": {"allow": ["Bash(ls:*)",   "Read"]}
}
"#;
const SERVERS: &str =
    "{\n  \"numStartups\": 3,\n  \"projects\": {\"/w\": {\"mcpServers\": {}}},\n  \"userID\": \"u\"\n}";

fn outcomes(report: &Report) -> Vec<Outcome> {
    report.files.iter().flat_map(|file| &file.items).map(|item| item.outcome).collect()
}

/// The lines of the second that the first does not have.
fn added_lines<'a>(before: &str, after: &'a str) -> Vec<&'a str> {
    let mut before = before.lines().peekable();
    let added = after.lines().filter(|line| before.next_if(|kept| kept == line).is_none()).collect();
    assert_eq!(before.next(), None, "a line of the user's has changed");
    added
}

#[test]
fn writes_the_reference_registration_into_an_empty_place() {
    let mut place = Place::new();
    place.registration.hook_program = "agent-memory-hook".into();
    let report = place.registration.register().unwrap();
    assert_eq!(place.settings(), include_str!("../../../../hooks/hooks.json"), "hooks/hooks.json must be the same");
    assert_eq!(outcomes(&report), [Outcome::Added; 15]);
    let servers: serde_json::Value = serde_json::from_str(&place.servers()).unwrap();
    let expected = serde_json::json!({"mcpServers": {"agent-memory":
        {"type": "stdio", "command": "/opt/am/bin/agent-memory-mcp", "args": [], "env": {}}}});
    assert_eq!(servers, expected);
}

#[test]
fn registers_every_event_in_exec_form_with_a_time_limit() {
    let place = Place::new();
    place.registration.register().unwrap();
    let settings: serde_json::Value = serde_json::from_str(&place.settings()).unwrap();
    let events = settings["hooks"].as_object().unwrap();
    let names: Vec<_> = events.keys().map(String::as_str).collect();
    let expected = "SessionStart UserPromptSubmit UserPromptExpansion PreToolUse PostToolUse PostToolUseFailure CwdChanged Stop \
        StopFailure SubagentStart SubagentStop PreCompact PostCompact SessionEnd";
    assert_eq!(names.join(" "), expected);
    for (event, groups) in events {
        let handler = serde_json::json!({"type": "command", "command": "/opt/am/bin/agent-memory-hook",
            "args": ["claude-code", event], "timeout": 5});
        assert_eq!(groups[0]["hooks"], serde_json::json!([handler]), "{event}");
        let without = ["UserPromptSubmit", "UserPromptExpansion", "CwdChanged", "Stop", "StopFailure"];
        let matcher = match event.as_str() {
            // What only reads is not held up.
            "PreToolUse" => Some("Bash|Edit|MultiEdit|Write|NotebookEdit|mcp__.*"),
            event => (!without.contains(&event)).then_some("*"),
        };
        assert_eq!(groups[0].get("matcher").and_then(|matcher| matcher.as_str()), matcher, "{event}");
    }
}

#[test]
fn leaves_every_line_of_the_users_as_it_is() {
    let place = Place::with(SETTINGS, SERVERS);
    place.registration.register().unwrap();
    // A comma has to stand behind what was last.
    let servers = SERVERS.replace("\"u\"\n", "\"u\",\n");
    assert!(added_lines(SETTINGS, &place.settings()).concat().contains("\"SessionStart\""));
    assert!(added_lines(&servers, &place.servers()).concat().contains("\"agent-memory\""));
}

#[test]
fn changes_nothing_the_second_time() {
    let place = Place::with(SETTINGS, SERVERS);
    place.registration.register().unwrap();
    let before = place.everything();
    let report = place.registration.register().unwrap();
    assert_eq!(outcomes(&report), [Outcome::AlreadyThere; 15]);
    assert!(!report.is_changed());
    assert_eq!(place.everything(), before);
}

#[test]
fn unregistering_brings_back_every_byte() {
    for (settings, servers) in [
        (SETTINGS, SERVERS),
        ("{}", "{}\n"),
        ("", "{}"),
        ("{\"hooks\":{}}", "{\"mcpServers\":{}}"),
        ("{\"model\":\"opus\"}", "{\"a\":1,\"mcpServers\":{\"b\":{\"command\":\"c\"}}}"),
        ("\u{feff}{\r\n\t\"model\": \"opus\"\r\n}\r\n", "{\r\n}"),
        ("{\"hooks\":{\"Stop\":[]}}", SERVERS),
    ] {
        let place = Place::with(settings, servers);
        let before = place.everything();
        place.registration.register().unwrap();
        assert_ne!(place.everything(), before);
        let report = place.registration.unregister().unwrap();
        assert_eq!(outcomes(&report), [Outcome::Removed; 15]);
        assert_eq!(place.everything(), before);
    }
}

#[test]
fn unregistering_removes_the_files_that_were_not_there() {
    let place = Place::new();
    place.registration.register().unwrap();
    place.registration.unregister().unwrap();
    assert_eq!(place.everything(), []);
}

#[test]
fn unregistering_brings_back_every_byte_after_a_move_too() {
    let place = Place::with(SETTINGS, SERVERS);
    let before = place.everything();
    place.registration.register().unwrap();
    let report = place.moved().register().unwrap();
    assert_eq!(outcomes(&report), [Outcome::Corrected; 15]);
    assert_eq!(place.settings().matches("agent-memory-hook").count(), 14, "corrected, not doubled");
    assert_eq!(place.settings().matches("/home/dev/new place/agent-memory-hook").count(), 14);
    place.registration.unregister().unwrap();
    assert_eq!(place.everything(), before);
}

#[test]
fn unregistering_keeps_what_the_user_has_changed_since() {
    let place = Place::with(SETTINGS, SERVERS);
    place.registration.register().unwrap();
    fs::write(place.settings_path(), place.settings().replace("opus", "sonnet")).unwrap();
    fs::write(place.servers_path(), place.servers().replace('3', "4")).unwrap();
    place.registration.unregister().unwrap();
    assert_eq!(place.settings(), SETTINGS.replace("opus", "sonnet"));
    let servers: serde_json::Value = serde_json::from_str(&place.servers()).unwrap();
    assert_eq!(servers, serde_json::from_str::<serde_json::Value>(&SERVERS.replace('3', "4")).unwrap());
    assert_eq!(place.everything().len(), 3, "no backup is left");
}

#[test]
fn unregistering_keeps_the_users_hooks_beside_ours() {
    let mixed = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"},
        {"type":"command","command":"\"C:\\x\\agent-memory-hook.exe\" claude-code Stop"}]}],
        "SessionEnd":[{"hooks":[{"type":"command","command":"/old/agent-memory-hook","args":["x"]}]}],
        "Other":[{"hooks":[{"type":"command","command":"agent-memory-hook"}]}]}}"#;
    let place = Place::with(mixed, "{}");
    place.registration.unregister().unwrap();
    let settings: serde_json::Value = serde_json::from_str(&place.settings()).unwrap();
    let expected = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}});
    assert_eq!(settings, expected);
}

#[test]
fn corrects_doubled_entries_and_keeps_the_users_time_limit() {
    let doubled = r#"{"hooks":{"Stop":[
        {"hooks":[{"type":"command","command":"/old/agent-memory-hook","args":["claude-code","Stop"],"timeout":60}]},
        {"hooks":[{"type":"command","command":"/older/agent-memory-hook","args":["claude-code","Stop"]}]}]}}"#;
    let place = Place::with(doubled, "{}");
    let report = place.registration.register().unwrap();
    assert_eq!(outcomes(&report).iter().filter(|outcome| **outcome == Outcome::Corrected).count(), 1);
    let settings: serde_json::Value = serde_json::from_str(&place.settings()).unwrap();
    let expected = serde_json::json!([{"hooks": [{"type": "command", "command": "/opt/am/bin/agent-memory-hook",
        "args": ["claude-code", "Stop"], "timeout": 60}]}]);
    assert_eq!(settings["hooks"]["Stop"], expected);
}

#[track_caller]
fn check_refused(settings: &str, servers: &str, expected: &str) {
    let place = Place::with(settings, servers);
    let before = place.everything();
    let error = crate::output::report(&place.registration.register().unwrap_err());
    assert!(error.contains(expected), "{error}");
    assert_eq!(place.everything(), before, "neither file was touched");
}

#[test]
fn touches_nothing_where_a_file_cannot_be_understood() {
    check_refused("{\"model\": }", "{}", "is not valid JSON and was left as it is");
    check_refused("{}", "{\"a\": 1", "is not valid JSON and was left as it is");
    check_refused("[]", "{}", "does not hold an object");
    check_refused("{'a': 1}", "{}", "is not valid JSON");
    check_refused("{\"hooks\": null}", "{}", "`hooks` is there, but is not an object");
    check_refused("{\"hooks\": {\"Stop\": {}}}", "{}", "`Stop` is there, but is not an array");
    let other = r#"{"mcpServers": {"agent-memory": {"type": "http", "url": "http://127.0.0.1:3377/mcp"}}}"#;
    check_refused("{}", other, "hint: remove it with `claude mcp remove --scope user agent-memory`");
}

#[test]
fn unregistering_leaves_a_server_of_the_same_name_that_is_not_ours() {
    let other = r#"{"mcpServers": {"agent-memory": {"command": "python3", "args": ["-m", "agent_memory"]}}}"#;
    let place = Place::with("{}", other);
    let report = place.registration.unregister().unwrap();
    assert_eq!(outcomes(&report), []);
    assert_eq!(place.servers(), other);
}

#[test]
fn knows_what_is_registered() {
    let place = Place::new();
    let (hook, mcp) = (&place.registration.hook_program, &place.registration.mcp_program);
    let state = place.registration.state().unwrap();
    assert!(!state.is_registered() && !state.is_complete(hook, mcp));
    assert_eq!(state.hooks.len(), 14);

    let mut place = place;
    let bin = place.folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    place.registration.hook_program = bin.join("agent-memory-hook");
    place.registration.mcp_program = bin.join("agent-memory-mcp");
    place.registration.register().unwrap();
    let (hook, mcp) = (&place.registration.hook_program, &place.registration.mcp_program);
    let state = place.registration.state().unwrap();
    assert!(state.is_registered() && !state.is_complete(hook, mcp), "the programs are not there");
    fs::write(hook, "").unwrap();
    fs::write(mcp, "").unwrap();
    let state = place.registration.state().unwrap();
    assert!(state.is_complete(hook, mcp), "{state:?}");
    assert_eq!(state.mcp.program.as_ref(), Some(mcp));
    assert!(!state.is_complete(Path::new("/elsewhere/agent-memory-hook"), mcp));
}

#[cfg(unix)]
#[test]
fn follows_links_and_keeps_modes() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = Place::with(SETTINGS, SERVERS);
    let (settings, servers) = (&place.settings_path(), &place.servers_path());
    let dotfiles = tempfile::tempdir().unwrap();
    let linked = dotfiles.path().join("claude-settings.json");
    fs::rename(settings, &linked).unwrap();
    symlink(&linked, settings).unwrap();
    fs::set_permissions(&linked, fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(servers, fs::Permissions::from_mode(0o600)).unwrap();

    place.registration.register().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert!(settings.is_symlink());
    assert!(fs::read_to_string(&linked).unwrap().contains("agent-memory-hook"));
    assert_eq!((mode(&linked), mode(servers)), (0o640, 0o600));
    let backup_of = |path: &Path| PathBuf::from(format!("{}.agent-memory-backup", path.display()));
    assert_eq!((mode(&backup_of(settings)), mode(&backup_of(servers))), (0o640, 0o600));
    assert_eq!(fs::read_to_string(backup_of(settings)).unwrap(), SETTINGS);
    assert_eq!(fs::read_dir(dotfiles.path()).unwrap().count(), 1, "no backup among the user's own files");

    place.registration.unregister().unwrap();
    assert!(settings.is_symlink());
    assert_eq!(fs::read_to_string(&linked).unwrap(), SETTINGS);
}

#[cfg(unix)]
#[test]
fn makes_the_file_that_a_link_points_to() {
    let place = Place::new();
    fs::create_dir(place.folder.path().join(".claude")).unwrap();
    let settings = &place.settings_path();
    std::os::unix::fs::symlink("shared-settings.json", settings).unwrap();
    place.registration.register().unwrap();
    assert!(settings.is_symlink());
    assert!(place.folder.path().join(".claude/shared-settings.json").is_file());
}

#[test]
fn sees_that_a_file_was_changed_since_it_was_read() {
    let place = Place::with(SETTINGS, SERVERS);
    let file = TextFile::read(&place.servers_path()).unwrap();
    fs::write(place.servers_path(), "{\"numStartups\": 4}").unwrap();
    assert_eq!(file.save("{}").unwrap(), Saved::ChangedMeanwhile);
    assert_eq!(file.delete().unwrap(), Saved::ChangedMeanwhile);
    assert_eq!(place.servers(), "{\"numStartups\": 4}");
    assert_eq!(place.everything().len(), 3, "nothing unfinished is left");
}

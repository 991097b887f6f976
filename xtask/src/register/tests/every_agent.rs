//! What holds for each agent: an empty home, a home with the user's own entries and comments, a moved installation.

use clap::ValueEnum;

use super::*;

/// A home, and the installation that is registered in it.
struct AgentHome {
    place: Place,
}

impl AgentHome {
    fn of(agent: Agent) -> Self {
        let mut place = Place::new();
        place.registration.agent = agent;
        Self { place }
    }

    /// With the user's own files, as [`foreign_files`] has them.
    fn in_use(agent: Agent) -> Self {
        let home = Self::of(agent);
        for (path, text) in foreign_files(agent) {
            home.write(path, text);
        }
        home
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.place.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.place.folder.path().join(path)).unwrap()
    }

    fn register(&self) -> Report {
        self.place.registration.register().unwrap()
    }

    /// Every file with its text, the home's own path left out.
    fn files(&self) -> String {
        let root = self.place.folder.path().to_str().unwrap();
        let files = self.place.everything().into_iter().filter(|(_, text)| text != "folder");
        let texts = files.map(|(path, text)| format!("=== {}\n{text}\n", path.display()).replace(root, "~"));
        texts.collect::<Vec<_>>().concat().replace(CODE, ".config/Code/User/mcp.json")
    }
}

const CODE: &str = if cfg!(target_os = "macos") {
    "Library/Application Support/Code/User/mcp.json"
} else {
    ".config/Code/User/mcp.json"
};

/// What a user of that agent may have, with comments wherever the agent takes them.
fn foreign_files(agent: Agent) -> &'static [(&'static str, &'static str)] {
    match agent {
        Agent::Claude => &[(".claude/settings.json", SETTINGS), (".claude.json", SERVERS)],
        Agent::Codex => &[
            (
                ".codex/hooks.json",
                "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]}}\n",
            ),
            (
                ".codex/config.toml",
                "# mine\nmodel   = \"gpt\"   # best\n\n[mcp_servers.docs] # theirs\ncommand = 'npx'\nargs = [ \"docs\", ]\n\n\
                 [projects.\"/w\"]\ntrust_level = \"trusted\"\n# the end\n",
            ),
        ],
        Agent::Gemini => &[(
            ".gemini/settings.json",
            "{\n  // mine\n  \"hooks\": {\"AfterTool\": [{\"matcher\": \"x\", \"hooks\": []}], \"disabled\": [\"y\"]},\n  \
             \"mcpServers\": {\"docs\": {\"httpUrl\": \"http://127.0.0.1:1/\"}}\n}\n",
        )],
        Agent::Cursor => &[
            (
                ".cursor/hooks.json",
                "{\n  \"hooks\": {\"stop\": [{\"command\": \"./audit.sh\"}]},\n  \"version\": 1\n}\n",
            ),
            (".cursor/mcp.json", "{\"mcpServers\": {\"docs\": {\"url\": \"http://127.0.0.1:1/\"}}}"),
        ],
        Agent::Copilot => &[
            (".copilot/hooks/mine.json", "{\"version\": 1, \"hooks\": {}}"),
            (".copilot/mcp-config.json", "{\n\t\"mcpServers\": {}\n}"),
        ],
        Agent::Vscode => &[(CODE, "{\r\n\t// mine\r\n\t\"inputs\": [],\r\n}\r\n")],
        Agent::Opencode => &[(
            ".config/opencode/opencode.jsonc",
            "{\n  \"$schema\": \"https://opencode.ai/config.json\", // theirs\n  \"mcp\": {},\n}\n",
        )],
    }
}

fn each(check: impl Fn(Agent)) {
    for agent in Agent::value_variants() {
        check(*agent);
    }
}

#[test]
fn writes_what_the_agent_reads() {
    each(|agent| {
        let home = AgentHome::of(agent);
        let report = home.register();
        assert!(outcomes(&report).iter().all(|outcome| *outcome == Outcome::Added), "{report}");
        insta::assert_snapshot!(format!("{}_in_an_empty_home", agent.name()), home.files());
    });
}

#[test]
fn writes_beside_what_the_user_has() {
    each(|agent| {
        let home = AgentHome::in_use(agent);
        home.register();
        insta::assert_snapshot!(format!("{}_beside_the_users_own", agent.name()), home.files());
    });
}

#[test]
fn a_second_run_changes_nothing() {
    each(|agent| {
        let home = AgentHome::in_use(agent);
        home.register();
        let before = home.place.everything();
        let report = home.register();
        assert!(!report.is_changed() && !outcomes(&report).is_empty(), "{report}");
        assert_eq!(home.place.everything(), before);
    });
}

#[test]
fn undoing_brings_back_every_byte() {
    each(|agent| {
        for home in [AgentHome::of(agent), AgentHome::in_use(agent)] {
            let before = home.place.everything();
            home.register();
            assert_ne!(home.place.everything(), before, "{agent:?}");
            let report = home.place.registration.unregister().unwrap();
            assert!(outcomes(&report).iter().all(|outcome| *outcome == Outcome::Removed), "{report}");
            assert_eq!(home.place.everything(), before, "{agent:?}");
        }
    });
}

#[test]
fn undoing_without_a_backup_takes_our_entries_only() {
    each(|agent| {
        let home = AgentHome::in_use(agent);
        home.register();
        for (path, _) in home.place.everything() {
            if path.extension().is_some_and(|extension| extension == "agent-memory-backup") {
                fs::remove_file(path).unwrap();
            }
        }
        home.place.registration.unregister().unwrap();
        let left = home.files();
        assert!(!left.contains("agent-memory"), "{left}");
        // Containers that were empty before cannot be told from those that are empty now; all else is the user's.
        for kept in kept(agent) {
            assert!(left.contains(kept), "{kept} is lost: {left}");
        }
    });
}

/// Of each file of [`foreign_files`] something that must outlive us.
fn kept(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude => &["// mine", "say done", "\"Notification\": []", "{\"mcpServers\": {}}"],
        Agent::Codex => &["say done", "# mine\nmodel   = \"gpt\"   # best\n", "args = [ \"docs\", ]", "# the end\n"],
        Agent::Gemini => &["// mine", "{\"matcher\": \"x\", \"hooks\": []}", "\"disabled\": [\"y\"]", "httpUrl"],
        Agent::Cursor => &["./audit.sh", "\"version\": 1", "\"url\""],
        Agent::Copilot => &["mine.json"],
        Agent::Vscode => &["// mine", "\"inputs\": []"],
        Agent::Opencode => &["// theirs"],
    }
}

#[test]
fn a_moved_installation_is_corrected_and_undone_to_the_byte() {
    each(|agent| {
        let home = AgentHome::in_use(agent);
        let before = home.place.everything();
        home.register();
        let count = home.files().matches("/opt/am/bin/").count();
        let report = home.place.moved().register().unwrap();
        assert!(outcomes(&report).iter().all(|outcome| *outcome == Outcome::Corrected), "{report}");
        assert_eq!(home.files().matches("/home/dev/new place/agent-memory-").count(), count, "corrected, not doubled");
        assert_eq!(home.files().matches("/opt/am/bin/").count(), 0);
        home.place.moved().unregister().unwrap();
        assert_eq!(home.place.everything(), before, "{agent:?}");
    });
}

#[test]
fn is_complete_once_registered_and_the_programs_are_there() {
    each(|agent| {
        let mut home = AgentHome::of(agent);
        let bin = tempfile::tempdir().unwrap();
        let registration = &mut home.place.registration;
        registration.hook_program = bin.path().join("agent-memory-hook");
        registration.mcp_program = bin.path().join("agent-memory-mcp");
        fs::write(&registration.hook_program, "").unwrap();
        fs::write(&registration.mcp_program, "").unwrap();
        let is_complete = |home: &AgentHome| {
            let Registration { hook_program, mcp_program, .. } = &home.place.registration;
            home.place.registration.state().unwrap().is_complete(hook_program, mcp_program)
        };
        assert!(!is_complete(&home));
        assert!(!home.place.registration.is_used().unwrap(), "{agent:?}");
        home.register();
        assert!(is_complete(&home), "{agent:?}: {:?}", home.place.registration.state());
        assert!(home.place.registration.is_used().unwrap(), "{agent:?}");
    });
}

#[test]
fn touches_nothing_where_a_file_is_broken() {
    each(|agent| {
        let home = AgentHome::in_use(agent);
        let (path, _) = foreign_files(agent).last().unwrap();
        home.write(path, "{ = broken");
        let before = home.place.everything();
        let error = crate::output::report(&home.place.registration.register().unwrap_err());
        assert!(error.contains("and was left as it is") && error.contains("hint: repair the file"), "{error}");
        assert!(home.place.registration.unregister().is_err());
        assert_eq!(home.place.everything(), before, "{agent:?}");
    });
}

#[test]
fn leaves_another_server_of_the_same_name() {
    let servers = [
        (Agent::Codex, ".codex/config.toml", "[mcp_servers.agent-memory]\nurl = \"http://127.0.0.1:1/\"\n"),
        (Agent::Gemini, ".gemini/settings.json", r#"{"mcpServers": {"agent-memory": {"command": "python3"}}}"#),
        (Agent::Opencode, ".config/opencode/opencode.json", r#"{"mcp": {"agent-memory": {"command": ["npx"]}}}"#),
    ];
    for (agent, path, text) in servers {
        let home = AgentHome::of(agent);
        home.write(path, text);
        let error = crate::output::report(&home.place.registration.register().unwrap_err());
        assert!(error.contains("another MCP server has the name `agent-memory`"), "{error}");
        assert!(error.contains("hint: remove it"), "{error}");
        home.place.registration.unregister().unwrap();
        assert_eq!(home.read(path), text);
    }
}

#[test]
fn edits_codex_settings_in_every_form_that_toml_has() {
    for text in [
        "",
        "model = \"gpt\"",
        "\u{feff}model = \"gpt\"\r\n\r\n[mcp_servers]\r\n",
        "# only a comment\n",
        "# only a comment",
        "mcp_servers = { docs = { command = \"npx\" } } # one line\n",
        "mcp_servers.docs.command = \"npx\"\n\n[tui]\n",
        "[mcp_servers.docs]\ncommand = \"npx\"\n\n[mcp_servers.docs.env]\nA = \"1\"\n\n[[profiles]]\n# last\n",
    ] {
        let home = AgentHome::of(Agent::Codex);
        home.write(".codex/config.toml", text);
        home.register();
        let written = home.read(".codex/config.toml");
        assert!(written.contains("/opt/am/bin/agent-memory-mcp"), "{written}");
        let server =
            written.replace("\r\n", "\n").trim_start_matches('\u{feff}').parse::<toml_edit::DocumentMut>().unwrap();
        assert_eq!(server["mcp_servers"]["agent-memory"]["command"].as_str(), Some("/opt/am/bin/agent-memory-mcp"));
        if !text.contains("= {") {
            assert!(written.starts_with(text.trim_end()), "{written}");
            assert_eq!(written.contains("\r\n"), text.contains("\r\n"));
            assert_eq!(written.replace("\r\n", "").contains('\n'), !text.contains("\r\n"));
        }
        assert!(!home.register().is_changed());
        home.place.registration.unregister().unwrap();
        assert_eq!(home.read(".codex/config.toml"), text);
    }
}

#[test]
fn keeps_what_codex_has_written_meanwhile() {
    let home = AgentHome::in_use(Agent::Codex);
    home.register();
    let path = ".codex/config.toml";
    home.write(path, &format!("{}\n[hooks.state.\"a\"]\ntrusted_hash = \"b\"\n", home.read(path)));
    home.place.registration.unregister().unwrap();
    let left = home.read(path);
    let original = foreign_files(Agent::Codex)[1].1;
    for line in original.lines().chain(["trusted_hash = \"b\""]) {
        assert!(left.contains(line), "{line} is lost: {left}");
    }
    assert!(!left.contains("agent-memory"), "{left}");
}

#[test]
fn honours_the_folders_that_the_user_has_chosen() {
    let home = AgentHome::of(Agent::Codex);
    let chosen = home.place.folder.path().join("chosen");
    let around = Surroundings {
        codex_home: Some(chosen.clone().into()),
        copilot_home: Some(chosen.clone().into()),
        gemini_cli_home: Some(chosen.clone().into()),
        xdg_config_home: Some(chosen.clone().into()),
        ..home.place.registration.around.clone()
    };
    for agent in [Agent::Codex, Agent::Gemini, Agent::Copilot, Agent::Opencode] {
        let registration = Registration { agent, around: around.clone(), ..home.place.registration.clone() };
        for file in registration.register().unwrap().files {
            assert!(file.path.starts_with(&chosen), "{}", file.path.display());
        }
    }
}

#[test]
fn leaves_a_plugin_of_the_same_name_that_is_not_ours() {
    let home = AgentHome::of(Agent::Opencode);
    let path = ".config/opencode/plugins/agent-memory.js";
    home.write(path, "export default 1;\n");
    let error = crate::output::report(&home.place.registration.register().unwrap_err());
    assert!(error.contains("a script that is not ours has this name"), "{error}");
    home.place.registration.unregister().unwrap();
    assert_eq!(home.read(path), "export default 1;\n");
}

fn vscode_of(home: &AgentHome) -> Registration {
    Registration { agent: Agent::Vscode, ..home.place.registration.clone() }
}

#[test]
fn vscode_gets_no_hooks_of_its_own_beside_those_that_it_runs_already() {
    for agent in [Agent::Claude, Agent::Copilot] {
        let home = AgentHome::of(agent);
        let own = vscode_of(&home).register().unwrap();
        assert_eq!(own.files.len(), 2, "{own}");
        home.register();
        let report = vscode_of(&home).register().unwrap();
        let reason = format!("VS Code runs the hooks of {}", if agent == Agent::Claude { "Claude" } else { "Copilot" });
        assert!(report.unavailable.iter().any(|absent| absent.reason.starts_with(&reason)), "{report}");
        assert!(!home.files().contains("agent-memory-hook' vscode"), "{}", home.files());
        assert!(vscode_of(&home).state().unwrap().hooks.is_empty());
    }
}

#[test]
fn unregistering_vscode_leaves_the_hooks_of_copilot() {
    let home = AgentHome::of(Agent::Copilot);
    home.register();
    let before = home.place.everything();
    vscode_of(&home).register().unwrap();
    vscode_of(&home).unregister().unwrap();
    assert_eq!(home.place.everything(), before);
}

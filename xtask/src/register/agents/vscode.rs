//! VS Code: it runs the hooks of Claude Code's settings and of Copilot CLI's folder, so that hooks of its own are written, into
//! that folder, only where there are neither. MCP servers stand in the user's `mcp.json`.

use serde_json::{Value, json};

use super::super::command::Quoting;
use super::super::content::Content;
use super::super::hooks::{Event, HookFormat, Matcher, Nesting, Ownership, Version};
use super::super::part::{Part, Presence};
use super::super::report::Unavailable;
use super::super::servers::ServerFormat;
use super::super::surroundings::{Location, Surroundings};
use super::{Profile, Programs, TIMEOUT_S, claude, copilot};

pub(super) fn profile(around: &Surroundings, programs: &Programs) -> anyhow::Result<Profile> {
    let mut hooks = Part::new(copilot::hooks(around)?, Content::hooks(&HOOKS, &programs.hook));
    let mut unavailable = Vec::new();
    let runs_hooks_of_others = match others(around)? {
        Some(others) => {
            hooks.presence = Presence::Unwanted;
            unavailable.push(Unavailable::new("hooks of its own", others));
            true
        }
        None => false,
    };
    unavailable.push(Unavailable::new(
        "PostToolUseFailure, SessionEnd, PostCompact, StopFailure, UserPromptExpansion, CwdChanged",
        "VS Code has no such events",
    ));
    let parts = vec![hooks, Part::new(servers(around)?, Content::server(&SERVERS, &programs.mcp))];
    let remarks =
        if runs_hooks_of_others { vec![] } else { vec!["Copilot CLI, where it is used, runs these hooks too"] };
    Ok(Profile { parts, unavailable, remarks })
}

/// Why hooks of VS Code's own would run twice, if so.
fn others(around: &Surroundings) -> anyhow::Result<Option<&'static str>> {
    let has_hooks = |location: Location, format: &'static HookFormat| {
        // A file that cannot be read has no hooks that would run.
        let text = std::fs::read_to_string(location.path()).unwrap_or_default();
        Content::hooks(format, "").found_in(&text).is_ok_and(|found| found.is_some())
    };
    if has_hooks(claude::settings(around)?, &claude::HOOKS) {
        return Ok(Some("VS Code runs the hooks of Claude Code's settings"));
    }
    if has_hooks(copilot::hooks(around)?, &COPILOTS_OWN) {
        return Ok(Some("VS Code runs the hooks of Copilot CLI"));
    }
    Ok(None)
}

/// `%APPDATA%\Code\User`, `~/Library/Application Support/Code/User` or `~/.config/Code/User`.
pub(super) fn servers(around: &Surroundings) -> anyhow::Result<Location> {
    if let (true, Some(folder)) = (cfg!(windows), &around.app_data) {
        return Ok(Location::new(folder, "Code/User/mcp.json"));
    }
    if cfg!(target_os = "macos") {
        return around.find(None, "", "Library/Application Support/Code/User/mcp.json");
    }
    around.find(around.xdg_config_home.as_ref(), "Code/User/mcp.json", ".config/Code/User/mcp.json")
}

static HOOKS: HookFormat = HookFormat {
    agent: "vscode",
    events: &[
        Event { name: "SessionStart", matcher: Matcher::Absent },
        Event { name: "UserPromptSubmit", matcher: Matcher::Absent },
        Event { name: "PostToolUse", matcher: Matcher::Absent },
        Event { name: "SubagentStart", matcher: Matcher::Absent },
        Event { name: "SubagentStop", matcher: Matcher::Absent },
        Event { name: "PreCompact", matcher: Matcher::Absent },
        Event { name: "Stop", matcher: Matcher::Absent },
    ],
    nesting: Nesting::Flat,
    version: Version::One,
    ownership: Ownership::Named,
    handler,
};

/// Copilot CLI's hooks, told from VS Code's in the same file.
static COPILOTS_OWN: HookFormat = HookFormat {
    agent: "copilot-cli",
    events: &[],
    nesting: Nesting::Flat,
    version: Version::One,
    ownership: Ownership::Named,
    handler,
};

static SERVERS: ServerFormat = ServerFormat {
    container: "servers",
    entry: |program| json!({ "type": "stdio", "command": program, "args": [] }),
    removal: "remove it with VS Code's command `MCP: List Servers`",
};

fn handler(program: &str, event: &str) -> Value {
    let command = Quoting::here(Quoting::PowerShell).line(program, &[HOOKS.agent, event]);
    json!({ "type": "command", "command": command, "timeout": TIMEOUT_S })
}

//! GitHub Copilot CLI: hooks in a file of our own in its `hooks` folder, MCP servers in `mcp-config.json`.
//!
//! Event names with a capital letter ask for payloads with underscores, which Claude Code's are like. Never registered:
//! `PreToolUse` and `PermissionRequest`, where a hook that fails denies the call.

use serde_json::{Value, json};

use super::super::command::Quoting;
use super::super::content::Content;
use super::super::hooks::{Event, HookFormat, Matcher, Nesting, Ownership, Version};
use super::super::part::Part;
use super::super::report::Unavailable;
use super::super::servers::ServerFormat;
use super::super::surroundings::{Location, Surroundings};
use super::{Profile, Programs, TIMEOUT_S};

pub(super) fn profile(around: &Surroundings, programs: &Programs) -> anyhow::Result<Profile> {
    let parts = vec![
        Part::new(hooks(around)?, Content::hooks(&HOOKS, &programs.hook)),
        Part::new(servers(around)?, Content::server(&SERVERS, &programs.mcp)),
    ];
    let unavailable = vec![
        Unavailable::new("PreToolUse, PermissionRequest", "a hook there decides whether the call may run"),
        Unavailable::new("PostCompact, StopFailure, UserPromptExpansion, CwdChanged", "Copilot CLI has no such events"),
    ];
    Ok(Profile { parts, unavailable, remarks: Vec::new() })
}

/// VS Code reads this folder too.
pub(super) fn hooks(around: &Surroundings) -> anyhow::Result<Location> {
    around.find(around.copilot_home.as_ref(), "hooks/agent-memory.json", ".copilot/hooks/agent-memory.json")
}

pub(super) fn servers(around: &Surroundings) -> anyhow::Result<Location> {
    around.find(around.copilot_home.as_ref(), "mcp-config.json", ".copilot/mcp-config.json")
}

pub(super) static HOOKS: HookFormat = HookFormat {
    agent: "copilot-cli",
    events: &[
        Event { name: "SessionStart", matcher: Matcher::Absent },
        Event { name: "UserPromptSubmit", matcher: Matcher::Absent },
        Event { name: "PostToolUse", matcher: Matcher::Absent },
        Event { name: "PostToolUseFailure", matcher: Matcher::Absent },
        Event { name: "SubagentStop", matcher: Matcher::Absent },
        Event { name: "Stop", matcher: Matcher::Absent },
        Event { name: "PreCompact", matcher: Matcher::Absent },
        Event { name: "SessionEnd", matcher: Matcher::Absent },
        Event { name: "ErrorOccurred", matcher: Matcher::Absent },
    ],
    nesting: Nesting::Flat,
    version: Version::One,
    ownership: Ownership::All,
    handler,
};

static SERVERS: ServerFormat = ServerFormat {
    container: "mcpServers",
    entry: |program| json!({ "type": "local", "command": program, "args": [], "tools": ["*"] }),
    removal: "remove it from the file",
};

/// VS Code translates `bash` and `powershell` to its own names.
fn handler(program: &str, event: &str) -> Value {
    let quoting = Quoting::here(Quoting::PowerShell);
    let name = if quoting == Quoting::Posix { "bash" } else { "powershell" };
    json!({ "type": "command", name: quoting.line(program, &[HOOKS.agent, event]), "timeoutSec": TIMEOUT_S })
}

//! Gemini CLI: hooks and MCP servers in one `settings.json`.

use serde_json::{Value, json};

use super::super::command::Quoting;
use super::super::content::Content;
use super::super::hooks::{Event, HookEntries, HookFormat, Matcher, Nesting, Ownership, Version};
use super::super::part::Part;
use super::super::report::Unavailable;
use super::super::servers::{ServerEntry, ServerFormat};
use super::super::surroundings::{Location, Surroundings};
use super::{Profile, Programs, TIMEOUT_S};

pub(super) fn profile(around: &Surroundings, programs: &Programs) -> anyhow::Result<Profile> {
    let content = Content::Json {
        hooks: Some(HookEntries::all(&HOOKS, &programs.hook)),
        server: Some(ServerEntry { format: &SERVERS, program: programs.mcp.clone() }),
    };
    Ok(Profile {
        parts: vec![Part::new(settings(around)?, content)],
        unavailable: vec![
            Unavailable::new("PostToolUseFailure", "Gemini CLI tells of a failed call in AfterTool"),
            Unavailable::new("PreCompress", "it is sent before every call of the model, not only before compressing"),
            Unavailable::new("SubagentStart, SubagentStop, CwdChanged", "Gemini CLI has no such events"),
        ],
        remarks: Vec::new(),
    })
}

pub(super) fn settings(around: &Surroundings) -> anyhow::Result<Location> {
    around.find(around.gemini_cli_home.as_ref(), ".gemini/settings.json", ".gemini/settings.json")
}

/// What only reads is not held up.
const RISKY_TOOLS: &str = "run_shell_command|replace|write_file|mcp_.*";

static HOOKS: HookFormat = HookFormat {
    agent: "gemini-cli",
    events: &[
        Event { name: "SessionStart", matcher: Matcher::Absent },
        Event { name: "BeforeAgent", matcher: Matcher::Absent },
        Event { name: "BeforeTool", matcher: Matcher::Tools(RISKY_TOOLS) },
        Event { name: "AfterTool", matcher: Matcher::Absent },
        Event { name: "AfterAgent", matcher: Matcher::Absent },
        Event { name: "SessionEnd", matcher: Matcher::Absent },
    ],
    nesting: Nesting::Groups,
    version: Version::None,
    ownership: Ownership::All,
    handler,
};

static SERVERS: ServerFormat = ServerFormat {
    container: "mcpServers",
    entry: |program| json!({ "command": program, "args": [] }),
    removal: "remove it with `gemini mcp remove --scope user agent-memory`",
};

/// Milliseconds: this agent's own unit.
fn handler(program: &str, event: &str) -> Value {
    let command = Quoting::here(Quoting::PowerShell).line(program, &[HOOKS.agent, event]);
    json!({ "type": "command", "command": command, "timeout": TIMEOUT_S * 1000 })
}

//! Cursor: hooks in `hooks.json`, MCP servers in `mcp.json`.
//!
//! Never registered: `beforeMCPExecution` and `beforeReadFile`, where a hook that fails stops the agent, and `preToolUse`,
//! which asks for permission.

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
    let hooks = around.find(None, "", ".cursor/hooks.json")?;
    let parts = vec![
        Part::new(hooks, Content::hooks(&HOOKS, &programs.hook)),
        Part::new(servers(around)?, Content::server(&SERVERS, &programs.mcp)),
    ];
    let unavailable = vec![
        Unavailable::new(
            "preToolUse, beforeMCPExecution, beforeReadFile",
            "a hook there decides whether the agent may go on",
        ),
        Unavailable::new("PostCompact, StopFailure, UserPromptExpansion, CwdChanged", "Cursor has no such events"),
    ];
    Ok(Profile { parts, unavailable, remarks: Vec::new() })
}

pub(super) fn servers(around: &Surroundings) -> anyhow::Result<Location> {
    around.find(None, "", ".cursor/mcp.json")
}

static HOOKS: HookFormat = HookFormat {
    agent: "cursor",
    events: &[
        Event { name: "sessionStart", matcher: Matcher::Absent },
        Event { name: "beforeSubmitPrompt", matcher: Matcher::Absent },
        Event { name: "postToolUse", matcher: Matcher::Absent },
        Event { name: "postToolUseFailure", matcher: Matcher::Absent },
        Event { name: "afterAgentResponse", matcher: Matcher::Absent },
        Event { name: "stop", matcher: Matcher::Absent },
        Event { name: "subagentStart", matcher: Matcher::Absent },
        Event { name: "subagentStop", matcher: Matcher::Absent },
        Event { name: "preCompact", matcher: Matcher::Absent },
        Event { name: "sessionEnd", matcher: Matcher::Absent },
    ],
    nesting: Nesting::Flat,
    version: Version::One,
    ownership: Ownership::All,
    handler,
};

static SERVERS: ServerFormat = ServerFormat {
    container: "mcpServers",
    entry: |program| json!({ "type": "stdio", "command": program, "args": [] }),
    removal: "remove it from the file",
};

fn handler(program: &str, event: &str) -> Value {
    let command = Quoting::here(Quoting::PowerShell).line(program, &[HOOKS.agent, event]);
    json!({ "command": command, "timeout": TIMEOUT_S })
}

//! Codex: hooks in `hooks.json`, shaped like Claude Code's, MCP servers in `config.toml`.

use serde_json::{Value, json};

use super::super::command::Quoting;
use super::super::content::Content;
use super::super::hooks::{Event, HookFormat, Matcher, Nesting, Ownership, Version};
use super::super::part::Part;
use super::super::report::Unavailable;
use super::super::surroundings::{Location, Surroundings};
use super::super::toml::TomlServer;
use super::{Profile, Programs, TIMEOUT_S};

/// Codex gives these events no more, whatever is asked for.
const MAX_TIMEOUT_AT_THE_END_S: u64 = 3;

pub(super) fn profile(around: &Surroundings, programs: &Programs) -> anyhow::Result<Profile> {
    let parts = vec![
        Part::new(hooks(around)?, Content::hooks(&HOOKS, &programs.hook)),
        Part::new(config(around)?, Content::Toml(TomlServer { program: programs.mcp.clone() })),
    ];
    Ok(Profile {
        parts,
        unavailable: vec![
            Unavailable::new(
                "PostToolUseFailure",
                "Codex tells of a failed call in PostToolUse; the rollout says that it failed",
            ),
            Unavailable::new("StopFailure, UserPromptExpansion, CwdChanged", "Codex has no such events"),
        ],
        remarks: vec![
            "Codex runs new hooks only after you have trusted them: start codex, type /hooks, and trust those of agent-memory-hook",
        ],
    })
}

pub(super) fn config(around: &Surroundings) -> anyhow::Result<Location> {
    around.find(around.codex_home.as_ref(), "config.toml", ".codex/config.toml")
}

fn hooks(around: &Surroundings) -> anyhow::Result<Location> {
    around.find(around.codex_home.as_ref(), "hooks.json", ".codex/hooks.json")
}

// Without matchers: here they are regular expressions, and an absent one means all.
static HOOKS: HookFormat = HookFormat {
    agent: "codex",
    events: &[
        Event { name: "SessionStart", matcher: Matcher::Absent },
        Event { name: "UserPromptSubmit", matcher: Matcher::Absent },
        Event { name: "PreToolUse", matcher: Matcher::Absent },
        Event { name: "PostToolUse", matcher: Matcher::Absent },
        Event { name: "SubagentStart", matcher: Matcher::Absent },
        Event { name: "SubagentStop", matcher: Matcher::Absent },
        Event { name: "PreCompact", matcher: Matcher::Absent },
        Event { name: "PostCompact", matcher: Matcher::Absent },
        Event { name: "Stop", matcher: Matcher::Absent },
        Event { name: "SessionEnd", matcher: Matcher::Absent },
    ],
    nesting: Nesting::Groups,
    version: Version::None,
    ownership: Ownership::All,
    handler,
};

fn handler(program: &str, event: &str) -> Value {
    let timeout_s = if event == "SessionEnd" { MAX_TIMEOUT_AT_THE_END_S } else { TIMEOUT_S };
    let command = Quoting::here(Quoting::Cmd).line(program, &[HOOKS.agent, event]);
    json!({ "type": "command", "command": command, "timeout": timeout_s })
}

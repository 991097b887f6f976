//! Claude Code: hooks in `settings.json`, MCP servers in `.claude.json`, which also holds much that is Claude Code's own.

use serde_json::{Value, json};

use super::super::content::Content;
use super::super::hooks::{Event, HookFormat, Matcher, Nesting, Ownership, Version};
use super::super::part::Part;
use super::super::servers::ServerFormat;
use super::super::surroundings::{Location, Surroundings};
use super::{Profile, Programs, TIMEOUT_S};

pub(super) fn profile(around: &Surroundings, programs: &Programs) -> anyhow::Result<Profile> {
    let parts = vec![
        Part::new(settings(around)?, Content::hooks(&HOOKS, &programs.hook)),
        Part::new(servers(around)?, Content::server(&SERVERS, &programs.mcp)),
    ];
    Ok(Profile { parts, unavailable: Vec::new(), remarks: Vec::new() })
}

/// `CLAUDE_CONFIG_DIR` holds both files. Without it, one lies in `~/.claude` and the other beside that folder.
pub(super) fn settings(around: &Surroundings) -> anyhow::Result<Location> {
    around.find(around.claude_config_dir.as_ref(), "settings.json", ".claude/settings.json")
}

pub(super) fn servers(around: &Surroundings) -> anyhow::Result<Location> {
    around.find(around.claude_config_dir.as_ref(), ".claude.json", ".claude.json")
}

/// What only reads is not held up.
const RISKY_TOOLS: &str = "Bash|Edit|MultiEdit|Write|NotebookEdit|mcp__.*";

pub(super) static HOOKS: HookFormat = HookFormat {
    agent: "claude-code",
    events: &[
        Event { name: "SessionStart", matcher: Matcher::Any },
        Event { name: "UserPromptSubmit", matcher: Matcher::Absent },
        Event { name: "UserPromptExpansion", matcher: Matcher::Absent },
        Event { name: "PreToolUse", matcher: Matcher::Tools(RISKY_TOOLS) },
        Event { name: "PostToolUse", matcher: Matcher::Any },
        Event { name: "PostToolUseFailure", matcher: Matcher::Any },
        Event { name: "CwdChanged", matcher: Matcher::Absent },
        Event { name: "Stop", matcher: Matcher::Absent },
        Event { name: "StopFailure", matcher: Matcher::Absent },
        Event { name: "SubagentStart", matcher: Matcher::Any },
        Event { name: "SubagentStop", matcher: Matcher::Any },
        Event { name: "PreCompact", matcher: Matcher::Any },
        Event { name: "PostCompact", matcher: Matcher::Any },
        Event { name: "SessionEnd", matcher: Matcher::Any },
    ],
    nesting: Nesting::Groups,
    version: Version::None,
    ownership: Ownership::All,
    handler,
};

static SERVERS: ServerFormat = ServerFormat {
    container: "mcpServers",
    entry: |program| json!({ "type": "stdio", "command": program, "args": [], "env": {} }),
    removal: "remove it with `claude mcp remove --scope user agent-memory`",
};

/// The time limit is also what keeps Claude Code from giving SessionEnd only its usual second and a half.
fn handler(program: &str, event: &str) -> Value {
    json!({ "type": "command", "command": program, "args": [HOOKS.agent, event], "timeout": TIMEOUT_S })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(around: &Surroundings, expected_settings: &str, expected_servers: &str) {
        assert_eq!(settings(around).unwrap().path(), expected_settings);
        assert_eq!(servers(around).unwrap().path(), expected_servers);
    }

    #[test]
    fn looks_in_the_home_folder() {
        let around = Surroundings { home: Some("/h".into()), ..Default::default() };
        check(&around, "/h/.claude/settings.json", "/h/.claude.json");
    }

    #[test]
    fn finds_both_in_the_folder_that_the_user_has_chosen() {
        let around =
            Surroundings { claude_config_dir: Some("/c".into()), home: Some("/h".into()), ..Default::default() };
        check(&around, "/c/settings.json", "/c/.claude.json");
    }

    #[test]
    fn says_when_there_is_no_home_folder() {
        assert!(settings(&Surroundings::default()).is_err());
    }
}

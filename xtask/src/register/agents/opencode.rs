//! OpenCode: MCP servers in `opencode.json`, or in `opencode.jsonc` where the user has that. It has no hooks that run a
//! program, but plugins: `opencode_plugin.js` is a small one that runs our hook.

use serde_json::json;

use super::super::content::Content;
use super::super::part::Part;
use super::super::report::Unavailable;
use super::super::script::Script;
use super::super::servers::ServerFormat;
use super::super::surroundings::{Location, Surroundings};
use super::{Profile, Programs};

pub(super) fn profile(around: &Surroundings, programs: &Programs) -> anyhow::Result<Profile> {
    let plugin = Script {
        name: "plugin agent-memory.js",
        template: include_str!("opencode_plugin.js"),
        program: programs.hook.clone(),
    };
    let parts = vec![
        Part::new(find(around, "plugins/agent-memory.js")?, Content::Script(plugin)),
        Part::new(config(around)?, Content::server(&SERVERS, &programs.mcp)),
    ];
    let unavailable = vec![
        Unavailable::new(
            "PreCompact, PostCompact, CwdChanged, UserPromptExpansion",
            "the plugin does not listen to such events",
        ),
        Unavailable::new("SubagentStart, SubagentStop", "OpenCode runs a subagent as a session of its own"),
    ];
    Ok(Profile { parts, unavailable, remarks: Vec::new() })
}

pub(super) fn config(around: &Surroundings) -> anyhow::Result<Location> {
    let commented = find(around, "opencode.jsonc")?;
    if commented.path().exists() { Ok(commented) } else { find(around, "opencode.json") }
}

fn find(around: &Surroundings, name: &str) -> anyhow::Result<Location> {
    let chosen = around.xdg_config_home.as_ref();
    around.find(chosen, &format!("opencode/{name}"), &format!(".config/opencode/{name}"))
}

static SERVERS: ServerFormat = ServerFormat {
    container: "mcp",
    entry: |program| json!({ "type": "local", "command": [program], "enabled": true }),
    removal: "remove it from the file",
};

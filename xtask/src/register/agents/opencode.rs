//! OpenCode: MCP servers in `opencode.json`, or in `opencode.jsonc` where the user has that.

use serde_json::json;

use super::super::content::Content;
use super::super::part::Part;
use super::super::report::Unavailable;
use super::super::servers::ServerFormat;
use super::super::surroundings::{Location, Surroundings};
use super::{Profile, Programs};

pub(super) fn profile(around: &Surroundings, programs: &Programs) -> anyhow::Result<Profile> {
    let parts = vec![Part::new(config(around)?, Content::server(&SERVERS, &programs.mcp))];
    let unavailable = vec![Unavailable::new("hooks", "OpenCode has none that run a program")];
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

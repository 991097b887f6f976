//! Who may depend on whom.

use std::collections::BTreeMap;
use std::process::Command;

use super::root;

/// For each room: the rooms it may use directly. `tests` may use all.
const ALLOWED: [(&str, &[&str]); 6] = [
    ("hooks", &[]),
    ("memory", &[]),
    ("mcp", &["memory"]),
    ("server", &["memory", "mcp"]),
    ("finetune", &["memory"]),
    ("xtask", &["memory"]),
];

/// Each package of the workspace with the names of what it depends on, for building and running.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let used = package["dependencies"].as_array().unwrap().iter().filter(|used| used["kind"] != "dev");
            (text(&package["name"]), used.map(|used| text(&used["name"])).collect())
        })
        .collect()
}

#[test]
fn rooms_use_only_the_rooms_below_them() {
    let found = dependencies();
    for (room, allowed) in ALLOWED {
        let rooms = found[room].iter().filter(|used| found.contains_key(*used));
        let wrong: Vec<_> = rooms.filter(|used| !allowed.contains(&used.as_str())).collect();
        assert!(wrong.is_empty(), "`{room}` must not depend on {wrong:?}");
    }
}

#[test]
fn the_hook_depends_on_nothing() {
    assert_eq!(dependencies()["hooks"], Vec::<String>::new());
}

#[test]
fn only_memory_speaks_to_the_database() {
    let found = dependencies();
    let speakers: Vec<_> = found
        .iter()
        .filter(|(_, used)| used.iter().any(|used| used == "sqlx"))
        .map(|(name, _)| name.as_str())
        .collect();
    // Tests look into the journal; `xtask prepare` runs the migrations as they stand on the disk.
    assert_eq!(speakers, ["memory", "tests", "xtask"]);
}

//! What must be written down.

use std::collections::BTreeSet;

use super::{files_below, read, root, rust_files};

/// Every name in a text that starts like a variable of ours.
fn variables_in(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("AGENT_MEMORY_") {
        let name: String = text[at..].chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
        // `starts_with("AGENT_MEMORY_")` and the like name no variable.
        if !name.ends_with('_') {
            found.insert(name);
        }
    }
    found
}

#[test]
fn every_environment_variable_is_documented_and_none_that_is_not_read() {
    let mut sources = rust_files();
    sources.extend(files_below(&root().join("compose"), &["yaml", "sh"]));
    let used: BTreeSet<_> = sources.iter().flat_map(|path| variables_in(&read(path))).collect();
    let documented = variables_in(&read(&root().join("docs/configuration.md")));
    let missing: Vec<_> = used.difference(&documented).collect();
    let stale: Vec<_> = documented.difference(&used).collect();
    assert!(missing.is_empty() && stale.is_empty(), "not documented: {missing:?}; documented and unused: {stale:?}");
}

#[test]
fn the_map_names_every_module_of_memory_that_is_there() {
    let map = read(&root().join("docs/architecture.md"));
    for entry in std::fs::read_dir(root().join("memory/src")).unwrap() {
        let entry = entry.unwrap();
        let module = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            assert!(
                map.contains(&format!("\n  {module}/ ")),
                "docs/architecture.md does not show `memory/src/{module}/`"
            );
        }
    }
}

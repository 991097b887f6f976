//! How files look.

use super::{name, read, root, rust_files};

/// At this length a file is two files.
const MAX_LINES: usize = 400;

#[test]
fn no_source_file_is_longer_than_400_lines() {
    let long: Vec<_> = rust_files()
        .into_iter()
        .map(|path| (read(&path).lines().count(), name(&path)))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .collect();
    assert!(long.is_empty(), "split these: {long:?}");
}

#[test]
fn every_source_file_opens_with_what_it_is_for() {
    let silent: Vec<_> =
        rust_files().into_iter().filter(|path| !read(path).starts_with("//!")).map(|path| name(&path)).collect();
    assert!(silent.is_empty(), "these lack an opening paragraph: {silent:?}");
}

#[test]
fn a_module_with_children_is_a_folder_with_mod_rs() {
    let doubled: Vec<_> =
        rust_files().into_iter().filter(|path| path.with_extension("").is_dir()).map(|path| name(&path)).collect();
    assert!(doubled.is_empty(), "move these into their folders as mod.rs: {doubled:?}");
}

#[test]
fn sql_stands_only_in_its_rooms() {
    let allowed = ["memory/src/store/", "memory/src/queue/", "memory/src/recall/", "tests/"];
    let strays: Vec<_> = rust_files()
        .into_iter()
        .filter(|path| {
            let name = name(path);
            let text = read(path);
            !allowed.iter().any(|room| name.starts_with(room))
                && ["sqlx::query", "from mem_", "into mem_", "update mem_"].iter().any(|sql| text.contains(sql))
        })
        .map(|path| name(&path))
        .collect();
    assert!(strays.is_empty(), "SQL does not belong here: {strays:?}");
}

#[test]
fn the_top_level_holds_the_rooms_and_nothing_else() {
    let rooms = [
        "finetune",
        "hooks",
        "mcp",
        "memory",
        "server",
        "tests",
        "xtask",
        "migrations",
        "compose",
        "docs",
        // What cargo makes where no other target folder is set.
        "target",
    ];
    for entry in std::fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.starts_with('.') {
            assert!(rooms.contains(&name.as_str()), "no room is called `{name}`");
        }
    }
}

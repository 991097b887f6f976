//! What the hook decides for itself, `memory` decides too: which remote is which, and what a repository says of its recording. The
//! hook may have no dependency, so these stand twice, and here they are held to be the same.

use super::{read, root};

#[test]
fn the_hook_spells_remotes_as_the_memory_does() {
    let normaliser = |file| {
        let text = read(&root().join(file));
        let (code, _tests) = text.split_once("#[cfg(test)]").unwrap();
        code[code.find("fn normalise(").unwrap()..].to_owned()
    };
    assert_eq!(normaliser("hooks/src/exclusion/remote.rs"), normaliser("memory/src/project/remote.rs"));
}

#[test]
fn the_hook_reads_what_a_repository_says_as_the_memory_does() {
    let reader = |file| {
        let text = read(&root().join(file));
        let function = &text[text.find("fn capture_in(").unwrap()..];
        function[..function.find("\n}\n").unwrap()].to_owned()
    };
    assert_eq!(reader("hooks/src/exclusion/mod.rs"), reader("memory/src/project/exclusion.rs"));
}

//! Applied migrations stay as they were: a database that has run one would refuse a changed one.

use super::{files_below, name, read, root};

#[test]
fn every_migration_opens_with_why() {
    for path in files_below(&root().join("migrations"), &["sql"]) {
        assert!(read(&path).starts_with("-- "), "{} does not say why it exists", name(&path));
    }
}

#[test]
fn constraints_have_names() {
    for path in files_below(&root().join("migrations"), &["sql"]) {
        let text = read(&path);
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("--")) {
            let constrains =
                ["primary key", "references ", " unique", "check ("].iter().any(|word| line.contains(word));
            let named = line.contains("constraint ") || line.contains("create unique index");
            assert!(!constrains || named, "{}:{}: a constraint without a name: {line}", name(&path), number + 1);
        }
    }
}

//! The user's own rules in a process of their own, because they are installed once.

use memory::redact::{clean, install};

#[test]
fn the_users_rules_count_beside_the_built_in_ones_and_come_first_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.toml");

    let missing = install(&file).unwrap_err().to_string();
    assert!(missing.contains("rules.toml"), "{missing}");
    std::fs::write(&file, "[[rules]]\nid = 'acme'\nregex = '(acme'\n").unwrap();
    let torn = install(&file).unwrap_err().to_string();
    assert!(torn.contains("`acme`"), "{torn}");

    std::fs::write(&file, "[[rules]]\nid = 'acme'\nregex = 'acme-[0-9]{6}'\nkeywords = ['ACME-']\n").unwrap();
    install(&file).unwrap();
    assert_eq!(clean("use acme-123456, token=a1b2c3d4e5f6"), "use ‹redacted:acme›, token=‹redacted:token›");

    let late = install(&file).unwrap_err().to_string();
    assert!(late.contains("too late"), "{late}");
}

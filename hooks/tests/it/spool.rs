//! The spool's files, and what happens where they cannot be written.

use crate::support::{Folder, PAYLOAD, hook, hook_in, run};

#[test]
fn names_the_file_by_time_and_event_id_and_leaves_no_other() {
    let home = Folder::home_without_server();
    run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes());
    let envelope = home.spooled();
    let name = &home.spooled_names()[0];
    let (occurred_at_us, event_id) = name.strip_suffix(".json").unwrap().split_once('-').unwrap();
    assert_eq!(occurred_at_us.len(), 20);
    assert!(envelope.contains(&format!(r#""event_id":"{event_id}""#)), "{name}: {envelope}");
    let occurred_at_us = occurred_at_us.trim_start_matches('0');
    assert!(envelope.contains(&format!(r#""occurred_at_us":{occurred_at_us},"#)), "{name}: {envelope}");
}

#[cfg(unix)]
#[test]
fn lets_nobody_else_read_the_spool() {
    use std::os::unix::fs::PermissionsExt;
    let user = Folder::new();
    run(hook().env("HOME", user.path()).args(["claude-code", "PostToolUse"]), PAYLOAD.as_bytes());
    let home = user.path().join(".local/share/agent-memory");
    let spool = home.join("spool");
    let file = std::fs::read_dir(&spool).unwrap().next().unwrap().unwrap().path();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&home), mode(&spool), mode(&file)), (0o700, 0o700, 0o600));
}

#[test]
fn ends_quietly_where_there_is_no_home() {
    let folder = Folder::new();
    assert_eq!(run(hook().args(["claude-code", "SessionStart"]).current_dir(folder.path()), PAYLOAD.as_bytes()), "");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn ends_quietly_where_the_spool_cannot_be_written() {
    let home = Folder::home_without_server();
    home.write("spool", "in the way");
    assert_eq!(run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes()), "");
    assert_eq!(std::fs::read_to_string(home.path().join("spool")).unwrap(), "in the way");
}

/// A limit on the size of files fails a write as a full disk does, half-way through.
#[cfg(unix)]
#[test]
fn leaves_no_half_file_where_the_disk_is_full() {
    let home = Folder::home_without_server();
    let payload = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" claude-code PostToolUse";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_agent-memory-hook")]).env("AGENT_MEMORY_HOME", home.path());
    command.env_remove("AGENT_MEMORY_DISABLE");
    assert_eq!(run(&mut command, payload.as_bytes()), "");
    assert_eq!(home.spooled_names(), [""; 0]);
    assert!(home.path().join("spool").is_dir(), "it did try");
}

/// The container runtime: the spool is the server's user's, the hook runs as root.
#[cfg(unix)]
#[test]
fn gives_the_file_to_the_owner_of_the_spool() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let home = Folder::home_without_server();
    let spool = home.path().join("spool");
    std::fs::create_dir(&spool).unwrap();
    if chown(&spool, Some(10_001), Some(10_002)).is_err() {
        println!("not run: only root can give files away");
        return;
    }
    run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes());
    let file = std::fs::metadata(spool.join(&home.spooled_names()[0])).unwrap();
    assert_eq!((file.uid(), file.gid(), file.permissions().mode() & 0o777), (10_001, 10_002, 0o600));
}

//! Starting the services where SessionStart finds none.
#![cfg(unix)]

use std::path::Path;
use std::process::Stdio;

use crate::support::{FakeServer, Folder, PAYLOAD, hook_in, run, shortest, wait_until};

#[test]
fn starts_the_services_once_where_many_sessions_find_none() {
    let home = Folder::home_without_server();
    leave_start_command(&home, "sh");
    let mut children: Vec<_> = (0..8)
        .map(|_| {
            let mut child = hook_in(&home, "SessionStart").stdin(Stdio::piped()).spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), PAYLOAD.as_bytes()).unwrap();
            child
        })
        .collect();
    for child in &mut children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    run(&mut hook_in(&home, "SessionStart"), PAYLOAD.as_bytes());
    wait_until(|| starts(home.path()) > 0);
    assert_eq!(starts(home.path()), 1);
    assert_eq!(std::fs::read_to_string(home.path().join("starts")).unwrap(), "disabled=1 a b\n");
    assert_eq!(home.spooled_names().len(), 9, "the events are kept all the same");
}

#[test]
fn does_not_wait_for_what_it_starts() {
    let home = Folder::home_without_server();
    home.write("start-command", "sleep\n3\n");
    let elapsed = shortest(1, || {
        run(&mut hook_in(&home, "SessionStart"), PAYLOAD.as_bytes());
    });
    assert!(elapsed.as_millis() < 2000, "{elapsed:?}");
    assert!(home.path().join("start-attempt").exists());
}

#[test]
fn starts_nothing_at_other_events_or_beside_a_server_or_without_a_command() {
    let home = Folder::home_without_server();
    leave_start_command(&home, "sh");
    run(&mut hook_in(&home, "UserPromptSubmit"), PAYLOAD.as_bytes());
    assert!(!home.path().join("start-attempt").exists());

    let server = FakeServer::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let beside = Folder::home(&server.address);
    leave_start_command(&beside, "sh");
    run(&mut hook_in(&beside, "SessionStart"), PAYLOAD.as_bytes());
    assert!(!beside.path().join("start-attempt").exists());

    let bare = Folder::home_without_server();
    run(&mut hook_in(&bare, "SessionStart"), PAYLOAD.as_bytes());
    assert!(!bare.path().join("start-attempt").exists());
}

#[test]
fn starts_what_is_down_beside_a_server_without_a_database() {
    let server = FakeServer::answering("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    let home = Folder::home(&server.address);
    leave_start_command(&home, "sh");
    run(&mut hook_in(&home, "SessionStart"), PAYLOAD.as_bytes());
    assert!(home.path().join("start-attempt").exists());
}

#[test]
fn ends_quietly_where_the_command_cannot_be_started() {
    let home = Folder::home_without_server();
    leave_start_command(&home, "/nowhere/agent-memory");
    assert_eq!(run(&mut hook_in(&home, "SessionStart"), PAYLOAD.as_bytes()), "");
    home.spooled();
}

/// A command that adds a line to the file `starts` in the folder it is started in, which is the home.
fn leave_start_command(home: &Folder, program: &str) {
    let script = "echo disabled=$AGENT_MEMORY_DISABLE $1 $2 >> starts";
    home.write("start-command", &format!("{program}\n-c\n{script}\nname\na\nb\n"));
}

fn starts(home: &Path) -> usize {
    std::fs::read_to_string(home.join("starts")).map_or(0, |text| text.lines().count())
}

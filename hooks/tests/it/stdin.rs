//! Whatever stands on stdin, or does not.

#[cfg(unix)]
use std::io::Write;
#[cfg(unix)]
use std::os::{fd::OwnedFd, unix::net::UnixStream};
use std::process::Stdio;
#[cfg(unix)]
use std::time::Instant;

use crate::support::{FakeServer, Folder, hook_in, run};

#[test]
fn makes_no_event_of_a_stdin_without_an_object() {
    let home = Folder::home_without_server();
    for stdin in ["", "\u{feff}", "\n\n", "null", "[1, 2]"] {
        assert_eq!(run(&mut hook_in(&home, "PostToolUse"), stdin.as_bytes()), "");
    }
    let status = hook_in(&home, "PostToolUse").stdin(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(home.spooled_names(), [""; 0]);
}

#[test]
fn skips_a_byte_order_mark() {
    let home = Folder::home_without_server();
    run(&mut hook_in(&home, "PostToolUse"), "\u{feff}{\"a\":1}\r\n".as_bytes());
    assert!(home.spooled().ends_with(r#","payload":{"a":1}}"#));
}

#[test]
fn leaves_an_object_that_breaks_off_to_the_server() {
    let home = Folder::home_without_server();
    run(&mut hook_in(&home, "PostToolUse"), br#"{"a":"#);
    assert!(home.spooled().ends_with(r#","payload":{"a":}"#));
}

#[cfg(unix)]
#[test]
fn ends_quietly_where_stdin_cannot_be_read() {
    let home = Folder::home_without_server();
    let folder = std::fs::File::open(home.path()).unwrap();
    let output = hook_in(&home, "PostToolUse").stdin(folder).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(0), 0, 0));
    assert_eq!(home.spooled_names(), [""; 0]);
}

#[test]
fn spools_twenty_megabytes_and_drops_what_is_over_the_limit() {
    let home = Folder::home_without_server();
    run(&mut hook_in(&home, "PostToolUse"), &object_of(20_000_000));
    assert!(home.spooled().len() > 20_000_000);
    run(&mut hook_in(&home, "PostToolUse"), &object_of(33 * 1024 * 1024));
    home.spooled();
}

#[test]
fn brings_twenty_megabytes_to_the_server_or_the_spool() {
    let server = FakeServer::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let home = Folder::home(&server.address);
    run(&mut hook_in(&home, "PostToolUse"), &object_of(20_000_000));
    let is_with_server = server.request().1.len() > 20_000_000;
    assert!(is_with_server || home.spooled().len() > 20_000_000);
}

/// What Node.js and Bun give a child for stdin.
#[cfg(unix)]
#[test]
fn reads_an_event_from_a_socket() {
    let home = Folder::home_without_server();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut child = hook_in(&home, "PostToolUse").stdin(OwnedFd::from(theirs)).spawn().unwrap();
    ours.write_all(&object_of(1_000_000)).unwrap();
    drop(ours);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(home.spooled().len() > 1_000_000);
}

#[cfg(unix)]
#[test]
fn gives_up_on_an_agent_that_does_not_close_stdin() {
    let home = Folder::home_without_server();
    let start = Instant::now();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut child = hook_in(&home, "PostToolUse").stdin(OwnedFd::from(theirs)).spawn().unwrap();
    ours.write_all(b"{\"a\":1}").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!((4..9).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert_eq!(home.spooled_names(), [""; 0], "what is not known to be whole is no event");
}

fn object_of(size_bytes: usize) -> Vec<u8> {
    let mut object = br#"{"a":""#.to_vec();
    object.resize(size_bytes - 2, b'x');
    object.extend_from_slice(br#""}"#);
    object
}

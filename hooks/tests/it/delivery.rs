//! What the program does with each answer of the server, and within which time.

use std::net::TcpListener;
use std::time::Duration;

use crate::support::{FakeServer, Folder, PAYLOAD, TOKEN, hook, hook_in, run, shortest};

#[test]
fn posts_an_envelope_with_the_payload_verbatim_and_says_nothing() {
    let server = FakeServer::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let home = Folder::home(&server.address);
    assert_eq!(run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes()), "");
    let (head, body) = server.request();
    assert!(head.starts_with("POST /api/hooks/claude-code HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nHost: {}\r\n", server.address)), "{head}");
    assert!(head.contains(&format!("\r\nAuthorization: Bearer {TOKEN}\r\n")), "{head}");
    assert!(body.starts_with(r#"{"envelope":1,"event_id":""#), "{body}");
    assert!(body.contains(r#","agent":"claude-code","event":"PostToolUse","occurred_at_us":"#), "{body}");
    assert!(body.contains(&format!(r#","cwd":"{}","git":null,"#, home.path().display())), "{body}");
    assert!(body.ends_with(&format!(r#","payload":{PAYLOAD}}}"#)), "{body}");
    assert_eq!(home.spooled_names(), [""; 0]);
}

#[test]
fn prints_the_servers_reply_and_nothing_else() {
    let server = FakeServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"a\":1}\n");
    let home = Folder::home(&server.address);
    assert_eq!(run(&mut hook_in(&home, "UserPromptSubmit"), PAYLOAD.as_bytes()), "{\"a\":1}\n");
    assert_eq!(home.spooled_names(), [""; 0]);
}

#[test]
fn prints_no_reply_that_is_no_json() {
    let server = FakeServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwelcome");
    let home = Folder::home(&server.address);
    assert_eq!(run(&mut hook_in(&home, "UserPromptSubmit"), PAYLOAD.as_bytes()), "");
    assert_eq!(home.spooled_names(), [""; 0]);
}

#[test]
fn drops_what_the_server_will_never_take() {
    let server = FakeServer::answering("HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}");
    let home = Folder::home(&server.address);
    assert_eq!(run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes()), "");
    server.request();
    assert_eq!(home.spooled_names(), [""; 0]);
}

#[test]
fn spools_the_same_envelope_where_the_server_does_not_take_it() {
    for answer in [
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 413 Payload Too Large\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\"",
        "220 mail.example.com ESMTP\r\n",
        "",
    ] {
        let server = FakeServer::answering(answer);
        let home = Folder::home(&server.address);
        assert_eq!(run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes()), "", "{answer}");
        assert_eq!(home.spooled(), server.request().1, "{answer}");
    }
}

#[test]
fn spools_where_the_installation_has_no_token_or_no_readable_address() {
    let server = FakeServer::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let home = Folder::home(&server.address);
    home.write("address", "nowhere");
    run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes());
    home.spooled();

    let home = Folder::home(&server.address);
    home.write("token", "two\r\nlines");
    run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes());
    home.spooled();
    assert!(server.has_no_request());
}

#[test]
fn waits_for_a_silent_server_only_until_the_events_deadline() {
    // The system accepts the connection; nobody ever reads it. The server has four fifths of the deadline, the spool the rest.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Folder::home(&listener.local_addr().unwrap().to_string());
    let capture = shortest(5, || {
        run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes());
    });
    assert!((40..200).contains(&capture.as_millis()), "{capture:?}");
    for event in ["SessionStart", "UserPromptSubmit", "PreToolUse"] {
        let reply = shortest(3, || {
            run(&mut hook_in(&home, event), PAYLOAD.as_bytes());
        });
        assert!((240..500).contains(&reply.as_millis()), "{event}: {reply:?}");
    }
    // That a call was about to run is nothing to be kept.
    assert_eq!(home.spooled_names().len(), 5 + 2 * 3);
}

#[test]
fn tells_the_next_server_that_answers_of_deadlines_that_were_missed() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Folder::home(&silent.local_addr().unwrap().to_string());
    for event in ["PostToolUse", "PreToolUse"] {
        run(&mut hook_in(&home, event), PAYLOAD.as_bytes());
    }
    let missed = || std::fs::read(home.path().join("missed-deadlines")).map_or(0, |bytes| bytes.len());
    assert_eq!(missed(), 2);
    // One that is there but takes nothing has not heard it.
    let refusing = FakeServer::answering("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    home.write("address", &refusing.address);
    run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes());
    assert!(refusing.request().0.contains("\r\nAgent-Memory-Missed-Deadlines: 2\r\n"));
    assert_eq!(missed(), 2);
    let server = FakeServer::answering("HTTP/1.1 204 No Content\r\n\r\n");
    home.write("address", &server.address);
    run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes());
    assert!(server.request().0.contains("\r\nAgent-Memory-Missed-Deadlines: 2\r\n"));
    run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes());
    assert!(!server.request().0.contains("Missed"));
    let left = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("missed")));
}

#[test]
fn counts_no_deadline_where_nothing_listens() {
    let home = Folder::home_without_server();
    run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes());
    assert!(!home.path().join("missed-deadlines").exists());
}

#[test]
fn does_not_wait_for_an_answer_that_drips() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Folder::home(&listener.local_addr().unwrap().to_string());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                while std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nX: y\r\n").is_ok() {
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
        }
    });
    let capture = shortest(5, || {
        run(&mut hook_in(&home, "PostToolUse"), PAYLOAD.as_bytes());
    });
    assert!(capture.as_millis() < 200, "{capture:?}");
    assert_eq!(home.spooled_names().len(), 5);
}

#[test]
fn does_nothing_where_it_is_disabled() {
    let server = FakeServer::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let home = Folder::home(&server.address);
    run(hook_in(&home, "PostToolUse").env("AGENT_MEMORY_DISABLE", "1"), PAYLOAD.as_bytes());
    assert!(server.has_no_request());
    assert_eq!(home.spooled_names(), [""; 0]);

    run(hook_in(&home, "PostToolUse").env("AGENT_MEMORY_DISABLE", "0"), PAYLOAD.as_bytes());
    server.request();
    run(hook_in(&home, "PostToolUse").env("AGENT_MEMORY_DISABLE", ""), PAYLOAD.as_bytes());
    server.request();
}

#[test]
fn does_nothing_without_agent_and_event() {
    let home = Folder::home_without_server();
    for arguments in [&[][..], &["claude-code"][..]] {
        run(hook().env("AGENT_MEMORY_HOME", home.path()).args(arguments), PAYLOAD.as_bytes());
    }
    assert_eq!(home.spooled_names(), [""; 0]);
}

#[cfg(unix)]
#[test]
fn belongs_to_the_installation_whose_program_it_is() {
    let home = Folder::home_without_server();
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_agent-memory-hook"), bin.join("agent-memory-hook")).unwrap();
    let elsewhere = Folder::new();
    let mut command = std::process::Command::new(bin.join("agent-memory-hook"));
    command.env_clear().env("HOME", elsewhere.path()).args(["claude-code", "PostToolUse"]);
    run(&mut command, PAYLOAD.as_bytes());
    home.spooled();
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

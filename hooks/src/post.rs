//! One request to the server, HTTP/1.1 by hand over TCP, under a deadline.
//!
//! Says what became of the event, not what to do about it. An answer in chunks is not understood and counts as none: the
//! server sends none, and an event that arrives twice is one event.

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A server on this machine accepts at once or is not there.
const CONNECT_DEADLINE: Duration = Duration::from_millis(20);
/// Replies are context of a few kilobytes.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// When the server shall answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// When it knows what the agent is to be told.
    WithReply,
    /// As soon as the event outlives the server: a commit takes several times as long as this program.
    WhenSafe,
}

pub(crate) struct Request<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) answer: Answer,
    pub(crate) token: &'a str,
    pub(crate) agent: &'a str,
    /// Deadlines that were missed before, and that the server has not heard of.
    pub(crate) missed_deadlines: u64,
    pub(crate) body: &'a [u8],
}

/// What became of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server has it. The reply may be empty.
    Taken(Vec<u8>),
    /// The server will never take it.
    Refused,
    /// Something listens there but has not answered by the deadline.
    Late,
    /// Something listens there but has not taken it.
    Unanswered,
    /// Nothing listens there.
    Away,
}

pub(crate) fn post(request: &Request<'_>, deadline: Instant) -> Outcome {
    let Ok(patience) = remaining(deadline) else {
        return Outcome::Late;
    };
    let stream = match TcpStream::connect_timeout(&request.address, patience.min(CONNECT_DEADLINE)) {
        Ok(stream) => stream,
        Err(error) if is_away(error.kind()) => return Outcome::Away,
        Err(error) if is_late(error.kind()) => return Outcome::Late,
        Err(_) => return Outcome::Unanswered,
    };
    match exchange(&mut TimedStream { stream, deadline }, request) {
        Ok(Response { is_ours: false, .. }) => Outcome::Unanswered,
        Ok(Response { status: 200, body, .. }) => Outcome::Taken(body),
        // Committed, or safe in the spool and about to be.
        Ok(Response { status: 204 | 202, .. }) => Outcome::Taken(Vec::new()),
        Ok(Response { status: 400, .. }) => Outcome::Refused,
        Err(error) if is_late(error.kind()) => Outcome::Late,
        Ok(_) | Err(_) => Outcome::Unanswered,
    }
}

/// Windows takes seconds to find that a port is closed.
fn is_away(kind: io::ErrorKind) -> bool {
    kind == io::ErrorKind::ConnectionRefused || cfg!(windows) && kind == io::ErrorKind::TimedOut
}

/// A wait that ends at its deadline is told as the one on some systems, as the other on others.
fn is_late(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

#[derive(Debug, PartialEq, Eq)]
struct Response {
    status: u16,
    /// Whether it is our server that answers, and not a program that happens to listen there.
    is_ours: bool,
    body: Vec<u8>,
}

fn exchange(stream: &mut (impl Read + Write), request: &Request<'_>) -> io::Result<Response> {
    send(stream, head_of(request).as_bytes(), request.body)?;
    receive(stream)
}

fn head_of(request: &Request<'_>) -> String {
    let prefer = match request.answer {
        Answer::WithReply => "",
        // RFC 7240
        Answer::WhenSafe => "Prefer: respond-async\r\n",
    };
    let missed = match request.missed_deadlines {
        0 => String::new(),
        count => format!("Agent-Memory-Missed-Deadlines: {count}\r\n"),
    };
    format!(
        "POST /api/hooks/{} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n{prefer}{missed}Connection: close\r\n\r\n",
        path_segment(request.agent),
        request.address,
        request.token,
        request.body.len(),
    )
}

fn path_segment(text: &str) -> String {
    use std::fmt::Write;
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            segment.push(char::from(byte));
        } else {
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}

/// Both in one packet where they fit, so that neither waits for the other's acknowledgement.
fn send(stream: &mut impl Write, head: &[u8], body: &[u8]) -> io::Result<()> {
    let sent = stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?;
    stream.write_all(head.get(sent..).unwrap_or_default())?;
    stream.write_all(&body[sent.saturating_sub(head.len())..])
}

fn receive(stream: &mut impl Read) -> io::Result<Response> {
    let mut received = Vec::with_capacity(1024);
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer)?;
        received.extend_from_slice(&buffer[..count]);
        let end = if count == 0 { End::Reached } else { End::Ahead };
        if let Some(response) = parse_response(&received, end)? {
            return Ok(response);
        }
        if end == End::Reached {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if received.len() > MAX_RESPONSE_BYTES {
            return Err(unreadable());
        }
    }
}

/// Whether the server has closed its side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Reached,
    Ahead,
}

/// The response, once it is whole.
fn parse_response(received: &[u8], end: End) -> io::Result<Option<Response>> {
    let Some(head_length) = received.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&received[..head_length]).map_err(|_| unreadable())?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(status_of).ok_or_else(unreadable)?;
    let mut content_length = None;
    let mut is_ours = false;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(unreadable());
        }
        is_ours |= name.eq_ignore_ascii_case("server") && value.trim().starts_with("agent-memory/");
        if name.eq_ignore_ascii_case("content-length") {
            content_length = Some(value.trim().parse::<usize>().map_err(|_| unreadable())?);
        }
    }
    let body = &received[head_length + 4..];
    let body = match content_length {
        _ if status == 204 => Some(&[][..]),
        Some(length) => body.get(..length),
        None => (end == End::Reached).then_some(body),
    };
    Ok(body.map(|body| Response { status, is_ours, body: body.to_vec() }))
}

fn status_of(line: &str) -> Option<u16> {
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

fn unreadable() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn remaining(deadline: Instant) -> io::Result<Duration> {
    deadline
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
        .ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// A connection on which every wait ends at the deadline.
struct TimedStream {
    stream: TcpStream,
    deadline: Instant,
}

impl Read for TimedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(remaining(self.deadline)?))?;
        self.stream.read(buffer)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(remaining(self.deadline)?))?;
        self.stream.write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(remaining(self.deadline)?))?;
        self.stream.write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(received: &str, end: End, expected: Option<(u16, &str)>) {
        let response = parse_response(received.as_bytes(), end).unwrap();
        let expected = expected.map(|(status, body)| Response { status, is_ours: false, body: body.into() });
        assert_eq!(response, expected);
    }

    #[test]
    fn waits_for_the_whole_body() {
        check("HTTP/1.1 200 OK\r\ncontent-le", End::Ahead, None);
        check("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{", End::Ahead, None);
        check("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", End::Ahead, Some((200, "{}")));
    }

    #[test]
    fn does_not_take_a_body_that_breaks_off() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", End::Reached, None);
    }

    #[test]
    fn takes_a_body_without_length_at_the_end_of_the_connection() {
        check("HTTP/1.0 200 OK\r\n\r\n{}", End::Ahead, None);
        check("HTTP/1.0 200 OK\r\n\r\n{}", End::Reached, Some((200, "{}")));
    }

    #[test]
    fn knows_that_204_has_no_body() {
        check("HTTP/1.1 204 No Content\r\n\r\n", End::Ahead, Some((204, "")));
    }

    #[test]
    fn understands_neither_chunks_nor_other_protocols() {
        for received in [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        ] {
            assert!(parse_response(received.as_bytes(), End::Reached).is_err(), "{received}");
        }
    }

    #[test]
    fn tells_our_server_from_another_program_on_its_port() {
        for (name, expected) in
            [("Server: agent-memory/0.1.0", true), ("server:agent-memory/9", true), ("Server: nginx", false)]
        {
            let received = format!("HTTP/1.1 204 No Content\r\n{name}\r\n\r\n");
            let response = parse_response(received.as_bytes(), End::Ahead).unwrap().unwrap();
            assert_eq!(response.is_ours, expected, "{name}");
        }
    }

    #[test]
    fn writes_a_request_that_names_agent_address_and_length() {
        let mut request = Request {
            address: "127.0.0.1:3377".parse().unwrap(),
            answer: Answer::WithReply,
            token: "secret",
            agent: "a/../b c",
            missed_deadlines: 0,
            body: b"{}",
        };
        let head = head_of(&request);
        assert!(head.starts_with("POST /api/hooks/a%2F..%2Fb%20c HTTP/1.1\r\nHost: 127.0.0.1:3377\r\n"), "{head}");
        assert!(head.contains("\r\nAuthorization: Bearer secret\r\n"));
        assert!(head.contains("\r\nContent-Length: 2\r\n"));
        assert!(head.ends_with("\r\nConnection: close\r\n\r\n"));
        assert!(!head.contains("Prefer:") && !head.contains("Missed"), "{head}");
        request.missed_deadlines = 3;
        assert!(head_of(&request).contains("\r\nAgent-Memory-Missed-Deadlines: 3\r\n"));
        request.answer = Answer::WhenSafe;
        assert!(head_of(&request).contains("\r\nPrefer: respond-async\r\n"));
    }

    #[test]
    fn sends_everything_where_the_connection_takes_little_at_a_time() {
        struct Narrow(Vec<u8>);
        impl Write for Narrow {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let count = bytes.len().min(3);
                self.0.extend_from_slice(&bytes[..count]);
                Ok(count)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut narrow = Narrow(Vec::new());
        send(&mut narrow, b"head", b"body").unwrap();
        assert_eq!(narrow.0, b"headbody");
    }
}

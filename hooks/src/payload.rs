//! The agent's event as it stands on stdin: read whole, freed of what stands before its first brace, never parsed.

use std::io::{self, IsTerminal, Read};
#[cfg(unix)]
use std::time::Duration;

/// An event larger than this is dropped: it would hold the agent up, and the server would not take it.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 32 * 1024 * 1024;

/// After this long without a byte, or without the end, the agent has forgotten to close stdin. Agents write an event at
/// once, and those that have a time limit for hooks end them themselves after a little more.
#[cfg(unix)]
const STDIN_PATIENCE: Duration = Duration::from_secs(4);

/// The event on stdin; `None` where there is none, or one that is too large or cannot be read.
pub(crate) fn read_stdin() -> Option<String> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return None;
    }
    #[cfg(unix)]
    if let Some(socket) = unix::socket_of(&stdin) {
        return read(socket);
    }
    read(stdin.lock())
}

fn read(source: impl Read) -> Option<String> {
    let mut bytes = Vec::with_capacity(16 * 1024);
    source.take(MAX_PAYLOAD_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() > MAX_PAYLOAD_BYTES {
        return None;
    }
    let start = bytes.iter().position(|&byte| byte == b'{')?;
    let object = bytes[start..].trim_ascii_end();
    // Bytes that are no UTF-8 would make the whole envelope unreadable; replaced, they cost only themselves.
    Some(String::from_utf8_lossy(object).into_owned())
}

/// Agents that run on Node.js or Bun, Claude Code among them, give their hooks a socket for stdin, and a socket can be
/// read under a deadline. A pipe cannot without a second thread, which costs a tenth of the whole program: there the
/// agent's own limit has to do.
#[cfg(unix)]
mod unix {
    use std::io::{self, Read, Stdin};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::STDIN_PATIENCE;

    pub(super) struct TimedSocket {
        socket: UnixStream,
        deadline: Instant,
    }

    pub(super) fn socket_of(stdin: &Stdin) -> Option<TimedSocket> {
        let socket = UnixStream::from(stdin.as_fd().try_clone_to_owned().ok()?);
        // Setting it is also how to find that this is no socket.
        socket.set_read_timeout(Some(STDIN_PATIENCE)).ok()?;
        Some(TimedSocket { socket, deadline: Instant::now() + STDIN_PATIENCE })
    }

    impl Read for TimedSocket {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if Instant::now() >= self.deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.socket.read(buffer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stdin: &[u8], expected: Option<&str>) {
        assert_eq!(read(stdin).as_deref(), expected);
    }

    #[test]
    fn keeps_an_object_verbatim() {
        check(br#"{ "a" :  [1,2 ] }"#, Some(r#"{ "a" :  [1,2 ] }"#));
    }

    #[test]
    fn skips_a_byte_order_mark_and_noise_before_the_object_and_space_after_it() {
        check(b"\xef\xbb\xbf{}\r\n", Some("{}"));
        check(b"Active code page: 65001\r\n{}", Some("{}"));
    }

    #[test]
    fn finds_nothing_where_there_is_no_object() {
        check(b"", None);
        check(b"\xef\xbb\xbf", None);
        check(b"null", None);
    }

    #[test]
    fn replaces_bytes_that_are_no_utf8() {
        check(b"{\"a\":\"\xff\"}", Some("{\"a\":\"\u{fffd}\"}"));
    }

    #[test]
    fn takes_an_object_of_the_largest_size_and_none_above() {
        let mut object = vec![b'x'; MAX_PAYLOAD_BYTES];
        object[0] = b'{';
        assert_eq!(read(object.as_slice()).map(|payload| payload.len()), Some(MAX_PAYLOAD_BYTES));
        object.push(b'x');
        check(&object, None);
    }

    #[test]
    fn finds_nothing_where_stdin_breaks_off() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
        assert_eq!(read(b"{".chain(Broken)), None);
    }
}

//! A client that costs as little as a client can: it shares its processors with what it measures. HTTP/1.1 by hand over one
//! connection that is kept, for answers with a length, which are all that the server gives.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// No answer takes this long: a database that is away is told after seconds.
const DEADLINE: Duration = Duration::from_secs(30);

/// What the server's answer to an event shall mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acknowledgement {
    /// It is committed.
    Committed,
    /// It outlives the server: how hooks ask.
    Safe,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    head: String,
    request: Vec<u8>,
    received: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(
        address: SocketAddr,
        token: &str,
        acknowledgement: Acknowledgement,
    ) -> io::Result<Self> {
        let stream = tokio::time::timeout(DEADLINE, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        let prefer = match acknowledgement {
            Acknowledgement::Committed => "",
            Acknowledgement::Safe => "Prefer: respond-async\r\n",
        };
        let head = format!(
            "POST /api/hooks/claude-code HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\n{prefer}Content-Length: "
        );
        Ok(Self { stream, head, request: Vec::new(), received: Vec::with_capacity(1024) })
    }

    /// Posts one event and gives the answer's status. After an error the connection is of no more use.
    pub(crate) async fn post(&mut self, body: &[u8]) -> io::Result<u16> {
        self.request.clear();
        self.request.extend_from_slice(self.head.as_bytes());
        self.request.extend_from_slice(format!("{}\r\n\r\n", body.len()).as_bytes());
        self.request.extend_from_slice(body);
        tokio::time::timeout(DEADLINE, self.exchange()).await?
    }

    async fn exchange(&mut self) -> io::Result<u16> {
        self.stream.write_all(&self.request).await?;
        self.received.clear();
        loop {
            if let Some(answer) = Answer::read(&self.received)?
                && self.received.len() >= answer.length_bytes
            {
                return Ok(answer.status);
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    length_bytes: usize,
}

impl Answer {
    /// The answer whose head has come in whole.
    fn read(received: &[u8]) -> io::Result<Option<Self>> {
        let Some(head_bytes) = received.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&received[..head_bytes]).map_err(io::Error::other)?;
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok())
            .ok_or_else(|| io::Error::other("the answer has no status"))?;
        let body_bytes = lines
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(Ok(0), |(_, value)| value.trim().parse::<usize>())
            .map_err(io::Error::other)?;
        Ok(Some(Self { status, length_bytes: head_bytes + 4 + body_bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_where_an_answer_ends() {
        assert_eq!(Answer::read(b"HTTP/1.1 204 No Content\r\nserver: x\r\n").unwrap(), None);
        let bare = b"HTTP/1.1 204 No Content\r\nserver: x\r\n\r\n";
        assert_eq!(Answer::read(bare).unwrap(), Some(Answer { status: 204, length_bytes: bare.len() }));
        let with_body = b"HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(Answer::read(with_body).unwrap(), Some(Answer { status: 503, length_bytes: with_body.len() + 2 }));
        assert!(Answer::read(b"nonsense\r\n\r\n").is_err());
    }
}

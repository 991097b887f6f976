//! Lines of a file of any size in bounded memory: one buffer, used again, and a line that is too long is passed over.

use std::io::{self, BufRead, Read as _};

/// The longest line that is read. Claude Code writes images and whole files into single lines, and they stay far below.
pub(super) const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;
/// What the buffer keeps after a long line.
const USUAL_LINE_BYTES: usize = 1024 * 1024;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Whole(&'a [u8]),
    /// The file's last line, which no line feed ends: its writer may be in the middle of it.
    Unended(&'a [u8]),
    TooLong,
}

pub(super) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    limit_bytes: usize,
    read_bytes: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn of(source: R) -> Self {
        Self { source, buffer: Vec::new(), limit_bytes: MAX_LINE_BYTES, read_bytes: 0 }
    }

    /// How far the file was read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// The next line, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.buffer.capacity() > USUAL_LINE_BYTES {
            self.buffer = Vec::new();
        }
        self.buffer.clear();
        let most = self.limit_bytes as u64 + 1;
        self.read_bytes += self.source.by_ref().take(most).read_until(b'\n', &mut self.buffer)? as u64;
        let mut is_ended = self.buffer.ends_with(b"\n");
        let is_too_long = !is_ended && self.buffer.len() > self.limit_bytes;
        while is_too_long && !is_ended {
            self.buffer.clear();
            let read = self.source.by_ref().take(most).read_until(b'\n', &mut self.buffer)?;
            self.read_bytes += read as u64;
            is_ended = read == 0 || self.buffer.ends_with(b"\n");
        }
        if is_too_long {
            return Ok(Some(Line::TooLong));
        }
        let text = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        Ok(match is_ended {
            true => Some(Line::Whole(text)),
            false if text.is_empty() => None,
            false => Some(Line::Unended(text)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, limit_bytes: usize, expected: &[Line<'_>]) {
        // A source that gives three bytes at a time, so that lines span its pieces.
        let source = io::BufReader::with_capacity(3, text.as_bytes());
        let mut lines = Lines { source, buffer: Vec::new(), limit_bytes, read_bytes: 0 };
        for line in expected {
            assert_eq!(lines.next().unwrap().as_ref(), Some(line), "{text:?}");
        }
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.read_bytes(), text.len() as u64);
    }

    #[test]
    fn gives_each_line_without_its_end() {
        check("one\r\n\ntwo\n", 10, &[Line::Whole(b"one"), Line::Whole(b""), Line::Whole(b"two")]);
    }

    #[test]
    fn tells_a_last_line_that_is_still_being_written() {
        check("one\ntw", 10, &[Line::Whole(b"one"), Line::Unended(b"tw")]);
    }

    #[test]
    fn passes_over_a_line_that_is_too_long_and_reads_on() {
        check("one\n0123456789x\ntwo\n", 10, &[Line::Whole(b"one"), Line::TooLong, Line::Whole(b"two")]);
    }
}

//! Images and other binary payloads in what agents send: nobody reads them, so what is kept of one is its description,
//! `[image/png, 48 kB]`.
//!
//! Two ways to know one: a block of JSON that says what it carries, and text that looks like nothing else (a `data:` URI, a long
//! run of base64, bytes that are no text). The same text always becomes the same description.

use std::borrow::Cow;

use serde_json::Value;

/// A run of base64 that is shorter may be a key, a digest or a name.
const MIN_RUN_BYTES: usize = 1024;
/// Base64 that is broken into lines, as MIME (76) and PEM (64) do, is known by this many lines of the same length.
const MIN_LINES: usize = 16;
const LINE_BYTES: std::ops::RangeInclusive<usize> = 60..=80;
/// Every payload has a run of so many bytes before its padding: looks that far apart miss none.
const STRIDE_BYTES: usize = *LINE_BYTES.start() - 2;
/// Below this a text is too short to be told from bytes.
const MIN_BYTES_OF_RAW: usize = 64;

/// The first characters of base64 by which formats are known.
const MAGIC: [(&str, &str); 9] = [
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
    ("JVBERi0", "application/pdf"),
    ("UEsDB", "application/zip"),
    ("H4sI", "application/gzip"),
    ("f0VMR", "application/x-executable"),
    ("AGFzbQ", "application/wasm"),
];

const TYPE_MEMBERS: [&str; 5] = ["media_type", "mimeType", "mime_type", "mediaType", "type"];
const DATA_MEMBERS: [&str; 3] = ["data", "base64", "blob"];

/// The description of a block that carries a payload: Anthropic's and MCP's image blocks, a tool's image file, Gemini's inline
/// data. `None`: it carries none.
pub(super) fn described_block(block: &Value) -> Option<String> {
    let members = block.as_object()?;
    let carrier =
        ["source", "inlineData", "inline_data", "file", "resource"].iter().find_map(|name| members.get(*name));
    [Some(block), carrier].into_iter().flatten().find_map(|carrier| {
        let text =
            |names: &[&str]| names.iter().filter_map(|name| carrier.get(*name)?.as_str()).map(str::to_owned).collect();
        let data: Vec<String> = text(&DATA_MEMBERS);
        let kinds: Vec<String> = text(&TYPE_MEMBERS);
        let kind = kinds.into_iter().find(|kind| kind.contains('/'))?;
        let data = data.into_iter().find(|data| data.bytes().all(is_base64_or_space))?;
        Some(description(&kind, decoded_bytes(data.len())))
    })
}

/// The text with each payload in it replaced by its description.
pub(super) fn described(text: &str) -> Cow<'_, str> {
    if is_raw(text) {
        return Cow::Owned(description("binary", text.len()));
    }
    if text.len() < MIN_RUN_BYTES {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut kept_until = 0;
    let mut at = 0;
    while let Some(payload) = next_payload(text, at) {
        out.push_str(&text[kept_until..payload.start]);
        out.push_str(&description(&payload.kind, decoded_bytes(payload.base64_bytes)));
        kept_until = payload.end;
        at = payload.end;
    }
    if kept_until == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept_until..]);
    Cow::Owned(out)
}

/// Where in a text a payload lies, in bytes.
struct Payload {
    start: usize,
    end: usize,
    kind: String,
    base64_bytes: usize,
}

fn next_payload(text: &str, text_from: usize) -> Option<Payload> {
    let bytes = text.as_bytes();
    let mut from = text_from;
    while let Some(last) = bytes.get(from + STRIDE_BYTES - 1) {
        if !is_base64(*last) {
            from += STRIDE_BYTES;
            continue;
        }
        let before = bytes[from..from + STRIDE_BYTES].iter().rposition(|byte| !is_base64(*byte));
        let at = before.map_or(from, |before| from + before + 1);
        let run = run_end(bytes, at) - at;
        let end = if run >= MIN_RUN_BYTES { at + run } else { block_end(bytes, at, run).unwrap_or(at) };
        if end > at && looks_random(&bytes[at..end]) {
            let (start, kind) = uri_before(text, at).unwrap_or_else(|| (at, kind_of(&text[at..end]).to_owned()));
            return Some(Payload { start: start.max(text_from), end, kind, base64_bytes: end - at });
        }
        from = at + run;
    }
    None
}

fn run_end(bytes: &[u8], from: usize) -> usize {
    let body = bytes[from..].iter().take_while(|byte| is_base64(**byte)).count();
    let padding = bytes[from + body..].iter().take(2).take_while(|byte| **byte == b'=').count();
    from + body + padding
}

/// The end of a block of lines that are all as long as the first, but for the last.
fn block_end(bytes: &[u8], from: usize, length: usize) -> Option<usize> {
    let starts_a_line = from == 0 || bytes[from - 1] == b'\n' || bytes[from - 1] == b',';
    if !starts_a_line || !LINE_BYTES.contains(&length) {
        return None;
    }
    let (mut end, mut lines) = (from + length, 1);
    loop {
        let newline = bytes[end..].iter().take(2).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let next = end + newline;
        let run = if newline == 0 { 0 } else { run_end(bytes, next) - next };
        if run == 0 || run > length {
            break;
        }
        (end, lines) = (next + run, lines + 1);
        if run < length {
            break;
        }
    }
    (lines >= MIN_LINES).then_some(end)
}

/// Upper case, lower case and digits in about the shares that random bytes have: prose, identifiers and hex have others.
fn looks_random(run: &[u8]) -> bool {
    let share = |is: fn(&u8) -> bool| run.iter().filter(|byte| is(byte)).count() * 100 / run.len();
    share(u8::is_ascii_uppercase) >= 15 && share(u8::is_ascii_lowercase) >= 15 && share(u8::is_ascii_digit) >= 5
}

/// Where a `data:` URI starts whose base64 begins here, and the type that it names.
fn uri_before(text: &str, base64_at: usize) -> Option<(usize, String)> {
    const LONGEST_HEAD_BYTES: usize = 128;
    let head = text[..base64_at].strip_suffix(";base64,")?;
    let start = head.rfind("data:").filter(|start| head.len() - start <= LONGEST_HEAD_BYTES)?;
    let kind = head[start + "data:".len()..].split(';').next().filter(|kind| kind.contains('/'));
    Some((start, kind.unwrap_or("binary").to_owned()))
}

fn kind_of(base64: &str) -> &'static str {
    MAGIC.iter().find(|(magic, _)| base64.starts_with(magic)).map_or("base64", |(_, kind)| kind)
}

/// Whether a fifth of the text and more is what text does not hold: NUL, control characters, bytes that were no UTF-8.
fn is_raw(text: &str) -> bool {
    if text.len() < MIN_BYTES_OF_RAW {
        return false;
    }
    let is_foreign = |c: char| matches!(c, '\0'..='\x06' | '\x0e'..='\x1a' | '\x1c'..='\x1f' | '\u{fffd}' | '\u{2400}');
    let (mut all, mut foreign) = (0_usize, 0_usize);
    for c in text.chars() {
        all += 1;
        foreign += usize::from(is_foreign(c));
    }
    foreign * 5 > all
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

fn is_base64_or_space(byte: u8) -> bool {
    is_base64(byte) || matches!(byte, b'=' | b'-' | b'_') || byte.is_ascii_whitespace()
}

fn decoded_bytes(base64_bytes: usize) -> usize {
    base64_bytes / 4 * 3
}

fn description(kind: &str, size_bytes: usize) -> String {
    match size_bytes {
        0..1_000 => format!("[{kind}, {size_bytes} B]"),
        1_000..1_000_000 => format!("[{kind}, {} kB]", size_bytes / 1_000),
        _ => format!("[{kind}, {}.{} MB]", size_bytes / 1_000_000, size_bytes / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Base64 as of random bytes, always the same.
    fn base64(length: usize) -> String {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(ALPHABET[(state >> 58) as usize])
        };
        (0..length).map(|_| next()).collect()
    }

    fn wrapped(base64: &str, length: usize) -> String {
        base64.as_bytes().chunks(length).map(|line| String::from_utf8_lossy(line) + "\n").collect()
    }

    #[test]
    fn describes_a_data_uri_and_keeps_what_is_around_it() {
        let page = format!("<img src=\"data:image/gif;base64,{}==\"> and so on", base64(2_000));
        assert_eq!(described(&page), "<img src=\"[image/gif, 1 kB]\"> and so on");
    }

    #[test]
    fn describes_base64_in_one_line_and_in_many() {
        let png = format!("iVBORw0KGgo{}", base64(64_000));
        assert_eq!(described(&png), "[image/png, 48 kB]");
        let mail = format!("Content:\n{}-- \nBye", wrapped(&base64(4_000), 76));
        assert_eq!(described(&mail), "Content:\n[base64, 3 kB]\n-- \nBye");
    }

    #[test]
    fn describes_several_in_one_text() {
        let text = format!("a {} b {} c", base64(2_000), base64(4_000));
        assert_eq!(described(&text), "a [base64, 1 kB] b [base64, 3 kB] c");
    }

    #[test]
    fn describes_bytes_that_are_no_text() {
        let utf16: String = "program".chars().flat_map(|c| [c, '\0']).cycle().take(200).collect();
        assert_eq!(described(&utf16), "[binary, 200 B]");
    }

    #[test]
    fn leaves_what_people_write_as_it_is() {
        let names = (0..400).map(|number| format!("someModule{number}/AnotherFile{number}")).collect::<Vec<_>>();
        let hex = (0..100).map(|number| format!("{number:064x}")).collect::<Vec<_>>().join("\n");
        for text in [
            names.join("\n"),
            names.join("/"),
            hex.clone(),
            hex.replace('\n', ""),
            "a".repeat(5_000),
            "find\0the\0files\0that\0are\0here\0".repeat(20).replace("the", "those-that-are-long"),
            "integrity sha512-".to_owned() + &base64(88),
            "fn main() {}\n".repeat(500),
        ] {
            assert_eq!(described(&text), text);
        }
    }

    #[test]
    fn knows_the_blocks_that_agents_and_tools_send() {
        let data = base64(4_000);
        for block in [
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}),
            json!({"type": "image", "data": data, "mimeType": "image/png"}),
            json!({"type": "image", "file": {"base64": data, "type": "image/png", "originalSize": 3000}}),
            json!({"inlineData": {"mimeType": "image/png", "data": data}}),
            json!({"type": "resource", "resource": {"uri": "x:/y", "mimeType": "image/png", "blob": data}}),
        ] {
            assert_eq!(described_block(&block).as_deref(), Some("[image/png, 3 kB]"), "{block}");
        }
        assert_eq!(described_block(&json!({"type": "text", "text": "image/png"})), None);
        assert_eq!(described_block(&json!({"type": "text/plain", "data": "two, words"})), None);
    }
}

//! What redaction costs: cleaning 4 KiB of text beside the scan for the rules' keywords alone.
//!
//! All kinds of text are cleaned in turn, round after round; what counts are the ratios of the medians. The texts come from a
//! fixed seed. A debug build measures the compiler's mood: the figures in the docs are of a release build.

use std::fmt::{self, Display};
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::ensure;
use memory::redact;
use serde::Serialize;

const TEXT_BYTES: usize = 4096;
/// Each kind has this many texts, so that no branch is learnt by heart.
const TEXTS: usize = 16;
const WARM_UP_ROUNDS: usize = 50;

/// The outcome of one run.
#[derive(Debug, Serialize)]
pub(crate) struct RedactBench {
    pub(crate) rounds: usize,
    pub(crate) build: &'static str,
    pub(crate) kinds: Vec<Row>,
}

/// Medians for one kind of text.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) kind: &'static str,
    pub(crate) keywords: f64,
    pub(crate) scan_us: f64,
    pub(crate) clean_us: f64,
}

struct Kind {
    name: &'static str,
    texts: Vec<String>,
    scans: Vec<Duration>,
    cleanings: Vec<Duration>,
}

pub(crate) fn run(rounds: usize) -> anyhow::Result<RedactBench> {
    ensure!(rounds > 0, "cannot measure in 0 rounds");
    let mut kinds: Vec<_> = KINDS
        .iter()
        .map(|(name, lines)| Kind { name, texts: texts(lines), scans: Vec::new(), cleanings: Vec::new() })
        .collect();
    for round in 0..WARM_UP_ROUNDS + rounds {
        for kind in &mut kinds {
            let text = &kind.texts[round % TEXTS];
            let start = Instant::now();
            black_box(redact::scan_keywords(black_box(text)));
            let scan = start.elapsed();
            let start = Instant::now();
            black_box(redact::clean(black_box(text)));
            let cleaning = start.elapsed();
            if round >= WARM_UP_ROUNDS {
                kind.scans.push(scan);
                kind.cleanings.push(cleaning);
            }
        }
    }
    let kinds = kinds.into_iter().map(|kind| Row {
        kind: kind.name,
        keywords: kind.texts.iter().map(|text| redact::scan_keywords(text)).sum::<usize>() as f64 / TEXTS as f64,
        scan_us: median_us(kind.scans),
        clean_us: median_us(kind.cleanings),
    });
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    Ok(RedactBench { rounds, build, kinds: kinds.collect() })
}

/// A Markdown table, which reads as well in a terminal.
impl Display for RedactBench {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} rounds of {TEXT_BYTES} bytes, all kinds in turn; {} build\n", self.rounds, self.build)?;
        writeln!(formatter, "| text                    | keywords |      scan |     clean | x scan |")?;
        writeln!(formatter, "| ----------------------- | -------: | --------: | --------: | -----: |")?;
        for row in &self.kinds {
            writeln!(
                formatter,
                "| {:<23} | {:>8.0} | {:>6.2} µs | {:>6.2} µs | {:>6.2} |",
                row.kind,
                row.keywords,
                row.scan_us,
                row.clean_us,
                row.clean_us / row.scan_us
            )?;
        }
        write!(formatter, "\nmedians; keywords: how many of the rules' keywords such a text holds")
    }
}

/// Texts of lines that a fixed seed chooses.
fn texts(lines: &[&str]) -> Vec<String> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = || {
        let mut text = String::new();
        while text.len() < TEXT_BYTES {
            let line = lines[(next() % lines.len() as u64) as usize];
            text.push_str(&line.replace("%%", &format!("{:016x}{:08x}", next(), next() as u32)));
            text.push('\n');
        }
        text.truncate(TEXT_BYTES);
        text
    };
    (0..TEXTS).map(|_| text()).collect()
}

fn median_us(mut elapsed: Vec<Duration>) -> f64 {
    elapsed.sort_unstable();
    elapsed.get(elapsed.len() / 2).map_or(0.0, |median| median.as_secs_f64() * 1e6)
}

/// Lines in ASCII, so that a text can be cut anywhere. `%%` becomes a number in hexadecimal.
const KINDS: [(&str, &[&str]); 5] = [
    (
        "prompts",
        &[
            "Please look at the failing test in src/parser/mod.rs and tell me why it fails since yesterday.",
            "I would rather have one function that decides and a thin one that reads and writes.",
            "The second column of the report is wrong for orders that were cancelled and then paid again.",
            "Add a flag to the command line that leaves out the summary, and describe it in the manual.",
            "Yes, do that. Then run everything once more and commit what works with a short message.",
        ],
    ),
    (
        "source code",
        &[
            "    let mut parser = Parser::new(&source, Options::default());",
            "    while let Some(token) = parser.next_token()? {",
            "        match token.kind { Kind::Key(name) => keys.push(name), _ => rest.push(token) }",
            "pub fn find_user(db: &Db, name: &str) -> Result<Option<User>, StoreError> {",
            "    const response = await fetch(`${base}/items/${id}`, { headers });",
            "    if (!user.verifyPassword(password)) { throw new AuthError('no such user'); }",
            "        self.cache.insert(key.clone(), Entry { value, expires_at });",
            "def test_reports_the_total(client, order): assert client.get(order.url).json()['total'] == 3",
        ],
    ),
    (
        "logs and outputs",
        &[
            "2026-05-01T10:00:00.123Z  INFO server::routes: answered method=GET path=/api/items status=200 duration_ms=3",
            "test store::tests::keeps_the_order_of_rows ... ok",
            "   Compiling serde_json v1.0.149",
            "%% refs/heads/main",
            "npm warn deprecated glob@7.2.3: versions before 9 are no longer supported",
            "drwxr-xr-x  4 dev dev   4096 May  1 10:00 target",
        ],
    ),
    (
        "JSON and lock files",
        &[
            r#"{"id": "%%", "name": "widgets", "count": 12, "tags": ["a", "b"], "parent": null},"#,
            r#"    "integrity": "sha512-%%","#,
            "checksum = \"%%%%\"",
            r#"{"type": "tool_use", "name": "Read", "input": {"file_path": "/home/dev/widgets/src/main.rs"}}"#,
        ],
    ),
    (
        "dense with keywords",
        &[
            "password: String, token = response.token, secret: &str, api_key = config.api_key",
            "export API_TOKEN=%% DB_PASSWORD=%%",
            "curl -u dev:%% -H 'Authorization: Bearer %%' https://dev:%%@example.com",
            r#"{"password": "%%", "client_secret": "%%", "key": "ArrowUp", "auth": null}"#,
            "sk- ghp_ xoxb- AKIA eyJ glpat- npm_ hf_ SG. cookie: session= bearer basic machine echo",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_texts_hold_no_secret_and_the_dense_one_does() {
        for (name, lines) in KINDS {
            let touched = texts(lines).iter().filter(|text| redact::clean(text) != text.as_str()).count();
            assert_eq!(touched, if name == "dense with keywords" { TEXTS } else { 0 }, "{name}");
        }
    }

    #[test]
    fn shows_the_ratio_to_the_scan() {
        let row = Row { kind: "prompts", keywords: 7.0, scan_us: 4.0, clean_us: 5.0 };
        let text = RedactBench { rounds: 10, build: "release", kinds: vec![row] }.to_string();
        assert!(text.contains("| prompts                 |        7 |   4.00 µs |   5.00 µs |   1.25 |"), "{text}");
    }
}

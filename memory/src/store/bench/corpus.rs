//! A large index made of a small one: documents mixed of those that are there, with words and directions of their own from a seeded
//! generator, so that every run makes the same. They go into the tables as the way in puts them there, but many at a time, and the
//! indexes of `mem_search_index` are built afterwards.

use std::fmt::Write as _;
use std::ops::Range;

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};

use super::super::documents::padded;
use super::super::{Db, STORED_DIMENSIONS, StoreError, document_texts};
use crate::analyze::{self, Lexemes};
use crate::ids::{DocumentId, DocumentKind};

/// Documents of one session: the first is a prompt, the others are calls.
pub const SESSION: u64 = 40;
/// Sessions of the small project, which holds [`SMALL_PROJECT`]; all others are spread over the large ones.
const SMALL_SESSIONS: u64 = 25;
const LARGE_PROJECTS: u64 = 20;
/// The project of the first thousand documents.
pub const SMALL_PROJECT: &str = "bench-small";
/// Ids of what is made begin here, far from those of what was recorded.
const FIRST_ROW: i64 = 1_000_000_000;
/// Documents in one copy, which one thread makes.
const CHUNK: u64 = 5_000;
/// Words of nobody's language: identifiers, of which a few are in many documents and most in few.
const INVENTED_WORDS: f64 = 300_000.0;
const INVENTED_A_DOCUMENT: usize = 6;
/// Of the vector's length, the part that is its own.
const NOISE: f32 = 0.6;

/// What documents are mixed of: texts and vectors of recorded ones.
#[derive(Debug, Clone)]
pub struct Corpus {
    words: Vec<Vec<String>>,
    vectors: Vec<Vec<f32>>,
    model: i32,
}

/// A document that was made up.
#[derive(Debug, Clone)]
pub struct Mixed {
    pub words: Vec<String>,
    vector: Vec<f32>,
}

impl Corpus {
    /// Reads every document that has a vector.
    pub async fn read(db: &Db) -> Result<Self, StoreError> {
        let rows = sqlx::query!(
            r#"select document_kind, document_id, embedding_model_id as "model!", embedding::real[] as "vector!: Vec<f32>"
               from mem_search_index where embedding is not null order by document_kind, document_id"#
        )
        .fetch_all(db)
        .await?;
        let mut connection = db.acquire().await?;
        let mut corpus = Self { words: Vec::new(), vectors: Vec::new(), model: 0 };
        for row in rows {
            let Ok(kind) = row.document_kind.parse::<DocumentKind>() else { continue };
            let id = DocumentId { kind, row: row.document_id };
            let Some(document) = document_texts(&mut connection, &[id]).await?.pop() else { continue };
            let words: Vec<_> = document.text.split_whitespace().take(400).map(str::to_owned).collect();
            if words.len() < 8 {
                continue;
            }
            corpus.words.push(words);
            corpus.vectors.push(row.vector);
            corpus.model = row.model;
        }
        Ok(corpus)
    }

    /// How many documents it was read from.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The document of that number.
    pub fn mix(&self, number: u64) -> Mixed {
        // Documents of a session are about one thing: they are mixed of neighbours.
        let mut session = Random::of(number / SESSION + 1);
        let mut random = Random::of(number ^ 0x5bd1_e995_0000_0000);
        let near = session.below(self.len());
        let first = (near + random.below(12)) % self.len();
        let second = random.below(self.len());
        let mut words = Vec::with_capacity(200);
        for (from, most) in [(first, 140), (second, 50)] {
            let source = &self.words[from];
            let count = (most / 2 + random.below(most / 2)).min(source.len());
            let start = random.below(source.len() - count + 1);
            words.extend_from_slice(&source[start..start + count]);
        }
        for _ in 0..INVENTED_A_DOCUMENT {
            let word = INVENTED_WORDS.powf(random.share()) as u64;
            let place = random.below(words.len());
            words.insert(place, format!("ident_{word:05x}"));
        }
        let mut vector: Vec<f32> =
            self.vectors[first].iter().zip(&self.vectors[second]).map(|(one, two)| 0.75 * one + 0.25 * two).collect();
        // Only where the model's vectors are: the rest is padding.
        let dimensions = self.vectors[first].iter().rposition(|value| *value != 0.0).map_or(0, |last| last + 1);
        let noise: Vec<f32> = (0..dimensions).map(|_| random.normal()).collect();
        let scale = NOISE * length(&vector) / length(&noise).max(f32::EPSILON);
        vector.iter_mut().zip(&noise).for_each(|(value, noise)| *value += scale * noise);
        let unit = length(&vector).max(f32::EPSILON);
        for value in &mut vector {
            *value /= unit;
        }
        vector.resize(STORED_DIMENSIONS, 0.0);
        Mixed { words, vector }
    }
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|value| value * value).sum::<f32>().sqrt()
}

/// Adds the documents of these numbers; both are multiples of [`SESSION`]. `made` is told how many there are so far.
pub async fn grow(db: &Db, corpus: &Corpus, numbers: Range<u64>, made: impl Fn(u64)) -> Result<(), StoreError> {
    let mut connection = db.acquire().await?;
    sqlx::raw_sql("set statement_timeout = 0").execute(&mut *connection).await?;
    let indexes = drop_indexes(&mut connection).await?;
    let projects = add_sessions(&mut connection, numbers.start / SESSION..numbers.end.div_ceil(SESSION)).await?;
    let mut start = numbers.start;
    while start < numbers.end {
        // As many threads as this machine has are made use of: the copy waits for them, and they for nothing.
        let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let ranges = (0..threads).map(|thread| {
            let from = (start + thread * CHUNK).min(numbers.end);
            from..(from + CHUNK).min(numbers.end)
        });
        let tasks: Vec<_> = ranges
            .filter(|range| !range.is_empty())
            .map(|range| {
                let (corpus, projects) = (corpus.clone(), projects.clone());
                tokio::task::spawn_blocking(move || Lines::of(&corpus, &projects, range))
            })
            .collect();
        for task in tasks {
            let lines = task.await.map_err(|error| sqlx::Error::Io(std::io::Error::other(error)))?;
            copy(
                &mut connection,
                "mem_user_prompts (id, session_id, prompt_id, turn_index, prompt, occurred_at)",
                lines.prompts,
            )
            .await?;
            copy(
                &mut connection,
                "mem_tool_calls (id, session_id, tool_use_id, prompt_id, prev_user_prompt_id, turn_index, turn_subindex, tool_name, \
                 input, output_preview, success, content_hash, occurred_at)",
                lines.calls,
            )
            .await?;
            copy(
                &mut connection,
                "mem_search_index (document_kind, document_id, project_id, session_id, occurred_at, lexemes, length, analysis, \
                 embedding, embedding_model_id)",
                lines.documents,
            )
            .await?;
        }
        start = (start + threads * CHUNK).min(numbers.end);
        made(start);
    }
    for definition in indexes {
        sqlx::raw_sql(AssertSqlSafe(definition)).execute(&mut *connection).await?;
    }
    sqlx::raw_sql("vacuum (analyze) mem_search_index, mem_tool_calls, mem_user_prompts, mem_sessions")
        .execute(&mut *connection)
        .await?;
    // Counted now, not when its turn comes.
    sqlx::raw_sql("update mem_search_statistics set counted_at = now() - interval '1 day'")
        .execute(&mut *connection)
        .await?;
    drop(connection);
    super::super::count_lexemes(db).await?;
    Ok(())
}

/// Drops what is costly to keep while rows are copied; gives the statements that make it again.
async fn drop_indexes(connection: &mut PgConnection) -> Result<Vec<String>, StoreError> {
    let indexes = sqlx::query!(
        r#"select indexname as "name!", indexdef as "definition!" from pg_indexes
           where tablename = 'mem_search_index' and indexname <> 'mem_search_index_pkey'"#
    )
    .fetch_all(&mut *connection)
    .await?;
    for index in &indexes {
        sqlx::raw_sql(AssertSqlSafe(format!("drop index {}", index.name))).execute(&mut *connection).await?;
    }
    let settings = "set maintenance_work_mem = '4GB'; set max_parallel_maintenance_workers = 4";
    Ok([settings.to_owned()].into_iter().chain(indexes.into_iter().map(|index| index.definition)).collect())
}

/// Adds projects and sessions; gives the projects' rows, the small one first.
async fn add_sessions(connection: &mut PgConnection, sessions: Range<u64>) -> Result<Vec<i64>, StoreError> {
    sqlx::query!(
        "insert into mem_projects (identity_key, name)
         select name, name from unnest($1::text[]) as project (name) on conflict do nothing",
        &names(),
    )
    .execute(&mut *connection)
    .await?;
    let projects = sqlx::query_scalar!(
        r#"select project.id from unnest($1::text[]) with ordinality as named (name, place)
           join mem_projects project using (name) order by place"#,
        &names(),
    )
    .fetch_all(&mut *connection)
    .await?;
    sqlx::query!(
        "insert into mem_sessions (id, agent, external_id, project_id, branch, started_at, last_event_at)
         overriding system value
         select $1 + number, 'claude-code', 'bench-' || number,
                ($4::bigint[])[case when number < $5 then 1 else number % $6 + 2 end], 'main', now(), now()
         from generate_series($2::bigint, $3::bigint - 1) number
         on conflict do nothing",
        FIRST_ROW,
        sessions.start as i64,
        sessions.end as i64,
        &projects,
        SMALL_SESSIONS as i64,
        LARGE_PROJECTS as i64,
    )
    .execute(connection)
    .await?;
    Ok(projects)
}

fn names() -> Vec<String> {
    let large = (0..LARGE_PROJECTS).map(|number| format!("bench-{number}"));
    [SMALL_PROJECT.to_owned()].into_iter().chain(large).collect()
}

/// The place among the projects of a session's.
fn project_of(session: u64) -> usize {
    if session < SMALL_SESSIONS { 0 } else { (session % LARGE_PROJECTS + 1) as usize }
}

/// Rows of three tables in the text form of `copy`.
#[derive(Default)]
struct Lines {
    prompts: String,
    calls: String,
    documents: String,
}

impl Lines {
    fn of(corpus: &Corpus, projects: &[i64], numbers: Range<u64>) -> Self {
        let mut lines = Self::default();
        for number in numbers {
            let project = projects[project_of(number / SESSION)];
            lines.add(number, &corpus.mix(number), project, corpus.model);
        }
        lines
    }

    fn add(&mut self, number: u64, mixed: &Mixed, project: i64, model: i32) {
        let (session_number, place) = (number / SESSION, number % SESSION);
        let (row, session) = (FIRST_ROW + number as i64, FIRST_ROW + session_number as i64);
        let (prompt, prompt_number) = (row - place as i64, number - place);
        let at = moment(number).to_rfc3339();
        let text = mixed.words.join(" ");
        let kind = if place == 0 {
            let _ = writeln!(self.prompts, "{row}\t{session}\tp{number}\t0\t{}\t{at}", escaped(&text));
            DocumentKind::Prompt
        } else {
            let (command, output) = text.split_at(text.char_indices().nth(120).map_or(text.len(), |(at, _)| at));
            let input = serde_json::json!({ "command": command }).to_string();
            let _ = writeln!(
                self.calls,
                "{row}\t{session}\tt{number}\tp{prompt_number}\t{prompt}\t0\t{place}\tBash\t{}\t{}\tt\t\\\\x{number:016x}\t{at}",
                escaped(&input),
                escaped(output),
            );
            DocumentKind::Call
        };
        let Lexemes { tsvector, length } = Lexemes::of(&text);
        let _ = write!(
            self.documents,
            "{}\t{row}\t{project}\t{session}\t{at}\t{}\t{length}\t{}\t[",
            kind.as_str(),
            escaped(&tsvector),
            analyze::VERSION,
        );
        for (place, value) in padded(mixed.vector.clone()).as_slice().iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(self.documents, "{comma}{value}");
        }
        let _ = writeln!(self.documents, "]\t{model}");
    }
}

/// When a document happened: they come one after the other.
pub fn moment(number: u64) -> DateTime<Utc> {
    const FIRST: i64 = 1_750_000_000;
    const APART_SECONDS: u64 = 20;
    DateTime::from_timestamp(FIRST + (number * APART_SECONDS) as i64, 0).unwrap_or_default()
}

/// A value in the text form of `copy`. Postgres keeps no zero bytes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => {}
            other => out.push(other),
        }
    }
    out
}

async fn copy(connection: &mut PgConnection, columns: &str, lines: String) -> Result<(), StoreError> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut into = connection.copy_in_raw(&format!("copy {columns} from stdin")).await?;
    into.send(lines.into_bytes()).await?;
    into.finish().await?;
    Ok(())
}

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
pub struct Random(u64);

impl Random {
    pub fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^ (drawn >> 31)
    }

    /// 0 to 1, without 1.
    fn share(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// 0 to `limit`, without it; 0 where that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.share() * limit as f64) as usize
    }

    /// Normally distributed, about: the sum of twelve (Irwin and Hall).
    fn normal(&mut self) -> f32 {
        ((0..12).map(|_| self.share()).sum::<f64>() - 6.0) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> Corpus {
        let words = |from: usize| (0..40).map(|word| format!("word{}", from + word)).collect();
        let vector = |at: usize| (0..4).map(|place| if place == at % 4 { 1.0 } else { 0.1 }).collect();
        Corpus { words: (0..5).map(words).collect(), vectors: (0..5).map(vector).collect(), model: 1 }
    }

    #[test]
    fn makes_the_same_of_a_number_every_time() {
        let (one, two) = (corpus().mix(77), corpus().mix(77));
        assert_eq!((&one.words, &one.vector), (&two.words, &two.vector));
        assert_ne!(one.words, corpus().mix(78).words);
        assert!((length(&one.vector) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn writes_a_row_a_document_and_escapes_what_copy_takes_for_its_own() {
        let lines = Lines::of(&corpus(), &[7; 21], 0..SESSION);
        assert_eq!((lines.prompts.lines().count(), lines.calls.lines().count()), (1, SESSION as usize - 1));
        assert_eq!(lines.documents.lines().count(), SESSION as usize);
        assert!(lines.documents.lines().all(|line| line.split('\t').count() == 10));
        assert_eq!(escaped("a\tb\\c\n"), r"a\tb\\c\n");
    }
}

//! How long a search takes in a small, a large and a very large index, beside the two scans that no search can do without, and how much
//! memory the programs hold.
//!
//! The documents are mixed of recorded transcripts, with seeded noise (`memory::store::bench`); the queries are words of them. Each search
//! goes over HTTP to a server with the embedding model, and says itself how long the database and the model took.

mod mcp;
mod report;
mod timing;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use memory::embed::QueryVector;
use memory::project::ProjectPolicy;
use memory::store::bench::{self as rows, Corpus, Random, SMALL_PROJECT};
use memory::store::{Db, ProjectCache};
use memory::transcripts::{self, Places};
use serde::Deserialize;
use serde_json::{Value, json};

use super::asker::Asker;
use super::stage::{Stage, indexed};
use crate::health;
use crate::output::Step;
pub(crate) use report::RecallBench;
use report::{Memory, Row, Size};
use timing::Timings;

/// Searches that are not measured: they load what the others find loaded.
const WARM_UP: usize = 50;
/// Words of a document that make a query.
const WORDS: std::ops::Range<usize> = 3..8;

/// Measures against a stage whose server runs. `folder` holds transcripts; `sizes` rise.
pub(crate) async fn run(
    stage: &Stage,
    folder: &Path,
    sizes: &[u64],
    queries: usize,
    step: &Step,
) -> Result<RecallBench> {
    ensure!(sizes.is_sorted() && !sizes.is_empty(), "the sizes must rise");
    ensure!(queries > 0, "without queries nothing can be measured");
    let server = Asker::of(stage)?;
    let db = stage.database().await?;
    step.say("Storing the transcripts");
    take_in(&db, folder).await?;
    step.say("Waiting for the vectors");
    indexed(&db).await?;
    let corpus = Corpus::read(&db).await.context("cannot read what was stored")?;
    ensure!(corpus.len() >= 50, "{} documents are too few to mix others of", corpus.len());
    let mut memory = Memory { server_idle_bytes: resident(stage).await?, ..Memory::default() };
    let mut measured = Vec::new();
    let mut there = 0;
    for size in sizes {
        let size = size.div_ceil(rows::SESSION) * rows::SESSION;
        let started = Instant::now();
        rows::grow(&db, &corpus, there..size, |made| step.say(format!("Making {size} documents: {made}")))
            .await
            .context("cannot make the documents")?;
        there = size;
        measured.push(measure(&server, &db, &corpus, size, queries, step).await?.built_in(started.elapsed()));
    }
    memory.server_bytes = resident(stage).await?;
    step.say("Measuring the memory of the MCP program");
    let texts: Vec<_> = (0..queries as u64).map(|number| query(&corpus, there, number)).collect();
    (memory.mcp_idle_bytes, memory.mcp_bytes) = mcp::measure(stage.home(), &texts).await?;
    db.close().await;
    Ok(RecallBench { corpus: corpus.len(), queries, sizes: measured, memory })
}

async fn take_in(db: &Db, folder: &Path) -> Result<()> {
    let mut projects = ProjectCache::new(ProjectPolicy::default());
    for path in files(folder)? {
        let Some(agent) = transcripts::written_by(&path).with_context(|| told(&path))? else { continue };
        let Some(file) = transcripts::of_path(agent, &path) else { continue };
        let places = Places::new(super::backfill::worker::inspected, |_| Ok(()));
        let context = transcripts::Context::new(agent, places);
        let (_, taken) = transcripts::take_in(db, &file, context, &mut projects).await;
        taken.with_context(|| told(&path))?;
    }
    Ok(())
}

fn told(path: &Path) -> String {
    format!("cannot store `{}`", path.display())
}

/// Every transcript in a folder and in those below it, in an order that does not change.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
        for entry in entries {
            let path = entry.with_context(|| format!("cannot read `{}`", folder.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "jsonl") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

async fn resident(stage: &Stage) -> Result<Option<u64>> {
    let health = health::fetch(stage.addresses()?[0]).await?;
    Ok(health.memory.and_then(|memory| memory.resident_bytes))
}

/// Words of a document somewhere in the index, in no order.
fn query(corpus: &Corpus, size: u64, number: u64) -> String {
    let mut random = Random::of(number ^ 0x0071_7565_7279);
    let document = corpus.mix(random.below(size as usize) as u64);
    let count = WORDS.start + random.below(WORDS.len());
    let words: Vec<_> = (0..count).map(|_| document.words[random.below(document.words.len())].as_str()).collect();
    // A dash would leave words out, and quotes would want them in a row.
    words.join(" ").replace(['"', '“', '”', '„'], " ").replace(" -", " ")
}

/// What a search says of itself.
#[derive(Deserialize)]
struct Found {
    notes: Vec<String>,
    explanation: Explanation,
}

#[derive(Deserialize)]
struct Explanation {
    looked_up: Option<String>,
    milliseconds: Milliseconds,
}

#[derive(Deserialize)]
struct Milliseconds {
    embedding: f64,
    database: f64,
}

async fn measure(server: &Asker, db: &Db, corpus: &Corpus, size: u64, queries: usize, step: &Step) -> Result<Size> {
    let filters = [
        ("none", json!({})),
        ("a project of 1,000", json!({ "project": SMALL_PROJECT })),
        ("a large project", json!({ "project": "bench-3" })),
        ("prompts only", json!({ "type": "prompt" })),
        ("the last tenth", json!({ "dateStart": rows::moment(size - size / 10).to_rfc3339() })),
    ];
    for number in 0..WARM_UP as u64 {
        search(server, &query(corpus, size, u64::MAX - number), &filters[0].1).await?;
    }
    let mut timings: Vec<_> = filters.iter().map(|(name, _)| Timings::of(name)).collect();
    let (mut hnsw, mut gin) = (Timings::of("one HNSW scan"), Timings::of("one GIN scan"));
    for number in 0..queries {
        if number % 50 == 0 {
            step.say(format!("Searching in {size} documents: {number} of {queries}"));
        }
        // Whatever else the machine does falls on each alike. No two ask for the same: vectors are kept.
        for (at, (_, filter)) in filters.iter().enumerate() {
            let text = query(corpus, size, (number * filters.len() + at) as u64);
            let started = Instant::now();
            let found = search(server, &text, filter).await?;
            let took = started.elapsed();
            timings[at].push(took, found.explanation.milliseconds.database, found.explanation.milliseconds.embedding);
            if at == 0 {
                let vector: QueryVector = server.ask("/api/embed", &json!({ "text": text })).await?;
                let started = Instant::now();
                rows::by_hnsw(db, &vector).await.context("cannot scan the HNSW index")?;
                hnsw.push_scan(started.elapsed());
                if let Some(tsquery) = &found.explanation.looked_up {
                    let started = Instant::now();
                    rows::by_gin(db, tsquery).await.context("cannot scan the GIN index")?;
                    gin.push_scan(started.elapsed());
                }
            }
        }
    }
    let (hnsw, gin) = (hnsw.finish(None), gin.finish(None));
    let raw = hnsw.p50_ms + gin.p50_ms;
    let searches: Vec<Row> = timings.into_iter().map(|timings| timings.finish(Some(raw))).collect();
    Ok(Size { documents: size, built_seconds: 0.0, searches, scans: vec![hnsw, gin] })
}

async fn search(server: &Asker, text: &str, filter: &Value) -> Result<Found> {
    let mut search = json!({ "query": text, "limit": 10, "explain": true });
    if let (Some(search), Some(filter)) = (search.as_object_mut(), filter.as_object()) {
        search.extend(filter.clone());
    }
    let found: Found = server.ask("/api/observations/search", &search).await?;
    ensure!(
        found.notes.iter().all(|note| !note.contains("words alone")),
        "the search went without a model: {:?}",
        found.notes
    );
    Ok(found)
}

//! How many events a second the server takes in, beside the same rows inserted by hand into the same Postgres.
//!
//! Each round inserts a lot by hand and then sends as many events through every number of clients, so that whatever else the
//! machine does falls on each alike. The time ends with the last commit, not with the last answer. After every run the journal is
//! held against what was sent.
//!
//! A client that waits for each commit lets nobody put two of its events into one: what that costs by hand, over as many
//! connections, is measured too.

mod report;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::Utc;
use futures_util::future::try_join_all;
use memory::event::{Agent, Envelope, Event, Reading, read};
use memory::store::Db;
use memory::store::bench::{self as rows, Reference};
use serde::Serialize;

pub(crate) use report::IngestBench;

use super::load::{Acknowledgement, Client, Clock, Ledger, Outgoing, Sent, Session};
use super::stage::Stage;
use crate::output::Step;

const CLIENTS: [usize; 3] = [1, 8, 64];
/// What the server's throughput is at least, as a share of the reference's.
pub(crate) const MIN_RATIO: f64 = 0.5;
/// A client that waits for each commit sends one event a flush of the disk: so many are enough to measure that.
const MAX_EVENTS_OF_A_WAITING_CLIENT: usize = 250;
const POLL: Duration = Duration::from_millis(1);

/// Who sends, and what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Setting {
    pub(crate) clients: usize,
    /// Whether the answer comes after the commit, or when the event is safe, which is how hooks ask.
    pub(crate) waits_for_commit: bool,
}

impl Setting {
    fn events(self, events: usize) -> usize {
        if self.waits_for_commit { events.min(MAX_EVENTS_OF_A_WAITING_CLIENT * self.clients) } else { events }
    }
}

/// Events a second by hand.
#[derive(Debug, Clone, Copy)]
struct ByHand {
    in_batches: f64,
    one_by_one: Option<f64>,
}

/// One run of one setting.
#[derive(Debug, Clone, Copy)]
struct Measured {
    events_per_second: f64,
    /// Against the rows by hand of the same round, in batches.
    ratio: f64,
    /// Against the rows by hand of the same round, each event in a commit of its own; where clients wait for it.
    ratio_one_by_one: Option<f64>,
    p50_ms: f64,
    p99_ms: f64,
}

/// Measures against a stage whose server runs. `events` are those of one run.
pub(crate) async fn run(stage: &Stage, rounds: usize, events: usize, step: &Step) -> Result<IngestBench> {
    ensure!(rounds > 0 && events >= CLIENTS[2], "too little to measure: {rounds} rounds of {events} events");
    let db = stage.database().await?;
    let url = stage.home().database_url().context("the database's URL is not there")?;
    let many = rows::connections(&url, CLIENTS[2] as u32).await.context("cannot open connections to insert by hand")?;
    let address = stage.addresses()?[0];
    let token = stage.home().token().context("the token is not there")?;
    let settings: Vec<_> = [true, false]
        .iter()
        .flat_map(|waits| CLIENTS.map(|clients| Setting { clients, waits_for_commit: *waits }))
        .collect();
    let mut bench = report::Collected::new(&settings);
    let mut ledger = Ledger::default();
    for round in 0..rounds {
        step.say(format!("Measuring round {} of {rounds}: by hand", round + 1));
        let in_batches = insert_by_hand(&db, &[8], events, rows::BATCH, &mut ledger).await?;
        bench.push_reference(None, in_batches);
        for setting in &settings {
            step.say(format!("Measuring round {} of {rounds}: {} clients", round + 1, setting.clients));
            let events = setting.events(events);
            let mut by_hand = ByHand { in_batches, one_by_one: None };
            if setting.waits_for_commit {
                let sessions = vec![1; setting.clients];
                let one_by_one = insert_by_hand(&many, &sessions, events, 1, &mut ledger).await?;
                bench.push_reference(Some(setting.clients), one_by_one);
                by_hand.one_by_one = Some(one_by_one);
            }
            let server = Server { address, token: &token, spool: &stage.home().spool() };
            let measured = send(&server, *setting, events, by_hand, &mut ledger).await?;
            check(&db, &ledger).await?;
            bench.push(*setting, measured);
        }
    }
    let audit = ledger.audit(rows::journal_rows(&db).await.context("cannot read the journal")?);
    db.close().await;
    many.close().await;
    Ok(bench.finish(rounds, events, audit))
}

/// Inserts over one connection for each of `connections`, which says how many sessions interleave there; gives the events a
/// second.
async fn insert_by_hand(
    db: &Db,
    connections: &[usize],
    events: usize,
    batch: usize,
    ledger: &mut Ledger,
) -> Result<f64> {
    let mut count = 0;
    let mut references = Vec::with_capacity(connections.len());
    for (number, sessions) in connections.iter().enumerate() {
        let outgoing = outgoing(&format!("by-hand-{number}"), *sessions, events / connections.len());
        let interleaved =
            (0..outgoing[0].len()).flat_map(|at| outgoing.iter().filter_map(move |session| session.get(at)));
        let mut parsed = Vec::new();
        for event in interleaved {
            ledger.note(event.key.clone(), Sent::Acknowledged);
            parsed.push(parse(event)?);
        }
        count += parsed.len();
        references.push(Reference::of(&parsed, batch));
    }
    let started = Instant::now();
    let inserting = references.into_iter().map(|reference| {
        let db = db.clone();
        tokio::spawn(async move { rows::insert(&db, &reference).await })
    });
    for inserted in try_join_all(inserting).await.context("inserting by hand broke off")? {
        inserted.context("cannot insert the rows by hand")?;
    }
    Ok(count as f64 / started.elapsed().as_secs_f64())
}

fn parse(outgoing: &Outgoing) -> Result<Event> {
    let envelope = Envelope::parse(outgoing.envelope.as_bytes(), Some(Agent::ClaudeCode), Utc::now())?;
    match read(envelope) {
        Reading::Kept(event) => Ok(*event),
        reading => anyhow::bail!("an event would not be kept: {reading:?}"),
    }
}

/// The events of each session.
fn outgoing(name: &str, sessions: usize, events: usize) -> Vec<Vec<Outgoing>> {
    (0..sessions)
        .map(|number| {
            let mut session = Session::new(&format!("{name}-{number}"), Clock::Right);
            (0..events.div_ceil(sessions)).map(|_| session.next()).collect()
        })
        .collect()
}

struct Server<'a> {
    address: SocketAddr,
    token: &'a str,
    spool: &'a Path,
}

async fn send(
    server: &Server<'_>,
    setting: Setting,
    events: usize,
    by_hand: ByHand,
    ledger: &mut Ledger,
) -> Result<Measured> {
    let Setting { clients, waits_for_commit } = setting;
    let acknowledgement = if waits_for_commit { Acknowledgement::Committed } else { Acknowledgement::Safe };
    let outgoing = outgoing("http", clients, events);
    let count: usize = outgoing.iter().map(Vec::len).sum();
    for event in outgoing.iter().flatten() {
        ledger.note(event.key.clone(), Sent::Acknowledged);
    }
    let connections = (0..clients).map(|_| Client::connect(server.address, server.token, acknowledgement));
    let connections = try_join_all(connections).await.context("cannot connect to the server")?;
    let started = Instant::now();
    let sending = connections.into_iter().zip(outgoing).map(|(client, events)| tokio::spawn(post(client, events)));
    let mut waits = Vec::with_capacity(count);
    for sent in try_join_all(sending).await.context("a client broke off")? {
        waits.extend(sent?);
    }
    // Files lie there until their events are committed.
    while has_files(server.spool)? {
        tokio::time::sleep(POLL).await;
    }
    let events_per_second = count as f64 / started.elapsed().as_secs_f64();
    waits.sort_unstable();
    let quantile = |share: f64| waits[((share * waits.len() as f64).ceil() as usize).clamp(1, waits.len()) - 1];
    Ok(Measured {
        events_per_second,
        ratio: events_per_second / by_hand.in_batches,
        ratio_one_by_one: by_hand.one_by_one.map(|by_hand| events_per_second / by_hand),
        p50_ms: quantile(0.5).as_secs_f64() * 1e3,
        p99_ms: quantile(0.99).as_secs_f64() * 1e3,
    })
}

async fn post(mut client: Client, events: Vec<Outgoing>) -> Result<Vec<Duration>> {
    let mut waits = Vec::with_capacity(events.len());
    for event in events {
        let started = Instant::now();
        let status = client.post(event.envelope.as_bytes()).await.context("the server does not answer")?;
        ensure!(matches!(status, 200 | 202 | 204), "the server answered {status}");
        waits.push(started.elapsed());
    }
    Ok(waits)
}

fn has_files(spool: &Path) -> Result<bool> {
    let entries = std::fs::read_dir(spool).context("cannot read the spool")?;
    Ok(entries.flatten().any(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())))
}

async fn check(db: &Db, ledger: &Ledger) -> Result<()> {
    let audit = ledger.audit(rows::journal_rows(db).await.context("cannot read the journal")?);
    ensure!(audit.lost == 0, "{} of {} events are lost", audit.lost, audit.sent);
    ensure!(audit.doubled == 0, "{} rows are nobody's", audit.doubled);
    let unindexed = rows::unindexed(db).await.context("cannot read the index")?;
    ensure!(unindexed == 0, "{unindexed} rows are not in the index");
    Ok(())
}

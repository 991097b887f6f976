//! Two servers on one Postgres, behind a pooler in transaction mode, with a replica that commits wait for: a server is killed, then the
//! primary, and nothing that was taken is lost or doubled (docs/scale.md).

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tests::conversation::{Conversation, Event};
use tests::database::Database;
use tests::replicated::Replicated;
use tests::stack::Stack;
use tests::{hook, settings, summary, wait};
use tokio::sync::watch;
use tokio::task::JoinSet;

const CLIENTS: usize = 64;
const CALLS: usize = 8;
const EVENTS: usize = CLIENTS * (CALLS + 1);

/// What the search tool promises at most, in whatever state the database is.
const DEADLINE: Duration = Duration::from_secs(15);
/// And where nothing is amiss, with 64 asking at once on a busy machine.
const AFTERWARDS: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_doubled_when_a_server_and_then_the_primary_dies() -> Result<()> {
    let Some(postgres) = replicated().await? else { return Ok(()) };
    let started = Instant::now();
    refuses_what_cannot_work(&postgres).await?;
    let mut stacks = [stack(&postgres)?, stack(&postgres)?];
    let [one, other] = &mut stacks;
    // Both find an empty database, and only one makes its schema.
    tokio::try_join!(one.start_server(), other.start_server())?;

    let (done, progress) = watch::channel(0);
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(Client::new(number, &stacks, done.clone()).work());
    }
    let [one, other] = &mut stacks;
    reaches(&progress, EVENTS / 4).await?;
    other.kill_server().await?;
    reaches(&progress, EVENTS / 2).await?;
    postgres.kill_primary().await?;
    // Some are sent while there is no database at all.
    reaches(&progress, EVENTS * 5 / 8).await?;
    let away = Instant::now();
    postgres.fail_over().await?;
    let fail_over = away.elapsed();
    let mut worked = Vec::new();
    while let Some(client) = clients.join_next().await {
        worked.push(client.context("a client broke off")??);
    }
    other.start_server().await?;
    tokio::try_join!(one.drained(), other.drained())?;

    everything_is_there_once(one, &worked).await?;
    assert!(one.rejected()?.is_empty() && other.rejected()?.is_empty());
    let answers = finds_everything([one, other], &worked).await?;
    works_the_queue(one).await?;
    let during: Vec<_> = worked.iter().flat_map(|client| &client.searches).copied().collect();
    let failed = worked.iter().map(|client| client.unanswered).sum::<usize>();
    summary::line(&format!(
        "two servers behind pgbouncer: {EVENTS} events of {CLIENTS} clients through a killed server and a killed primary, none lost, \
         none doubled; {} searches meanwhile, {failed} answered by an error, {}; afterwards {}; promoted and redirected in {} ms; \
         {} s in all",
        during.len(),
        told(during),
        told(answers),
        fail_over.as_millis(),
        started.elapsed().as_secs(),
    ));
    Ok(())
}

/// `None` where there is no engine or no image, which the summary says and CI does not suffer.
async fn replicated() -> Result<Option<Replicated>> {
    match Replicated::start().await {
        Ok(postgres) => Ok(Some(postgres)),
        Err(why) if settings::clients_are_required() => {
            bail!("pgbouncer and a replica are required ({}) and could not be had: {why:#}", settings::REQUIRE_CLIENTS)
        }
        Err(why) => {
            summary::line(&format!("two servers behind pgbouncer: NOT TESTED, {why:#}"));
            Ok(None)
        }
    }
}

fn stack(postgres: &Replicated) -> Result<Stack> {
    let stack = Stack::on(Database::elsewhere(&postgres.session_url(), postgres.view()?))?;
    stack.go_by_pooler(&postgres.transaction_url())?;
    Ok(stack)
}

/// A pooler in the wrong place, and one that forgets prepared statements, are told at the start.
async fn refuses_what_cannot_work(postgres: &Replicated) -> Result<()> {
    let misplaced = Stack::on(Database::elsewhere(&postgres.transaction_url(), postgres.view()?))?;
    refused(&misplaced, "write that URL into `pooled-database-url`").await?;
    postgres.tell_pooler("set max_prepared_statements = 0").await?;
    refused(&stack(postgres)?, "max_prepared_statements = 200").await?;
    postgres.tell_pooler("set max_prepared_statements = 200").await?;
    postgres.tell_pooler("reconnect").await
}

async fn refused(stack: &Stack, hint: &str) -> Result<()> {
    let mut server = stack.spawn_server().await?;
    let ended = tokio::time::timeout(wait::PATIENCE, server.wait()).await.context("the server goes on")??;
    let output = stack.server_output();
    assert!(!ended.success() && output.contains(hint), "{output}");
    Ok(())
}

async fn reaches(progress: &watch::Receiver<usize>, events: usize) -> Result<()> {
    let mut progress = progress.clone();
    progress.wait_for(|done| *done >= events).await.map(drop).context("the clients ended before")
}

/// One agent at work: its events go to the hook of one home, and its searches to that home's server.
struct Client {
    session: Conversation,
    word: String,
    homes: Vec<Home>,
    done: watch::Sender<usize>,
    worked: Worked,
}

/// Where a client sends to.
#[derive(Clone)]
struct Home {
    root: std::path::PathBuf,
    search: String,
    token: String,
    client: reqwest::Client,
}

/// What came of it.
#[derive(Default)]
struct Worked {
    session: String,
    word: String,
    calls: Vec<String>,
    searches: Vec<Duration>,
    unanswered: usize,
}

impl Client {
    fn new(number: usize, stacks: &[Stack; 2], done: watch::Sender<usize>) -> Self {
        let homes = stacks.iter().map(|stack| Home {
            root: stack.home().root().to_owned(),
            search: stack.url("/api/observations/search"),
            token: stack.token().to_owned(),
            client: stack.client().clone(),
        });
        let mut homes: Vec<_> = homes.collect();
        homes.rotate_left(number % 2);
        // Of those whose server will be killed, half have nowhere else to go: their hooks spool.
        if number % 4 == 1 {
            homes.truncate(1);
        }
        let session = Conversation::new(stacks[0].scratch());
        Self { session, word: format!("zebra{number}x"), homes, done, worked: Worked::default() }
    }

    async fn work(mut self) -> Result<Worked> {
        let prompt = self.session.asks(&format!("Count the {} in the park", self.word));
        self.send(&prompt).await?;
        for number in 0..CALLS {
            let (id, event) = self.session.runs(&format!("count --{} --round {number}", self.word));
            self.worked.calls.push(id);
            self.send(&event).await?;
            if number % 4 == 3 {
                self.search().await?;
            }
        }
        Ok(Worked { session: self.session.session_id, word: self.word, ..self.worked })
    }

    async fn send(&self, event: &Event) -> Result<()> {
        hook::send(&self.homes[0].root, hook::CLAUDE_CODE, event).await?;
        self.done.send_modify(|done| *done += 1);
        Ok(())
    }

    /// Asks the server, and goes over to the other where it is gone.
    async fn search(&mut self) -> Result<()> {
        match self.homes[0].ask(&self.word).await {
            Ok((took, answer)) => {
                assert!(took < DEADLINE, "a search took {took:?}");
                self.worked.searches.push(took);
                self.worked.unanswered += usize::from(answer.is_none());
            }
            Err(_) if self.homes.len() > 1 => drop(self.homes.remove(0)),
            Err(_) => {}
        }
        Ok(())
    }
}

impl Home {
    /// How long it took, and what was found; `None` is an answer that says why there is none. An error: nobody answers there.
    async fn ask(&self, word: &str) -> Result<(Duration, Option<Value>)> {
        let started = Instant::now();
        let request = self.client.post(&self.search).bearer_auth(&self.token).json(&json!({ "query": word }));
        let response = request.send().await?;
        let found = response.status().is_success();
        let answer: Value = response.json().await?;
        Ok((started.elapsed(), found.then_some(answer)))
    }
}

async fn everything_is_there_once(stack: &Stack, worked: &[Worked]) -> Result<()> {
    let calls = stack.journal().tool_calls().await?;
    assert_eq!(calls.len(), CLIENTS * CALLS, "none is missing and none is there twice");
    for client in worked {
        let kept: Vec<_> =
            calls.iter().filter(|call| call.session == client.session).map(|call| &call.tool_use_id).collect();
        assert_eq!(
            kept,
            client.calls.iter().collect::<Vec<_>>(),
            "session {} is whole and in its order",
            client.session
        );
    }
    assert_eq!(stack.journal().prompts().await?.len(), CLIENTS);
    assert_eq!(stack.journal().sessions().await?.len(), CLIENTS);
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    Ok(())
}

/// Both servers find what each client asked, whichever of them took it in.
async fn finds_everything(stacks: [&Stack; 2], worked: &[Worked]) -> Result<Vec<Duration>> {
    let mut searches = JoinSet::new();
    for (number, client) in worked.iter().enumerate() {
        let stack = stacks[number % 2];
        let home = Home {
            root: stack.home().root().to_owned(),
            search: stack.url("/api/observations/search"),
            token: stack.token().to_owned(),
            client: stack.client().clone(),
        };
        let word = client.word.clone();
        searches.spawn(async move { (home.ask(&word).await, word) });
    }
    let mut answers = Vec::new();
    while let Some(search) = searches.join_next().await {
        let (answer, word) = search?;
        let (took, found) = answer?;
        let found = found.context("a search failed after the fail-over")?;
        assert!(found.to_string().contains(&word), "`{word}` is found: {found}");
        assert!(took < AFTERWARDS, "a search took {took:?}");
        answers.push(took);
    }
    Ok(answers)
}

/// A job that is enqueued now is told of by the new primary, and done.
async fn works_the_queue(stack: &Stack) -> Result<()> {
    let mut session = Conversation::new(stack.scratch());
    stack.hook(&session.asks("Say that the park is counted")).await?;
    // Of a session with fewer calls nothing is told.
    for number in 0..4 {
        stack.hook(&session.runs(&format!("echo counted {number} times")).1).await?;
    }
    stack.hook(&session.ends()).await?;
    let pool = stack.database().pool();
    let digested = wait::until("the digest of a session that ended after the fail-over", async || {
        let digests = sqlx::query_scalar(
            "select count(*) from mem_observations note join mem_sessions session on session.id = note.session_id
             where kind = 'digest' and external_id = $1",
        );
        let digests: i64 = digests.bind(&session.session_id).fetch_one(pool).await?;
        Ok((digests == 1).then_some(()))
    });
    digested.await.with_context(|| format!("the server's output was:\n{}", stack.server_output()))
}

fn told(mut took: Vec<Duration>) -> String {
    took.sort_unstable();
    let at = |share: usize| took.get(took.len() * share / 100).copied().unwrap_or_default().as_millis();
    format!("p50 {} ms, p95 {} ms", at(50), at(95))
}

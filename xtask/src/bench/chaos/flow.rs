//! Events in the background of a scenario, from clients that post and from hooks, each remembering what it was promised.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::JoinHandle;

use super::super::load::{Acknowledgement, Client, Clock, HookCall, HookLoad, Ledger, Sent, Session};
use super::super::stage::Stage;

/// After a failure a client tries its next event so much later.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);
/// Every so manieth event is sent to every server.
const SENT_TWICE: usize = 4;

/// Who sends.
pub(super) struct Plan {
    pub(super) posting_sessions: usize,
    pub(super) clock: Clock,
    pub(super) pause: Duration,
    pub(super) hooks: Option<HookLoad>,
}

/// Events that flow until they are stopped.
pub(super) struct Flow {
    stop: Arc<AtomicBool>,
    posting: Vec<JoinHandle<Ledger>>,
    hooks: Option<JoinHandle<Result<Vec<HookCall>>>>,
}

/// What has flowed.
pub(super) struct Flowed {
    pub(super) posted: Ledger,
    pub(super) calls: Vec<HookCall>,
}

impl Flow {
    pub(super) fn start(stage: &Stage, plan: Plan) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let tokens = stage.homes().iter().map(|home| home.token().context("the token is not there"));
        let servers: Vec<_> = stage.addresses()?.into_iter().zip(tokens.collect::<Result<Vec<_>>>()?).collect();
        let posting = (0..plan.posting_sessions)
            .map(|number| {
                let poster = Poster {
                    session: Session::new(&format!("post-{number}"), plan.clock),
                    // Both ways of asking, on each server.
                    acknowledgement: if number.is_multiple_of(2) {
                        Acknowledgement::Safe
                    } else {
                        Acknowledgement::Committed
                    },
                    connections: servers.iter().map(|(address, token)| Connection::to(*address, token)).collect(),
                    pause: plan.pause,
                };
                tokio::spawn(poster.run(stop.clone()))
            })
            .collect();
        let hooks = plan.hooks.map(|load| {
            let stop = stop.clone();
            tokio::task::spawn_blocking(move || load.run(&stop))
        });
        Ok(Self { stop, posting, hooks })
    }

    /// Waits until the hooks' sessions are at their end, then stops the rest.
    pub(super) async fn end_of_hooks(mut self) -> Result<Flowed> {
        let calls = match self.hooks.take() {
            Some(hooks) => hooks.await.context("the hooks broke off")??,
            None => Vec::new(),
        };
        let flowed = self.stop().await?;
        Ok(Flowed { calls, ..flowed })
    }

    pub(super) async fn stop(self) -> Result<Flowed> {
        self.stop.store(true, Ordering::Relaxed);
        let mut posted = Ledger::default();
        for session in self.posting {
            posted.merge(session.await.context("a client broke off")?);
        }
        let calls = match self.hooks {
            Some(hooks) => hooks.await.context("the hooks broke off")??,
            None => Vec::new(),
        };
        Ok(Flowed { posted, calls })
    }
}

impl Flowed {
    /// All of it in one ledger: every hook exits with 0, by which it says that it has kept the event.
    pub(super) fn ledger(mut self) -> (Ledger, Vec<HookCall>) {
        self.calls.iter().for_each(|call| self.posted.note(call.key.clone(), Sent::Acknowledged));
        (self.posted, self.calls)
    }
}

struct Poster {
    session: Session,
    acknowledgement: Acknowledgement,
    connections: Vec<Connection>,
    pause: Duration,
}

impl Poster {
    async fn run(mut self, stop: Arc<AtomicBool>) -> Ledger {
        let mut ledger = Ledger::default();
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            let outgoing = self.session.next();
            let count = self.connections.len();
            // Each server in turn; some events twice, as when an agent is registered twice.
            let servers = if sent % SENT_TWICE == 0 { 0..count } else { sent % count..sent % count + 1 };
            for server in servers {
                let answer = self.connections[server].post(self.acknowledgement, outgoing.envelope.as_bytes()).await;
                ledger.note(outgoing.key.clone(), answer);
                if answer == Sent::Unacknowledged {
                    tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
            sent += 1;
            tokio::time::sleep(self.pause).await;
        }
        ledger
    }
}

/// A connection that is made again when it has broken.
struct Connection {
    address: SocketAddr,
    token: String,
    client: Option<Client>,
}

impl Connection {
    fn to(address: SocketAddr, token: &str) -> Self {
        Self { address, token: token.to_owned(), client: None }
    }

    async fn post(&mut self, acknowledgement: Acknowledgement, body: &[u8]) -> Sent {
        let client = match &mut self.client {
            Some(client) => client,
            empty => match Client::connect(self.address, &self.token, acknowledgement).await {
                Ok(client) => empty.insert(client),
                Err(_) => return Sent::Unacknowledged,
            },
        };
        match client.post(body).await {
            Ok(200 | 202 | 204) => Sent::Acknowledged,
            Ok(_) => Sent::Unacknowledged,
            Err(_) => {
                self.client = None;
                Sent::Unacknowledged
            }
        }
    }
}

//! What the database says of itself: jobs were inserted, a lesson has changed. One connection of the program hears it for all who want
//! to know; whoever waits looks for himself from time to time all the same, for a notice can be lost.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::Db;

/// Where jobs are told of, by their kind, and where lessons.
pub(crate) const JOBS: &str = "mem_observation_queue";
pub const LESSONS: &str = "mem_lessons";

/// A database that is away is not asked all the time.
const RECONNECT: Duration = Duration::from_secs(2);
/// After so long a silence the connection is asked whether it is still one: a host that vanished closes nothing.
const SILENCE: Duration = Duration::from_mins(1);
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
/// Who is so far behind looks at everything anyway.
const KEPT: usize = 256;

/// Passes on what is heard. Cheap to clone; clones share it.
#[derive(Debug, Clone)]
pub struct Notices {
    told: broadcast::Sender<Notice>,
}

#[derive(Debug, Clone)]
struct Notice {
    channel: String,
    about: String,
}

/// Waits for notices of one channel.
#[derive(Debug)]
pub struct Listener {
    channel: &'static str,
    told: broadcast::Receiver<Notice>,
}

impl Default for Notices {
    fn default() -> Self {
        Self { told: broadcast::channel(KEPT).0 }
    }
}

impl Notices {
    /// Listens to a channel. Begin before looking at what it tells of, so that nothing slips in between.
    pub fn of(&self, channel: &'static str) -> Listener {
        Listener { channel, told: self.told.subscribe() }
    }

    /// Hears and passes on, until the shutdown. `db` must give sessions: a pooler in transaction mode passes no notices.
    pub async fn hear_until(&self, db: &Db, shutdown: &CancellationToken) {
        let mut complained = false;
        while let Some(Err(error)) = shutdown.run_until_cancelled(self.hear(db, &mut complained)).await {
            if !complained {
                complained = true;
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the database's notices are not heard; jobs are looked for every few seconds and lessons every minute"
                );
            }
            if shutdown.run_until_cancelled(tokio::time::sleep(RECONNECT)).await.is_none() {
                return;
            }
        }
    }

    /// Never ends but by an error.
    async fn hear(&self, db: &Db, complained: &mut bool) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(db).await?;
        listener.listen_all([JOBS, LESSONS]).await?;
        if std::mem::take(complained) {
            tracing::info!("the database's notices are heard again");
        }
        loop {
            // What was said before, nobody heard.
            self.tell_everything();
            while let Some(notice) = next(&mut listener).await? {
                self.tell(notice.channel(), notice.payload());
            }
        }
    }

    fn tell_everything(&self) {
        for channel in [JOBS, LESSONS] {
            self.tell(channel, "");
        }
    }

    fn tell(&self, channel: &str, about: &str) {
        // Nobody may be listening.
        let _ = self.told.send(Notice { channel: channel.to_owned(), about: about.to_owned() });
    }
}

/// The next notice; `None` where the connection was lost and another has been made.
async fn next(listener: &mut PgListener) -> Result<Option<sqlx::postgres::PgNotification>, sqlx::Error> {
    loop {
        if let Ok(received) = tokio::time::timeout(SILENCE, listener.try_recv()).await {
            return received;
        }
        let asked = sqlx::query("select 1").execute(&mut *listener);
        tokio::time::timeout(ANSWER_DEADLINE, asked).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
    }
}

impl Listener {
    /// Returns when something was said: what it is about, or nothing where it may be about anything.
    pub async fn heard(&mut self) -> String {
        loop {
            match self.told.recv().await {
                Ok(notice) if notice.channel == self.channel => return notice.about,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => return String::new(),
                // Nobody will say anything any more.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everyone_hears_of_his_own_channel() {
        let notices = Notices::default();
        let (mut jobs, mut lessons) = (notices.of(JOBS), notices.of(LESSONS));
        notices.tell(JOBS, "embed_document");
        notices.tell(LESSONS, "7");
        assert_eq!((jobs.heard().await.as_str(), lessons.heard().await.as_str()), ("embed_document", "7"));
    }

    #[tokio::test]
    async fn who_is_far_behind_hears_that_it_may_be_anything() {
        let notices = Notices::default();
        let mut jobs = notices.of(JOBS);
        (0..=KEPT).for_each(|_| notices.tell(JOBS, "embed_document"));
        assert_eq!(jobs.heard().await, "");
    }
}

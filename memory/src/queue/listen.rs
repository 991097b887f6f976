//! Waiting for work: Postgres notifies when jobs are inserted; polling finds what a notification missed.

use std::time::Duration;

use crate::store::{JOBS, Listener, Notices};

/// Retries become due and leases run out without a notification.
const POLL: Duration = Duration::from_secs(5);

/// A subscription to new jobs. Make it before looking at the queue, so that nothing slips in between.
pub(super) struct Wakeups {
    listener: Option<Listener>,
}

impl Wakeups {
    /// Without notices there is only polling.
    pub(super) fn of(notices: Option<&Notices>) -> Self {
        Self { listener: notices.map(|notices| notices.of(JOBS)) }
    }

    /// Returns when there may be work of that kind: after a notification, at the latest after the poll interval.
    pub(super) async fn wait(&mut self, kind: &str) {
        let heard = async {
            match &mut self.listener {
                // An empty notice is about every kind.
                Some(listener) => while ![kind, ""].contains(&listener.heard().await.as_str()) {},
                None => std::future::pending().await,
            }
        };
        // Whether it was heard or is only time to look is the same to the caller.
        let _ = tokio::time::timeout(POLL, heard).await;
    }
}

//! Waiting for another process: asking again until the answer is there or the deadline has passed.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Long enough for a debug build on a busy machine; a healthy run needs a fraction.
pub const PATIENCE: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(20);

/// Asks until `ask` gives a value. An error of `ask` ends the wait; `what` names the thing missed at the deadline.
pub async fn until<T>(what: &str, ask: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    until_within(PATIENCE, what, ask).await
}

/// The same with another deadline, for what a machine has to compute.
pub async fn until_within<T>(
    patience: Duration,
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    while start.elapsed() < patience {
        if let Some(value) = ask().await? {
            return Ok(value);
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("{what} did not happen within {} s", patience.as_secs())
}

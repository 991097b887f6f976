//! Images from a registry, if one answers: each pull is bounded, and one registry that stays silent is asked only once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::{Stream, StreamExt};

use crate::output::{Printer, Step};
use crate::runtime::docker::engine::{Engine, EngineContext, if_there};

/// A registry that has not begun to answer by then is taken for none.
const FIRST_ANSWER: Duration = Duration::from_secs(20);
/// Unpacking a large layer is silent for a while.
const LONGEST_SILENCE: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) struct Registry<'a> {
    engine: &'a Engine,
    printer: &'a Printer,
    silent: AtomicBool,
}

impl<'a> Registry<'a> {
    pub(crate) fn of(engine: &'a Engine, printer: &'a Printer) -> Self {
        Self { engine, printer, silent: AtomicBool::new(false) }
    }

    /// Whether the engine has the image now: it had it, or has pulled it.
    pub(crate) async fn has(&self, reference: &str) -> Result<bool> {
        if image_id(self.engine, reference).await?.is_some() {
            return Ok(true);
        }
        if self.silent.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let step = self.printer.step(format!("Pulling {reference}"));
        match self.pull(reference, &step).await {
            Ok(()) => step.done(format!("Pulled {reference}")),
            Err(reason) => {
                step.skip();
                self.silent.store(true, Ordering::Relaxed);
                self.printer.detail(format_args!("no registry gives {reference}: {reason}"));
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn pull(&self, reference: &str, step: &Step) -> Result<(), String> {
        let (name, tag) = split(reference);
        let options = CreateImageOptionsBuilder::default().from_image(name).tag(tag).build();
        let mut events = std::pin::pin!(self.engine.docker.create_image(Some(options), None, None));
        let mut patience = FIRST_ANSWER;
        while let Some(event) = next(&mut events, patience).await? {
            patience = LONGEST_SILENCE;
            if let Some(status) = event.status {
                step.say(format!("Pulling {reference}: {}", status.to_lowercase()));
            }
        }
        Ok(())
    }
}

/// The id that a tag stands for now.
pub(crate) async fn image_id(engine: &Engine, reference: &str) -> Result<Option<String>> {
    let found = if_there(engine.docker.inspect_image(reference).await);
    let found = found.doing(format!("look for the image {reference}"))?;
    Ok(found.and_then(|image| image.id))
}

/// Name and tag of a reference that has both.
pub(crate) fn split(reference: &str) -> (&str, &str) {
    reference.rsplit_once(':').unwrap_or((reference, "latest"))
}

async fn next(
    events: &mut (impl Stream<Item = Result<CreateImageInfo, bollard::errors::Error>> + Unpin),
    patience: Duration,
) -> Result<Option<CreateImageInfo>, String> {
    match tokio::time::timeout(patience, events.next()).await {
        Ok(None) => Ok(None),
        Ok(Some(Ok(event))) => Ok(Some(event)),
        Ok(Some(Err(error))) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", patience.as_secs())),
    }
}

//! One build by the engine, told as a step. An image carries the digest of what it was built from, so that what is up to
//! date is left alone.

use std::collections::{HashMap, VecDeque};

use anyhow::{Result, anyhow};
use bollard::query_parameters::{BuildImageOptionsBuilder, PruneImagesOptionsBuilder};
use futures_util::StreamExt;

use super::Rebuild;
use super::context::BuildContext;
use crate::output::{Printer, hinted};
use crate::runtime::docker::engine::{Engine, EngineContext, if_there};

/// The label that holds the digest of an image's build context.
const SOURCE_LABEL: &str = "agent-memory.source";
/// How much of a failed build is shown.
const SHOWN_LINES: usize = 15;

/// One image to build.
#[derive(Debug)]
pub(crate) struct Recipe<'a> {
    pub tag: &'a str,
    /// In a sentence: `the Postgres image`.
    pub what: &'a str,
    pub dockerfile: &'a str,
    pub context: BuildContext,
    pub arguments: HashMap<String, String>,
    pub rebuild: Rebuild,
}

/// Whether the image is there and was built from this context.
pub(crate) async fn is_current(engine: &Engine, tag: &str, context: &BuildContext) -> Result<bool> {
    let image = if_there(engine.docker.inspect_image(tag).await).doing(format!("look for the image {tag}"))?;
    let labels = image.and_then(|image| image.config).and_then(|config| config.labels);
    Ok(labels.is_some_and(|labels| labels.get(SOURCE_LABEL) == Some(&context.digest())))
}

pub(crate) async fn build(engine: &Engine, printer: &Printer, recipe: Recipe<'_>) -> Result<()> {
    let step = printer.step(format!("Building {}", recipe.what));
    let mut arguments = proxies();
    arguments.extend(recipe.arguments);
    let options = BuildImageOptionsBuilder::default()
        .t(recipe.tag)
        .dockerfile(recipe.dockerfile)
        .buildargs(&arguments)
        .labels(&HashMap::from([(SOURCE_LABEL.to_owned(), recipe.context.digest())]))
        // The host's own way out: its name server, its routes, a proxy on its loopback.
        .networkmode("host")
        // The engine's cache would give back the packages of the last time.
        .nocache(recipe.rebuild == Rebuild::Always)
        .rm(true)
        .forcerm(true)
        .build();
    let tar = bollard::body_full(recipe.context.into_tar()?.into());
    let mut events = std::pin::pin!(engine.docker.build_image(options, None, Some(tar)));
    let mut last_lines = VecDeque::new();
    while let Some(event) = events.next().await {
        let event = match event {
            Err(bollard::errors::Error::DockerStreamError { error }) => {
                return Err(failed(recipe.what, &last_lines, &error));
            }
            event => event.doing(format!("build {}", recipe.what))?,
        };
        if let Some(message) = event.error_detail.and_then(|detail| detail.message) {
            return Err(failed(recipe.what, &last_lines, &message));
        }
        for line in event.stream.iter().flat_map(|text| text.lines()).map(plain).filter(|line| !line.trim().is_empty())
        {
            step.say(format!("Building {}: {}", recipe.what, short(&line)));
            printer.detail(&line);
            last_lines.push_back(line);
            if last_lines.len() > SHOWN_LINES {
                last_lines.pop_front();
            }
        }
    }
    step.done(format!("Built {} ({})", recipe.what, recipe.tag));
    Ok(())
}

/// Removes images of ours that have lost their tag to a newer one and that no container uses.
pub(crate) async fn remove_replaced(engine: &Engine) -> Result<()> {
    let filters = HashMap::from([
        ("dangling".to_owned(), vec!["true".to_owned()]),
        ("label".to_owned(), vec![SOURCE_LABEL.to_owned()]),
    ]);
    let options = PruneImagesOptionsBuilder::default().filters(&filters).build();
    engine.docker.prune_images(Some(options)).await.doing("remove replaced images").map(drop)
}

fn failed(what: &str, last_lines: &VecDeque<String>, message: &str) -> anyhow::Error {
    let lines: Vec<_> = last_lines.iter().map(|line| format!("  {line}")).collect();
    // The engine repeats the whole command, which may fill a screen, before it says how that ended.
    let ending = message.trim().rsplit_once("' returned ").map(|(_, code)| format!("a command returned {code}"));
    let reason = ending.unwrap_or_else(|| message.trim().to_owned());
    let failure =
        anyhow!("{reason}; the build said last:\n{}", lines.join("\n")).context(format!("cannot build {what}"));
    hinted(failure, "packages come from Debian's mirrors: check network and proxy, then repeat the command")
}

/// Without the colours that the engine puts around complaints.
fn plain(line: &str) -> String {
    let mut pieces = line.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or(piece, |(_, rest)| rest))
}

/// The proxies of this process, under the names that every Dockerfile knows without declaring them.
#[allow(
    clippy::disallowed_methods,
    reason = "no setting of ours: what the host's programs are told is told to the build"
)]
fn proxies() -> HashMap<String, String> {
    ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok().map(|value| (name.to_owned(), value)))
        .collect()
}

fn short(line: &str) -> String {
    line.trim().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::report;

    #[test]
    fn tells_a_failed_build_by_its_end_and_not_by_its_command() {
        let lines = VecDeque::from([plain("\u{1b}[91mE: Unable to locate package p\u{1b}[0m")]);
        let message = "The command '/bin/sh -c apt-get install p' returned a non-zero code: 100";
        let report = report(&failed("the Postgres image", &lines, message));
        assert!(
            report.starts_with(
                "error: cannot build the Postgres image\ncaused by: a command returned a non-zero code: 100;"
            ),
            "{report}"
        );
        assert!(report.contains("\n  E: Unable to locate package p\n"), "{report}");
        assert!(!report.contains("/bin/sh"), "{report}");
    }
}

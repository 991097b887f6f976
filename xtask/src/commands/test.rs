//! `test`: makes sure that the tests find a database, runs all of them, and tells what they ran on.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use memory::home::Home;
use xshell::{Shell, cmd};

use crate::cli::TestArgs;
use crate::files;
use crate::install::build::target_folder;
use crate::install::downloads::Downloads;
use crate::install::model::{self, ModelSource};
use crate::install::pins::Target;
use crate::output::{Printer, Verbosity};
use crate::repository::{Repository, as_a_person};
use crate::runtime::docker;
use crate::runtime::embedded::{self, Postgres};

/// Variables that the tests read; `docs/configuration.md` has the list.
const POSTGRES_IMAGE: &str = "AGENT_MEMORY_TEST_POSTGRES_IMAGE";
const POOLER_IMAGE: &str = "AGENT_MEMORY_TEST_POOLER_IMAGE";
const SUMMARY: &str = "AGENT_MEMORY_TEST_SUMMARY";
const MODELS: &str = "AGENT_MEMORY_TEST_MODELS";

/// The feature that compiles mistralrs into the tests and into the programs that they start.
pub(super) const ENGINES: &str = "tests/smoke";

pub(super) async fn run(arguments: &TestArgs, printer: &Printer) -> Result<()> {
    let repository = Repository::locate()?;
    let shell = Shell::new().context("cannot start processes here")?;
    shell.change_dir(repository.root());
    let engines = arguments.engines;
    let images = prepare_database(printer).await?;
    let models = prepare_model(printer).await;
    let summary = target_folder(&shell)?.join("agent-memory-test-summary.txt");
    files::remove(&summary)?;
    let passed = tokio::task::spawn_blocking({
        let (arguments, summary, quiet) =
            (arguments.arguments.clone(), summary.clone(), printer.verbosity() == Verbosity::Quiet);
        // With all of the workspace, so that nothing is compiled a second time for the engines alone.
        let features = engines.then_some(["--features", ENGINES]);
        move || {
            shell.set_var(SUMMARY, summary);
            shell.set_var("SQLX_OFFLINE", "true");
            if let Some(Images { postgres, pooler }) = images {
                shell.set_var(POSTGRES_IMAGE, postgres);
                shell.set_var(POOLER_IMAGE, pooler);
            }
            if let Some(models) = models {
                shell.set_var(MODELS, models);
            }
            let quiet = quiet.then_some("--quiet");
            let features = features.iter().flatten();
            let tests = cmd!(shell, "cargo test --workspace --locked {features...} {quiet...} {arguments...}");
            as_a_person(tests).quiet().run().is_ok()
        }
    })
    .await
    .context("the tests were interrupted")?;
    tell(files::read_if_there(&summary)?.as_deref(), printer);
    if !passed {
        bail!("tests failed; cargo's messages above name them");
    }
    Ok(())
}

/// The container images of tests, by their names.
struct Images {
    postgres: &'static str,
    pooler: &'static str,
}

/// Container images where an engine answers, else the embedded Postgres, unpacked.
async fn prepare_database(printer: &Printer) -> Result<Option<Images>> {
    match docker::detect().await {
        Ok(_) => {
            let postgres = docker::ensure_postgres_image(printer).await?;
            let pooler = docker::ensure_pooler_image(printer).await?;
            Ok(Some(Images { postgres, pooler }))
        }
        Err(no_engine) => {
            printer.note(format_args!("Database for tests: embedded ({no_engine})"));
            let step = printer.step("Unpacking Postgres for tests");
            Postgres::ensure_program(&embedded::private_cache()?, printer).await?;
            step.skip();
            Ok(None)
        }
    }
}

/// The model that an installation gets, kept between runs; the tests say what they could not test without one.
async fn prepare_model(printer: &Printer) -> Option<PathBuf> {
    let step = printer.step("Installing the embedding model for tests");
    let installed = async {
        let cache = embedded::private_cache()?;
        let home = Home::at(cache.join("test-models"));
        let downloads = Downloads::into_folder(cache.join("downloads"));
        files::create_private_folder(&home.models())?;
        model::install(&home, &ModelSource::Pinned, &downloads, Target::host()).await?;
        anyhow::Ok(home.models())
    };
    let installed = installed.await;
    step.skip();
    installed.inspect_err(|error| printer.note(format_args!("No embedding model for tests: {error:#}"))).ok()
}

fn tell(summary: Option<&str>, printer: &Printer) {
    printer.note("\nWhat the tests ran on:");
    let mut lines: Vec<_> = summary.unwrap_or_default().lines().collect();
    lines.sort_unstable();
    lines.dedup();
    if lines.is_empty() {
        printer.note("  no test of the whole line ran");
    }
    for line in lines {
        printer.note(format_args!("  {line}"));
    }
}

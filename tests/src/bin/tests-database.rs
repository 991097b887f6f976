//! The keeper of the test run's Postgres: starts it, announces it, and removes it when stdin closes. Started by the
//! tests (`tests::database::keeper` says why); its one argument begins the names of the run's databases.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use tests::database::keeper::Announcement;
use tests::database::source::Source;
use tokio::io::AsyncReadExt;

#[tokio::main]
async fn main() -> ExitCode {
    match keep().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The tests may be gone; then stderr is all that is left.
            let _ = writeln!(std::io::stderr(), "error: the test run's database: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn keep() -> Result<()> {
    let prefix = std::env::args().nth(1).context("the prefix of the run's databases is missing")?;
    let source = match Source::start().await {
        Ok(source) => source,
        Err(error) => return announce(&Announcement::Failed { message: format!("{error:#}") }),
    };
    announce(&Announcement::Ready { url: source.url().to_owned(), description: source.description() })?;
    let mut nothing = Vec::new();
    tokio::io::stdin().read_to_end(&mut nothing).await.context("waiting for the end of the tests")?;
    source.stop(&prefix).await
}

fn announce(announcement: &Announcement) -> Result<()> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", serde_json::to_string(announcement)?).context("announcing the database")?;
    Ok(stdout.flush()?)
}

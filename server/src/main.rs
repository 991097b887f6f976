//! The program: reads its arguments, sets up logging, binds, and serves until it is told to stop.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use memory::settings::Logs;
use server::{Arguments, NetworkError, check_health, log_to, serve};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What is in hand when the stop comes gets this long.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let logging = log_to(arguments.log_file.as_deref(), &arguments.logs());
    if let Err(error) = &logging {
        // Better a log in another place than no server; whoever reads stderr is told.
        drop(log_to(None, &Logs::default()));
        tracing::error!(error = format!("{error:#}"), "logging to stderr instead");
    }
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let hint = error
                .downcast_ref::<memory::store::ConnectError>()
                .map(memory::store::ConnectError::hint)
                .or_else(|| error.downcast_ref::<memory::redact::RulesError>().map(memory::redact::RulesError::hint))
                .or_else(|| error.downcast_ref::<NetworkError>().map(NetworkError::hint));
            tracing::error!(error = format!("{error:#}"), hint, "the server cannot run");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let address = arguments.address()?;
    if arguments.check_health {
        return check_health(address);
    }
    if arguments.migrate {
        let config = arguments.resolve()?;
        let db = memory::store::connect(&config.database_url).await?;
        return Ok(memory::store::migrate(&db).await?);
    }
    // Before anything is taken in: rules that cannot be used are no reason to keep secrets.
    let redact_rules = arguments.redact_rules.clone();
    let config = arguments.resolve()?;
    memory::redact::install_from(redact_rules.as_deref(), Some(&config.config))?;
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let shutdown = CancellationToken::new();
    let mut serving = tokio::spawn(serve(config, listener, shutdown.clone()));
    tokio::select! {
        ended = &mut serving => return ended.context("the server's task ended")?,
        () = stop_signal() => shutdown.cancel(),
    }
    if let Ok(ended) = tokio::time::timeout(STOP_DEADLINE, serving).await {
        return ended.context("the server's task ended")?;
    }
    tracing::warn!("stopped without waiting for the last requests");
    Ok(())
}

/// Ctrl-C, or the signal by which services are stopped.
async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // Without the signal handlers only a kill stops the server, which loses nothing.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

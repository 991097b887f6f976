//! `agent-memory-mcp`: the tools over stdio. stdout is the protocol's alone; what this program has to say goes to stderr.
//!
//! Nothing but the user's redaction rules, where there are any, is read, opened or loaded before the first tool call, so that
//! the handshake never waits for anything.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use mcp::{Installation, Tools};
use memory::home::Home;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Gives a coding agent the memory of earlier sessions, as a Model Context Protocol server on stdin and stdout.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// What to log to stderr: error, warn, info, debug, trace, or a filter such as `mcp=debug`.
    #[arg(long, env = "AGENT_MEMORY_LOG", default_value = "warn")]
    log: String,
    /// File with the user's own redaction rules, in gitleaks' format.
    #[arg(long, env = "AGENT_MEMORY_REDACT_RULES")]
    redact_rules: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(&arguments.log);
    // Notes that an agent saves are cleaned by this process.
    let settings = Home::locate().ok().map(|home| memory::settings::folder(&home));
    if let Err(error) = memory::redact::install_from(arguments.redact_rules.as_deref(), settings.as_deref()) {
        tracing::error!(hint = error.hint(), "{error}");
        return ExitCode::FAILURE;
    }
    let ended = Runtime::new().context("starting the async runtime").and_then(|runtime| {
        let ended = runtime.block_on(serve());
        // A thread may wait for stdin or for a model; neither is waited for.
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until stdin ends or a signal comes.
async fn serve() -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let on_signal = stop.clone();
    tokio::spawn(async move {
        terminated().await;
        on_signal.cancel();
    });
    let tools = Tools::of_installation(Installation::locate());
    let running = match tools.serve_with_ct(stdio(), stop).await {
        Ok(running) => running,
        // The client went away before it asked for anything: clients probe a server so.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(error).context("shaking hands with the client"),
    };
    running.waiting().await.context("serving the client")?;
    Ok(())
}

fn log_to_stderr(filter: &str) {
    let parsed = EnvFilter::try_new(filter);
    let unusable = parsed.as_ref().err().map(ToString::to_string);
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter(parsed.unwrap_or_else(|_| EnvFilter::new("warn")))
        .init();
    if let Some(reason) = unusable {
        tracing::warn!("AGENT_MEMORY_LOG is no log filter, logging warnings: {reason}");
    }
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        // Without handlers a signal ends the process by itself.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

#[cfg(not(unix))]
async fn terminated() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

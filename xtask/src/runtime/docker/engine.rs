//! The connection to a local Docker engine: finding it within a short deadline, and saying in a person's words why it
//! does not answer.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use bollard::Docker;
use bollard::errors::Error as DockerError;

use crate::output::HintExt;

/// A local engine answers in milliseconds; one that is starting or hangs is none.
const DEADLINE: Duration = Duration::from_secs(3);

const USUAL_SOCKET: &str = "/var/run/docker.sock";

/// An engine that has answered.
#[derive(Debug, Clone)]
pub struct Engine {
    pub docker: Docker,
    /// As the engine names it: `20.10.24`.
    pub version: String,
    /// As Rust names it: `x86_64`.
    pub architecture: String,
    /// Whether the engine runs as its user: number 0 in a container is then that user.
    pub rootless: bool,
}

/// Why no engine can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no Docker engine: {reason}")]
pub struct NoEngine {
    pub reason: String,
}

/// Asks the engine that `DOCKER_HOST` names, else the first of the usual sockets that is there.
pub async fn detect() -> Result<Engine, NoEngine> {
    let docker = connect().map_err(|error| NoEngine { reason: explain(&error) })?;
    match tokio::time::timeout(DEADLINE, interrogate(docker)).await {
        Ok(Ok(engine)) => Ok(engine),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(NoEngine { reason: format!("it does not answer within {} s", DEADLINE.as_secs()) }),
    }
}

/// The engine, or the failure that says how to get one.
pub async fn require() -> Result<Engine> {
    detect()
        .await
        .context("cannot reach the Docker engine")
        .hint("start Docker and repeat the command; `cargo xtask up --runtime embedded` does without it")
}

/// Adds to a failed call what was being done and, if the engine has gone away meanwhile, what to do.
pub(crate) trait EngineContext<T> {
    fn doing(self, what: impl Into<String>) -> Result<T>;
}

impl<T> EngineContext<T> for Result<T, DockerError> {
    fn doing(self, what: impl Into<String>) -> Result<T> {
        let Err(error) = self else { return self.map_err(Into::into) };
        let failed = Err(anyhow::anyhow!(explain(&error))).with_context(|| format!("cannot {}", what.into()));
        if is_gone(&error) {
            return failed
                .context("the Docker engine has stopped answering")
                .hint("start Docker and repeat the command: it goes on from there");
        }
        failed
    }
}

/// Whether the engine says that the named thing does not exist.
pub(crate) fn is_missing(error: &DockerError) -> bool {
    matches!(error, DockerError::DockerResponseServerError { status_code: 404, .. })
}

/// Turns "there is none" into `None`.
pub(crate) fn if_there<T>(result: Result<T, DockerError>) -> Result<Option<T>, DockerError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn connect() -> Result<Docker, DockerError> {
    // bollard reads DOCKER_HOST itself and takes it before anything else.
    match Docker::connect_with_defaults() {
        Err(DockerError::SocketNotFoundError(path)) if path == USUAL_SOCKET => {
            let other = other_sockets().into_iter().find(|socket| socket.exists());
            let address = other.map(|socket| format!("unix://{}", socket.display()));
            address.map_or(Err(DockerError::SocketNotFoundError(path)), |address| Docker::connect_with_host(&address))
        }
        connected => connected,
    }
}

/// Where Docker Desktop and an engine without root listen.
fn other_sockets() -> Vec<PathBuf> {
    std::env::home_dir().map(|home| vec![home.join(".docker/run/docker.sock")]).unwrap_or_default()
}

async fn interrogate(docker: Docker) -> Result<Engine, NoEngine> {
    let refuse = |error: DockerError| NoEngine { reason: explain(&error) };
    let docker = docker.negotiate_version().await.map_err(refuse)?;
    let info = docker.info().await.map_err(refuse)?;
    let has_option = |name: &str| info.security_options.iter().flatten().any(|option| option.starts_with(name));
    if info.os_type.as_deref() == Some("windows") {
        return Err(NoEngine { reason: "it runs Windows containers, ours are Linux ones".to_owned() });
    }
    if has_option("name=userns") {
        return Err(NoEngine {
            reason: "it renumbers users (userns-remap), so no container could share the spool".to_owned(),
        });
    }
    Ok(Engine {
        version: info.server_version.clone().unwrap_or_default(),
        architecture: info.architecture.clone().unwrap_or_default(),
        rootless: has_option("name=rootless"),
        docker,
    })
}

fn is_gone(error: &DockerError) -> bool {
    match error {
        DockerError::HyperLegacyError { .. }
        | DockerError::HyperResponseError { .. }
        | DockerError::RequestTimeoutError
        | DockerError::SocketNotFoundError(_) => true,
        DockerError::IOError { err } => err.kind() != std::io::ErrorKind::InvalidData,
        _ => false,
    }
}

/// The innermost cause is what a person can act on; the layers above it name our libraries.
fn explain(error: &DockerError) -> String {
    match error {
        DockerError::DockerResponseServerError { status_code, message } if message.trim().is_empty() => {
            format!("it answers with status {status_code} and no reason")
        }
        DockerError::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        DockerError::SocketNotFoundError(path) => format!("there is no socket {path}"),
        DockerError::RequestTimeoutError => "it does not answer".to_owned(),
        other => {
            let mut cause: &dyn std::error::Error = other;
            while let Some(source) = cause.source() {
                cause = source;
            }
            match cause.to_string() {
                denied if denied.contains("ermission denied") => {
                    "its socket may not be used by this user (who must be in the group `docker`)".to_owned()
                }
                text => text,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::report;

    #[test]
    fn tells_an_engine_that_went_away_from_one_that_refused() {
        let gone = Err::<(), _>(DockerError::RequestTimeoutError).doing("start the server");
        assert!(report(&gone.unwrap_err()).starts_with("error: the Docker engine has stopped answering\n"));
        let refused = DockerError::DockerResponseServerError { status_code: 500, message: "no space".to_owned() };
        let refused = Err::<(), _>(refused).doing("start the server");
        assert_eq!(report(&refused.unwrap_err()), "error: cannot start the server\ncaused by: no space\n");
    }

    #[test]
    fn takes_a_missing_object_for_none() {
        let missing =
            || DockerError::DockerResponseServerError { status_code: 404, message: "No such image".to_owned() };
        assert!(if_there(Err::<(), _>(missing())).unwrap().is_none());
        assert!(if_there(Err::<(), _>(DockerError::RequestTimeoutError)).is_err());
    }
}

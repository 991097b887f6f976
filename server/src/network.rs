//! The door to other machines: a second address, TLS only, that opens once there is a token for those who come. The home's own tokens
//! are not known there.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use memory::store::{Db, tokens};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

/// How often a door that stays shut is tried again.
const TRIED_EVERY: Duration = Duration::from_secs(5);
/// How often the files are read anew: certificates are renewed.
const RENEWED_EVERY: Duration = Duration::from_hours(1);
/// What is in hand when the stop comes gets this long.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Where other machines reach the server, and under which names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    pub(crate) address: SocketAddr,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) hosts: Vec<String>,
}

/// Why the server cannot be reached as it was told to be.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("`{0}` is not an address of this machine's own, and `listen` speaks without encryption")]
    OpenListen(SocketAddr),
    #[error("refusing to open {0} to other machines without TLS")]
    NoTls(SocketAddr),
    #[error("`server.bind` is `{0}`, which is no address: expected one such as `0.0.0.0:8443`")]
    Address(String),
    #[error("cannot use the certificate `{}` with the key `{}`", certificate.display(), key.display())]
    Tls { certificate: PathBuf, key: PathBuf, source: std::io::Error },
}

impl NetworkError {
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::OpenListen(_) => {
                "let other machines in by `--bind` with TLS; a container whose port is published on loopback says `--behind-loopback`"
            }
            Self::NoTls(_) => "name the files: `--tls-certificate` and `--tls-key`, or `[server]` in settings.toml",
            Self::Address(_) => "docs/security.md shows how a server is opened to other machines",
            Self::Tls { .. } => {
                "both are PEM files that the server's user can read; the certificate comes first in its chain"
            }
        }
    }
}

/// The door as health shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DoorState {
    address: SocketAddr,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The door of a server that has one. Cheap to clone; clones share its state.
#[derive(Clone)]
pub(crate) struct NetworkDoor {
    network: Network,
    tls: RustlsConfig,
    /// Why it is shut, if it is.
    shut: Arc<Mutex<Option<String>>>,
}

impl Network {
    /// The names that requests may come by: those that were given, and the address itself.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = self.hosts.clone();
        match self.address.ip() {
            address if address.is_unspecified() => {}
            IpAddr::V4(address) => names.push(address.to_string()),
            IpAddr::V6(address) => names.push(format!("[{address}]")),
        }
        names
    }

    /// Reads the certificate and its key.
    pub(crate) async fn door(self) -> Result<NetworkDoor, NetworkError> {
        let (certificate, key) = (self.certificate.clone(), self.key.clone());
        // Two libraries bring a provider each: rustls asks which one is meant. A test may have chosen before.
        drop(rustls::crypto::ring::default_provider().install_default());
        let tls = RustlsConfig::from_pem_file(&certificate, &key).await.map_err(|source| NetworkError::Tls {
            certificate,
            key,
            source,
        })?;
        let shut = Arc::new(Mutex::new(Some("it opens when the database is there".to_owned())));
        Ok(NetworkDoor { network: self, tls, shut })
    }
}

impl NetworkDoor {
    pub(crate) fn state(&self) -> DoorState {
        let message = self.shut.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let state = if message.is_none() { "open" } else { "closed" };
        DoorState { address: self.network.address, state, message }
    }

    /// Serves `routes` from when there is a token until `shutdown`.
    pub(crate) async fn keep_open_until(&self, routes: Router, db: &Db, shutdown: &CancellationToken) {
        let mut told = None;
        loop {
            let why = match tokens::any(db).await {
                Ok(true) => match self.serve(routes.clone(), shutdown).await {
                    Ok(()) => return,
                    Err(error) => format!("cannot listen on {}: {error}", self.network.address),
                },
                Ok(false) => {
                    "there is no token for those who come: `cargo xtask token create NAME --scope ...` makes one"
                        .to_owned()
                }
                Err(error) => format!("the database does not say whether there is a token: {error}"),
            };
            if told.as_ref() != Some(&why) {
                tracing::error!(server.address = %self.network.address, reason = why, "the door to other machines stays shut");
                told = Some(why.clone());
            }
            *self.shut.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            if shutdown.run_until_cancelled(tokio::time::sleep(TRIED_EVERY)).await.is_none() {
                return;
            }
        }
    }

    async fn serve(&self, routes: Router, shutdown: &CancellationToken) -> std::io::Result<()> {
        let listener = std::net::TcpListener::bind(self.network.address)?;
        listener.set_nonblocking(true)?;
        let handle = Handle::new();
        let server = axum_server::from_tcp_rustls(listener, self.tls.clone())?.handle(handle.clone());
        *self.shut.lock().unwrap_or_else(PoisonError::into_inner) = None;
        tracing::info!(server.address = %self.network.address, "other machines are let in");
        let (serving, stopping) = (server.serve(routes.into_make_service()), async {
            while shutdown.run_until_cancelled(tokio::time::sleep(RENEWED_EVERY)).await.is_some() {
                self.renew().await;
            }
            handle.graceful_shutdown(Some(STOP_PATIENCE));
        });
        tokio::join!(serving, stopping).0
    }

    /// A certificate that cannot be read leaves the former one in use.
    async fn renew(&self) {
        if let Err(error) = self.tls.reload_from_pem_file(&self.network.certificate, &self.network.key).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "the certificate could not be read again");
        }
    }
}

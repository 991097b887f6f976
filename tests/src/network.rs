//! Another machine before the server's door to the network: an address of this machine's that is not loopback, a certificate for it, and
//! a client that trusts that one alone.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::stack::{Stack, free_port_of};
use crate::wait;

/// A name that the certificates here are made for too.
pub const NAME: &str = "memory.example";

/// Where the server is to be opened, and with what.
pub struct Outside {
    pub address: SocketAddr,
    pub certificate: PathBuf,
    pub key: PathBuf,
    client: Agent,
}

/// A request from there.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub token: Option<&'a str>,
    /// Headers beside the token.
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a str,
}

impl Outside {
    /// Writes a new certificate and its key into the folder.
    pub fn made_in(folder: &Path) -> Result<Self> {
        let ip = own_address()?;
        let address = SocketAddr::new(ip, free_port_of(ip)?);
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([ip.to_string(), NAME.to_owned()])?;
        let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
        std::fs::write(&certificate, cert.pem()).context("writing the certificate")?;
        std::fs::write(&key, signing_key.serialize_pem()).context("writing the certificate's key")?;
        Ok(Self { address, certificate, key, client: client_that_trusts(&cert.pem())? })
    }

    /// The status and the body of the answer.
    pub async fn send(&self, call: Call<'_>) -> Result<(u16, String)> {
        let url = format!("https://{}{}", self.address, call.path);
        let mut request = ureq::http::Request::builder().method(call.method).uri(url);
        for (name, value) in call.headers.iter().chain([&("content-type", "application/json")]) {
            request = request.header(*name, *value);
        }
        if let Some(token) = call.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(call.body.to_owned()).context("making a request")?;
        let client = self.client.clone();
        let answered = tokio::task::spawn_blocking(move || -> Result<(u16, String)> {
            let mut answer = client.run(request).context("asking from another machine")?;
            Ok((answer.status().as_u16(), answer.body_mut().read_to_string().context("reading the answer")?))
        });
        answered.await.context("the request's thread")?
    }
}

fn client_that_trusts(pem: &str) -> Result<Agent> {
    let root = Certificate::from_pem(pem.as_bytes()).context("reading the certificate")?;
    let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[root])).build();
    // A body may stand with any method, as servers must expect.
    let config = Agent::config_builder().tls_config(tls).http_status_as_error(false).allow_non_standard_methods(true);
    Ok(config.proxy(None).build().into())
}

/// Waits until the server lets other machines in.
pub async fn is_open(stack: &Stack) -> Result<()> {
    wait::until("the door to other machines", async || {
        Ok((stack.health().await?["network"]["state"] == "open").then_some(()))
    })
    .await
}

/// The address by which other machines would reach this one. Nothing is sent.
fn own_address() -> Result<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").context("opening a socket")?;
    socket.connect("192.0.2.1:9").context("this machine has no address but loopback")?;
    let address = socket.local_addr()?.ip();
    ensure!(!address.is_loopback(), "this machine has no address but loopback");
    Ok(address)
}

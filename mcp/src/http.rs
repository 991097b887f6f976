//! The tools as a service to be mounted at `/mcp`. Whoever mounts it checks the Bearer token first, and puts whose it is among the
//! request's extensions, as a [`Who`](memory::access::Who): without one no tool answers.

use std::sync::Arc;

use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::Tools;

/// A tower service that `axum::Router::nest_service` takes.
pub type HttpService = StreamableHttpService<Tools, NeverSessionManager>;

/// Serves the tools over streamable HTTP until `shutdown` is cancelled.
///
/// `Host` must be a loopback name or one of `names`, and `Origin`, where a browser sends it, an origin of such a host; on any
/// port. There are no sessions: no tool needs one, and so a restart of the server ends no client's.
pub fn http_service(tools: &Tools, names: &[String], shutdown: CancellationToken) -> HttpService {
    let loopback = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
    let hosts: Vec<String> = loopback.into_iter().chain(names.iter().cloned()).collect();
    let origins: Vec<String> =
        hosts.iter().flat_map(|host| ["http", "https"].map(|scheme| format!("{scheme}://{host}:*"))).collect();
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_cancellation_token(shutdown);
    let tools = tools.of_each_request();
    StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), config)
}

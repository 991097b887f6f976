//! Who may speak to the server: this machine's own programs with the home's tokens, and whoever has a token that was made for them.
//! Host and Origin are checked because a web page can make a browser send requests to a loopback address (DNS rebinding).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use memory::access::{Scope, Who};
use memory::store::tokens;
use sha2::{Digest as _, Sha256};

use crate::App;
use crate::error::ApiError;

/// Whose a request is, and what it may do. Every handler behind the token finds it among the request's extensions, and its [`Who`], which
/// is all that the tools need to know.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    name: Arc<str>,
    scopes: Arc<[Scope]>,
    who: Who,
}

impl Caller {
    fn operator() -> Self {
        Self { name: "operator".into(), scopes: Scope::ALL.into(), who: Who::Operator }
    }

    fn hook() -> Self {
        Self { name: "hook".into(), scopes: [Scope::Ingest].into(), who: Who::Operator }
    }

    /// As the audit log names it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn who(&self) -> Who {
        self.who
    }

    fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// What a route asks of the caller's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: the one open route.
    NoToken,
    /// A token, whatever it allows.
    AnyToken,
    Scope(Scope),
}

/// What is let in at one of the server's two doors. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Doorkeeper {
    /// The home's tokens. They are for this machine's programs: the door to the network does not know them.
    own: Option<OwnTokens>,
    /// Names under which requests may come, beside loopback's.
    hosts: Arc<[String]>,
}

/// Digests of the tokens in the home's files.
#[derive(Clone, Copy)]
struct OwnTokens {
    operator: Digest,
    hook: Option<Digest>,
}

/// Comparing digests takes the same time wherever two tokens differ.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Digest([u8; 32]);

impl Digest {
    fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }
}

impl Doorkeeper {
    /// For the loopback address.
    pub(crate) fn of_this_machine(operator: &str, hook: Option<&str>) -> Self {
        let own = OwnTokens { operator: Digest::of(operator), hook: hook.map(Digest::of) };
        Self { own: Some(own), hosts: Arc::default() }
    }

    /// For the address that other machines reach.
    pub(crate) fn of_network(hosts: &[String]) -> Self {
        Self { own: None, hosts: hosts.into() }
    }

    /// Names of hosts as `rmcp` wants them, without ports.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    async fn caller(&self, app: &App, token: &str) -> Result<Caller, ApiError> {
        let digest = Digest::of(token);
        match self.own {
            Some(own) if own.operator == digest => return Ok(Caller::operator()),
            Some(own) if own.hook == Some(digest) => return Ok(Caller::hook()),
            _ => {}
        }
        // Asked each time, so that a token that was revoked allows nothing from that moment on.
        let known = tokens::find(&app.db, token).await.map_err(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "a token could not be looked up");
            ApiError::DatabaseAway
        })?;
        let known = known.ok_or(ApiError::Unauthorized)?;
        Ok(Caller { name: known.name.into(), scopes: known.scopes.into(), who: known.who })
    }

    fn check_peer(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let text = |name| headers.get(name).map(|value: &axum::http::HeaderValue| value.to_str().unwrap_or("?"));
        // HTTP/2 names the host in the request's own line.
        let host = uri.authority().map_or_else(|| text(HOST).unwrap_or_default(), axum::http::uri::Authority::as_str);
        if !self.is_ours(host) {
            return Err(ApiError::ForeignHost(shown(host)));
        }
        match text(ORIGIN) {
            Some(origin) if !self.is_own_origin(origin) => Err(ApiError::ForeignOrigin(shown(origin))),
            _ => Ok(()),
        }
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|host| self.is_ours(host))
    }

    /// A loopback name or one of the door's own, with any port.
    fn is_ours(&self, authority: &str) -> bool {
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => host,
            _ => authority,
        };
        let is = |name: &str| host.eq_ignore_ascii_case(name);
        is("127.0.0.1") || is("[::1]") || is("localhost") || self.hosts.iter().any(|name| is(name))
    }
}

/// What the layers of a door share.
#[derive(Clone)]
pub(crate) struct AtDoor {
    pub(crate) app: App,
    pub(crate) keeper: Doorkeeper,
}

/// For every route: refuses foreign hosts and origins.
pub(crate) async fn only_known_hosts(State(door): State<AtDoor>, request: Request, next: Next) -> Response {
    match door.keeper.check_peer(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => refuse(&door.app, request.uri(), error),
    }
}

/// For every route but health: finds out whose the request is, and refuses those without a token that is in use.
pub(crate) async fn only_with_token(State(door): State<AtDoor>, mut request: Request, next: Next) -> Response {
    let caller = match bearer(request.headers()) {
        Some(token) => door.keeper.caller(&door.app, token).await,
        None => Err(ApiError::Unauthorized),
    };
    match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller.who());
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => refuse(&door.app, request.uri(), error),
    }
}

/// For a route with a scope: refuses tokens without it.
pub(crate) async fn only_with_scope(
    State((app, scope)): State<(App, Scope)>,
    request: Request,
    next: Next,
) -> Response {
    let may = request.extensions().get::<Caller>().is_some_and(|caller| caller.may(scope));
    if may { next.run(request).await } else { refuse(&app, request.uri(), ApiError::Forbidden(scope)) }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Logged here, once; what the client sent is not.
fn refuse(app: &App, uri: &Uri, error: ApiError) -> Response {
    app.counters.count_refused();
    tracing::warn!(http.path = uri.path(), reason = %error, "refused a request");
    error.into_response()
}

/// Foreign text goes back and into the log only short and printable.
fn shown(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_only_loopback_hosts() {
        let keeper = Doorkeeper::of_this_machine("t", None);
        for host in ["127.0.0.1", "127.0.0.1:3377", "localhost:1", "LOCALHOST", "[::1]:3377", "[::1]"] {
            assert!(keeper.is_ours(host), "{host}");
        }
        for host in
            ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:3377", "0.0.0.0", "127.0.0.1:x"]
        {
            assert!(!keeper.is_ours(host), "{host}");
        }
    }

    #[test]
    fn takes_only_loopback_origins() {
        let keeper = Doorkeeper::of_this_machine("t", None);
        assert!(keeper.is_own_origin("http://127.0.0.1:3377"));
        for origin in ["null", "http://evil.example", "file://127.0.0.1", "http://127.0.0.1@evil.example"] {
            assert!(!keeper.is_own_origin(origin), "{origin}");
        }
    }

    #[test]
    fn the_door_to_the_network_has_names_of_its_own() {
        let keeper = Doorkeeper::of_network(&["memory.example".to_owned(), "[fd00::1]".to_owned()]);
        for host in ["memory.example", "Memory.Example:8443", "[fd00::1]:8443", "localhost:8443"] {
            assert!(keeper.is_ours(host), "{host}");
        }
        assert!(!keeper.is_ours("memory.example.evil.example"));
        assert!(keeper.is_own_origin("https://memory.example") && !keeper.is_own_origin("https://example"));
    }
}

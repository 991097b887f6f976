//! Who may speak to the server: this machine's own programs, with the token. Host and Origin are checked because a web page
//! can make a browser send requests to a loopback address (DNS rebinding).

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use memory::access::Who;
use sha2::{Digest as _, Sha256};

use crate::App;
use crate::error::ApiError;

/// The token's digest: comparing digests takes the same time wherever two tokens differ.
#[derive(Clone, Copy)]
pub(crate) struct Token([u8; 32]);

impl Token {
    pub(crate) fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    fn is(self, other: &str) -> bool {
        self.0 == Self::new(other).0
    }
}

/// For every route: refuses foreign hosts and origins.
pub(crate) async fn only_this_machine(State(app): State<App>, request: Request, next: Next) -> Response {
    match check_peer(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => refuse(&app, request.uri(), error),
    }
}

/// For every route but health: refuses requests without the token.
pub(crate) async fn only_with_token(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = given.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    if bearer.is_some_and(|token| app.token.is(token)) {
        request.extensions_mut().insert(Who::Operator);
        next.run(request).await
    } else {
        refuse(&app, request.uri(), ApiError::Unauthorized)
    }
}

/// Logged here, once; what the client sent is not.
fn refuse(app: &App, uri: &Uri, error: ApiError) -> Response {
    app.counters.count_refused();
    tracing::warn!(http.path = uri.path(), reason = %error, "refused a request");
    error.into_response()
}

fn check_peer(headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name| headers.get(name).map(|value: &axum::http::HeaderValue| value.to_str().unwrap_or("?"));
    let host = text(HOST).unwrap_or_default();
    if !is_loopback_authority(host) {
        return Err(ApiError::ForeignHost(shown(host)));
    }
    match text(ORIGIN) {
        Some(origin) if !is_loopback_origin(origin) => Err(ApiError::ForeignOrigin(shown(origin))),
        _ => Ok(()),
    }
}

fn is_loopback_origin(origin: &str) -> bool {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).is_some_and(is_loopback_authority)
}

/// `127.0.0.1`, `localhost` or `[::1]`, with any port.
fn is_loopback_authority(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => host,
        _ => authority,
    };
    host == "127.0.0.1" || host == "[::1]" || host.eq_ignore_ascii_case("localhost")
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
        for host in ["127.0.0.1", "127.0.0.1:3377", "localhost:1", "LOCALHOST", "[::1]:3377", "[::1]"] {
            assert!(is_loopback_authority(host), "{host}");
        }
        for host in
            ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:3377", "0.0.0.0", "127.0.0.1:x"]
        {
            assert!(!is_loopback_authority(host), "{host}");
        }
    }

    #[test]
    fn takes_only_loopback_origins() {
        assert!(is_loopback_origin("http://127.0.0.1:3377"));
        for origin in ["null", "http://evil.example", "file://127.0.0.1", "http://127.0.0.1@evil.example"] {
            assert!(!is_loopback_origin(origin), "{origin}");
        }
    }
}

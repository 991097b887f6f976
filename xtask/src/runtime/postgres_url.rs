//! Postgres URLs: made for our own databases, and told without their password.

use std::net::SocketAddr;

/// The role and the database of our own servers.
pub const NAME: &str = "agent_memory";

/// The URL of our own database behind an address. The password is hex: nothing in it needs escaping.
pub fn own(address: SocketAddr, password: &str) -> String {
    format!("postgres://{NAME}:{password}@{address}/{NAME}")
}

/// Where a database is, without user, password and parameters: `127.0.0.1:5433/agent_memory`.
pub fn place(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    rest.rsplit_once('@').map_or(rest, |(_, place)| place).to_owned()
}

/// Host and port that a URL names; `None` where it names them otherwise (a socket, a parameter, several hosts).
pub fn listener(url: &str) -> Option<(String, u16)> {
    const DEFAULT_PORT: u16 = 5432;
    let place = place(url);
    let authority = place.split('/').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        // A colon inside brackets belongs to an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, DEFAULT_PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_plain = !host.is_empty() && !host.contains(['%', ',']) && !url.contains("host=");
    is_plain.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_a_place_without_secrets() {
        assert_eq!(place(&own("127.0.0.1:5433".parse().unwrap(), "secret")), "127.0.0.1:5433/agent_memory");
        assert_eq!(place("postgresql://u:p%40@db.example:5432/d?password=x"), "db.example:5432/d");
        assert_eq!(place("postgres://db.example/d"), "db.example/d");
    }

    #[test]
    fn finds_who_must_listen() {
        let check = |url, expected: Option<(&str, u16)>| {
            assert_eq!(listener(url), expected.map(|(host, port)| (host.to_owned(), port)), "{url}");
        };
        check("postgres://u:p@127.0.0.1:5433/d", Some(("127.0.0.1", 5433)));
        check("postgres://db.example/d", Some(("db.example", 5432)));
        check("postgres://u@[::1]:5433/d", Some(("::1", 5433)));
        check("postgres://u@[::1]/d", Some(("::1", 5432)));
        check("postgres:///d?host=/run/postgresql", None);
        check("postgres://%2Frun%2Fpostgresql/d", None);
        check("postgres://a,b/d", None);
    }
}

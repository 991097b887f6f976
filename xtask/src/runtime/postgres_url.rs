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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_a_place_without_secrets() {
        assert_eq!(place(&own("127.0.0.1:5433".parse().unwrap(), "secret")), "127.0.0.1:5433/agent_memory");
        assert_eq!(place("postgresql://u:p%40@db.example:5432/d?password=x"), "db.example:5432/d");
        assert_eq!(place("postgres://db.example/d"), "db.example/d");
    }
}

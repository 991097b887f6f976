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

/// The URL of another database of the same server.
pub fn with_database(url: &str, name: &str) -> String {
    let (before, query) = url.find('?').map_or((url, ""), |at| url.split_at(at));
    let authority = before.find("://").map_or(0, |at| at + 3);
    let end = before[authority..].find('/').map_or(before.len(), |slash| authority + slash);
    format!("{}/{name}{query}", &before[..end])
}

/// The URL as it may stand on a command line, which every user of the machine can read, and the password that was in it.
pub fn without_password(url: &str) -> (String, Option<String>) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let end = url[authority..].find(['/', '?']).map_or(url.len(), |at| authority + at);
    let Some(at) = url[authority..end].rfind('@').map(|at| authority + at) else { return (url.to_owned(), None) };
    let Some(colon) = url[authority..at].find(':').map(|colon| authority + colon) else {
        return (url.to_owned(), None);
    };
    (format!("{}{}", &url[..colon], &url[at..]), Some(decoded(&url[colon + 1..at])))
}

/// Without the escapes of a URL; what is none stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
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

    #[test]
    fn names_another_database_of_the_same_server() {
        let check = |url, expected| assert_eq!(with_database(url, "new"), expected);
        check("postgres://u:p@h:5433/old", "postgres://u:p@h:5433/new");
        check("postgres://u:p@h", "postgres://u:p@h/new");
        check("postgres://u:p@h/old?sslmode=require", "postgres://u:p@h/new?sslmode=require");
    }

    #[test]
    fn takes_the_password_off_what_stands_on_a_command_line() {
        let check = |url, shown: &str, password: Option<&str>| {
            assert_eq!(without_password(url), (shown.to_owned(), password.map(str::to_owned)));
        };
        check("postgres://u:p%40%2f%zz@h:5/d?x=y", "postgres://u@h:5/d?x=y", Some("p@/%zz"));
        check("postgres://u@h/d", "postgres://u@h/d", None);
        check("postgres://h/d?application_name=a@b:c", "postgres://h/d?application_name=a@b:c", None);
    }
}

//! Ports on the host: whether one is free, and which one the database gets.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

use crate::output::HintExt;

pub(crate) const DATABASE_PORT: u16 = 3378;

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Fails before anything is made if the server cannot have its port.
pub(crate) fn require_free(port: u16) -> Result<()> {
    if is_free(port) {
        return Ok(());
    }
    Err(anyhow::anyhow!("another program listens there"))
        .with_context(|| format!("port {port} on 127.0.0.1 is taken"))
        .hint(format!("stop that program, or choose another port: `cargo xtask up --port {}`", port.wrapping_add(1)))
}

/// The port that the database had, else the first free one from the usual one on: programs find it in `database-url`.
/// Not any port that the system offers: those are the ones that it lends to clients, and could be gone after a reboot.
pub(crate) fn for_database(before: Option<u16>) -> Result<u16> {
    let ports = DATABASE_PORT..DATABASE_PORT + 200;
    before.or_else(|| ports.clone().find(|port| is_free(*port))).with_context(|| {
        format!("none of the ports {} to {} on 127.0.0.1 is free for the database", ports.start, ports.end - 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::report;

    #[test]
    fn names_the_taken_port_and_how_to_choose_another() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let report = report(&require_free(port).unwrap_err());
        assert!(report.starts_with(&format!("error: port {port} on 127.0.0.1 is taken\n")), "{report}");
        assert!(report.contains("hint: stop that program"), "{report}");
    }

    #[test]
    fn keeps_the_database_where_it_was() {
        assert_eq!(for_database(Some(4000)).unwrap(), 4000);
    }
}

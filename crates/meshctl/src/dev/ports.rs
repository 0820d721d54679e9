//! Where the services of a run listen.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::Context;

/// The port that people know a service by.
fn known(service: &str) -> Option<u16> {
    match service {
        "observer" => Some(8080),
        "orders" => Some(8081),
        "payments" => Some(8082),
        "inventory" => Some(8083),
        "notifications" => Some(8084),
        _ => None,
    }
}

/// An address for one replica: the first one gets the known port of the service when it is free, others any free one.
///
/// # Errors
/// When the system has no port left.
pub(super) fn address(service: &str, replica: usize) -> anyhow::Result<SocketAddr> {
    let known = known(service).filter(|_| replica == 0);
    let free = known.and_then(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
    // The socket is closed again here; the service opens it as its own.
    let listener = match free {
        Some(listener) => listener,
        None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("there is no free port on 127.0.0.1")?,
    };
    listener.local_addr().context("cannot read the address of a socket")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_gives_way_to_a_free_one() {
        // Whoever holds the port of the observer here: it or the test does.
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, 8080));
        assert_ne!(address("observer", 0).unwrap().port(), 8080);
    }

    #[test]
    fn only_the_first_replica_gets_the_known_port() {
        assert_ne!(address("orders", 1).unwrap().port(), 8081);
    }
}

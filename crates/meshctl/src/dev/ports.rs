//! Where the services of a run listen.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;

use crate::outcome::Failure;

/// Where the replicas listen that get no known port. Below the ports that the system gives to outgoing connections, which
/// could take one between two starts of a service.
const OTHERS: RangeInclusive<u16> = 8_090..=9_999;

/// A port of 127.0.0.1 that no other run takes.
///
/// The service listens with TCP; the run holds the UDP port of the same number meanwhile, which nobody else wants. It is
/// free again when this process ends, however it ends.
#[derive(Debug)]
pub(super) struct Port {
    number: u16,
    _held: UdpSocket,
}

impl Port {
    /// A port for one replica: the first one gets the known port of the service when it is free, others any free one.
    ///
    /// # Errors
    /// When no port is free.
    pub(super) fn take(service: &str, replica: usize) -> anyhow::Result<Self> {
        let known = known(service).filter(|_| replica == 0);
        let free = known.into_iter().chain(OTHERS).find_map(Self::hold);
        free.ok_or_else(|| {
            Failure::usage(format!("no port from {} to {} is free on 127.0.0.1", OTHERS.start(), OTHERS.end()))
        })
    }

    /// The address for the service.
    pub(super) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }

    fn hold(number: u16) -> Option<Self> {
        let held = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        // The listener is closed again here; the service opens its own.
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Self { number, _held: held })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_gives_way_to_a_free_one() {
        // Whoever holds the port of the observer here: it, another run, or this.
        let first = Port::take("observer", 0).unwrap();
        let second = Port::take("observer", 0).unwrap();
        assert_ne!(first.number, second.number);
        assert!(OTHERS.contains(&second.number));
        let _listening = TcpListener::bind(first.address());
        drop(first);
        assert_ne!(Port::take("observer", 0).unwrap().number, 8080);
    }

    #[test]
    fn only_the_first_replica_gets_the_known_port() {
        assert!(OTHERS.contains(&Port::take("orders", 1).unwrap().number));
    }
}

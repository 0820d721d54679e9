//! Ports that stay ours while a server is down.
//!
//! A port that the kernel hands out is free to anyone once its socket is closed: to the next test, and to any outgoing
//! connection of the machine. These come from below the range of outgoing connections, and each is claimed by a UDP socket
//! of the same number, which keeps it from every other process that takes its ports here. The kernel ends the claim with
//! the process.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::error::{Error, Result};

const FIRST: u16 = 15_000;
/// Ends below 32768, where the outgoing connections of Linux begin.
const COUNT: u16 = 17_000;

/// A TCP port of 127.0.0.1 that nobody else is given.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _claim: Option<UdpSocket>,
}

impl Port {
    /// Reserves a free port.
    pub(crate) fn reserve() -> Result<Port> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // Processes start at different places, so that they seldom try the same port.
        let own = (std::process::id() % 500) as u16 * 34;
        (0..COUNT)
            .map(|_| FIRST + own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT)
            .find_map(Port::claim)
            .ok_or_else(|| Error::Unusable("no free port was found between 15000 and 31999 on 127.0.0.1".to_owned()))
    }

    /// Takes the port that the caller asked for, whoever has it; or reserves one.
    pub(crate) fn given_or_reserved(given: Option<u16>) -> Result<Port> {
        given.map_or_else(Port::reserve, |number| Ok(Port { number, _claim: claim(number) }))
    }

    /// Reserves this port, if nobody has claimed it and nobody listens on it.
    fn claim(number: u16) -> Option<Port> {
        let claim = claim(number)?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Port { number, _claim: Some(claim) })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

fn claim(number: u16) -> Option<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_not_given_twice_even_while_nothing_listens() {
        let first = Port::reserve().unwrap();
        assert!(Port::claim(first.number()).is_none());
        assert_ne!(Port::reserve().unwrap().number(), first.number());
        let number = first.number();
        drop(first);
        assert_eq!(Port::claim(number).unwrap().number(), number);
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_passed_over() {
        let port = Port::reserve().unwrap();
        let number = port.number();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        drop(port);
        assert!(Port::claim(number).is_none());
    }
}

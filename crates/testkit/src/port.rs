//! Ports that stay ours while a server is down.
//!
//! A port that the kernel hands out is free to anyone once its socket is closed: to the next test, and to any outgoing
//! connection of the machine. These come from below the range of outgoing connections, and a file lock keeps one from
//! every other process that takes its ports here, until the reservation is dropped.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::error::{Error, Result};

const FIRST: u16 = 15_000;
/// Below 32768, where the outgoing connections of Linux begin.
const COUNT: u16 = 17_000;

/// A port of 127.0.0.1 that nobody else is given.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// The lock on it ends with this process, however that ends.
    _lock: Option<File>,
}

impl Port {
    /// Reserves a free port.
    pub(crate) fn reserve() -> Result<Port> {
        // Processes start at different places, so that they seldom try the same port.
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let own = (std::process::id() % 500) as u16 * 34;
        for _ in 0..COUNT {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let number = FIRST + own.wrapping_add(step) % COUNT;
            if let Some(lock) = lock(number)?
                && is_free(number)
            {
                return Ok(Port { number, _lock: Some(lock) });
            }
        }
        Err(Error::Unusable("no free port was found between 15000 and 31999 on 127.0.0.1".to_owned()))
    }

    /// Takes the port that the caller asked for, reserved or not; or reserves one.
    pub(crate) fn given_or_reserved(given: Option<u16>) -> Result<Port> {
        match given {
            Some(number) => Ok(Port { number, _lock: lock(number)? }),
            None => Port::reserve(),
        }
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

fn is_free(number: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok()
}

/// The lock of one port; `None` when another reservation holds it.
fn lock(number: u16) -> Result<Option<File>> {
    let user = rustix::process::geteuid().as_raw();
    let directory = std::env::temp_dir().join(format!("event-mesh-ports-{user}"));
    fs::create_dir_all(&directory).map_err(Error::io(format!("make {}", directory.display())))?;
    let owner = fs::metadata(&directory).map_err(Error::io(format!("look at {}", directory.display())))?.uid();
    if owner != user {
        return Err(Error::Unusable(format!("{} belongs to another user: remove it", directory.display())));
    }
    let path = directory.join(number.to_string());
    let file = File::options().create(true).append(true).open(&path);
    let file = file.map_err(Error::io(format!("open {}", path.display())))?;
    Ok(file.try_lock().is_ok().then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_not_given_twice_even_while_nothing_listens() {
        let ports: Vec<Port> = (0..20).map(|_| Port::reserve().unwrap()).collect();
        let mut numbers: Vec<u16> = ports.iter().map(Port::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 20);
        assert!(numbers.iter().all(|&number| lock(number).unwrap().is_none() && is_free(number)));
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_passed_over() {
        let first = Port::reserve().unwrap();
        let busy = first.number();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, busy)).unwrap();
        drop(first);
        // A whole round comes past the busy port.
        let all: Vec<u16> = (0..40).map(|_| Port::reserve().unwrap().number()).collect();
        assert!(!all.contains(&busy));
        assert!(!is_free(busy));
    }
}

//! A TCP proxy that breaks the link between a client and a server on purpose.
//!
//! ```no_run
//! # async fn example() -> testkit::Result<()> {
//! use std::time::Duration;
//! use testkit::{Direction, Nats, NatsOptions, Proxy};
//!
//! let nats = Nats::start(NatsOptions::new()).await?;
//! let proxy = Proxy::start(nats.address()).await?;
//! let client = async_nats::connect(proxy.through(&nats.url())).await.unwrap();
//! proxy.delay(Direction::ToClient, Duration::from_millis(200)); // slow answers
//! proxy.blackhole(Direction::ToClient); // half-open: requests arrive, answers do not
//! proxy.reset(); // every connection is cut with RST
//! proxy.refuse().await; // nobody gets in
//! proxy.heal().await?;
//! # Ok(())
//! # }
//! ```

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::port::Port;

mod faults;
mod link;

pub use faults::Direction;
use faults::{Faults, Lane};

/// A proxy on 127.0.0.1 in front of one server, run by tasks of the current runtime and controlled by the test.
///
/// Faults hold for connections that exist and for those to come, until they are changed or healed. A connection is reset
/// when the server cannot be reached. Dropping the proxy resets all connections.
#[derive(Debug)]
pub struct Proxy {
    port: Port,
    links: Arc<Links>,
    /// `None` while connections are refused.
    accepting: Mutex<Option<JoinHandle<()>>>,
    /// Counts resets; a connection ends when it changes, or when the proxy is gone.
    resets: watch::Sender<u64>,
}

/// What the tasks of a proxy share.
#[derive(Debug)]
struct Links {
    server: SocketAddr,
    to_server: Lane,
    to_client: Lane,
    accepted: AtomicU64,
    open: AtomicU64,
}

impl Proxy {
    /// Starts a proxy to `server` on a free port.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot listen.
    pub async fn start(server: SocketAddr) -> Result<Proxy> {
        Proxy::on(Port::reserve()?, server).await
    }

    /// Starts a proxy to `server` on this port of 127.0.0.1.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot listen.
    pub async fn start_on(port: u16, server: SocketAddr) -> Result<Proxy> {
        Proxy::on(Port::given_or_reserved(Some(port))?, server).await
    }

    async fn on(port: Port, server: SocketAddr) -> Result<Proxy> {
        let links = Links {
            server,
            to_server: Lane::new(),
            to_client: Lane::new(),
            accepted: AtomicU64::new(0),
            open: AtomicU64::new(0),
        };
        let resets = watch::Sender::new(0);
        let proxy = Proxy { port, links: Arc::new(links), accepting: Mutex::new(None), resets };
        proxy.accept().await?;
        Ok(proxy)
    }

    /// The address that clients are to connect to.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// A URL of the server, with the proxy's address in place of the server's.
    pub fn through(&self, url: &str) -> String {
        url.replace(&self.links.server.to_string(), &self.address().to_string())
    }

    /// Lets everything arrive `delay` later. The throughput stays.
    pub fn delay(&self, direction: Direction, delay: Duration) {
        self.lane(direction).change(|faults| faults.delay = delay);
    }

    /// Lets nothing arrive, and says nothing: connections stay open, and new ones are made. As on a network that drops
    /// packets, what was sent arrives after [`heal`](Proxy::heal); after [`reset`](Proxy::reset) it is lost.
    pub fn blackhole(&self, direction: Direction) {
        self.lane(direction).change(|faults| faults.silent = true);
    }

    /// Lets so many bytes per second arrive, per connection.
    pub fn throttle(&self, direction: Direction, bytes_per_second: u64) {
        self.lane(direction).change(|faults| faults.bytes_per_second = Some(bytes_per_second));
    }

    /// Lets the next `bytes` bytes arrive and resets the connection that carried the last of them; the others go on. With
    /// 0 the next byte does not arrive any more.
    pub fn cut_after(&self, direction: Direction, bytes: u64) {
        self.lane(direction).set_budget(Some(bytes));
    }

    /// Resets all connections that exist. New ones are accepted.
    pub fn reset(&self) {
        self.resets.send_modify(|resets| *resets += 1);
    }

    /// Refuses new connections, as a machine does on which nothing listens. Those that exist go on.
    pub async fn refuse(&self) {
        let accepting = self.accepting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = accepting {
            task.abort();
            // The socket is closed when the task is gone.
            let _ = task.await;
        }
    }

    /// Removes all faults. Connections that exist go on, with what was held back.
    ///
    /// # Errors
    /// [`Error::Io`] when connections were refused and the port cannot be opened again.
    pub async fn heal(&self) -> Result<()> {
        for direction in Direction::BOTH {
            let lane = self.lane(direction);
            lane.set_budget(None);
            lane.change(|faults| *faults = Faults::default());
        }
        let refusing = self.accepting.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        if refusing { self.accept().await } else { Ok(()) }
    }

    /// How many connections have been accepted so far.
    pub fn accepted(&self) -> u64 {
        self.links.accepted.load(Ordering::Relaxed)
    }

    /// How many connections are open.
    pub fn open(&self) -> u64 {
        self.links.open.load(Ordering::Relaxed)
    }

    /// How many bytes have arrived so far.
    pub fn passed_bytes(&self, direction: Direction) -> u64 {
        self.lane(direction).passed_bytes()
    }

    fn lane(&self, direction: Direction) -> &Lane {
        match direction {
            Direction::ToServer => &self.links.to_server,
            Direction::ToClient => &self.links.to_client,
        }
    }

    async fn accept(&self) -> Result<()> {
        let address = self.address();
        let listener = TcpListener::bind(address).await.map_err(Error::io(format!("listen on {address}")))?;
        let (links, mut resets) = (Arc::clone(&self.links), self.resets.subscribe());
        let task = tokio::spawn(async move {
            // An error here is about one connection that was gone before it was taken.
            loop {
                if let Ok((client, _)) = listener.accept().await {
                    links.accepted.fetch_add(1, Ordering::Relaxed);
                    resets.mark_unchanged();
                    tokio::spawn(Arc::clone(&links).carry(client, resets.clone()));
                }
            }
        });
        *self.accepting.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(task) = self.accepting.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

impl Links {
    /// Carries one connection to its end.
    async fn carry(self: Arc<Links>, mut client: TcpStream, mut resets: watch::Receiver<u64>) {
        self.open.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut server) = TcpStream::connect(self.server).await {
            let lanes = [&self.to_server, &self.to_client];
            let finished = tokio::select! {
                carried = link::carry(&mut client, &mut server, lanes) => carried.is_ok(),
                _ = resets.changed() => false,
            };
            if !finished {
                reset(&server);
                reset(&client);
            }
        } else {
            reset(&client);
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Has a connection end with RST instead of FIN when it is dropped: what is in flight is lost, the peer learns it at once.
fn reset(stream: &TcpStream) {
    // A connection that its peer has reset already refuses, and needs no more.
    let _ = stream.set_zero_linger();
}

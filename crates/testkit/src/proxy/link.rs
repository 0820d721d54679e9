//! One connection through a proxy: two pumps, each of which obeys the faults of its direction.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::faults::{Grant, Lane};

/// How much is read at once.
const CHUNK_BYTES: usize = 16 << 10;
/// How many chunks wait for their time; more are left to the sender's and the receiver's system.
const CHUNKS_WAITING: usize = 64;
/// How often a throttled direction passes something.
const THROTTLE_STEP: Duration = Duration::from_millis(20);

/// Carries both directions until both senders have finished in order.
///
/// # Errors
/// When the connection is broken, by a fault or by one of its ends.
pub(super) async fn carry(client: &mut TcpStream, server: &mut TcpStream, lanes: [&Lane; 2]) -> io::Result<()> {
    let [to_server, to_client] = lanes;
    let (from_client, into_client) = client.split();
    let (from_server, into_server) = server.split();
    let there = pump(from_client, into_server, to_server);
    let back = pump(from_server, into_client, to_client);
    tokio::try_join!(there, back).map(drop)
}

async fn pump(from: ReadHalf<'_>, into: WriteHalf<'_>, lane: &Lane) -> io::Result<()> {
    let (queue, waiting) = mpsc::channel(CHUNKS_WAITING);
    tokio::try_join!(read_all(from, queue, lane), write_all(into, waiting, lane)).map(drop)
}

/// Reads ahead, and stamps each chunk with the time at which it may pass: a delay does not lower the throughput.
async fn read_all(mut from: ReadHalf<'_>, queue: mpsc::Sender<(Instant, Vec<u8>)>, lane: &Lane) -> io::Result<()> {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        match from.read_buf(&mut chunk).await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                // A reset is a packet as well.
                spoken(lane).await;
                return Err(error);
            }
        }
        let due = Instant::now() + lane.faults.borrow().delay;
        if queue.send((due, chunk)).await.is_err() {
            return Ok(());
        }
    }
}

async fn write_all(
    mut into: WriteHalf<'_>,
    mut waiting: mpsc::Receiver<(Instant, Vec<u8>)>,
    lane: &Lane,
) -> io::Result<()> {
    while let Some((due, chunk)) = waiting.recv().await {
        tokio::time::sleep_until(due).await;
        spoken(lane).await;
        match lane.take(chunk.len()) {
            Grant::All => write_slowly(&mut into, &chunk, lane).await?,
            Grant::ThenCut(bytes) => {
                write_slowly(&mut into, &chunk[..bytes], lane).await?;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
    }
    // The end of a stream is a packet as well.
    spoken(lane).await;
    into.shutdown().await
}

/// Waits while the direction is silent.
async fn spoken(lane: &Lane) {
    let mut faults = lane.faults.subscribe();
    // It cannot fail: the sender lives in the lane.
    let _ = faults.wait_for(|faults| !faults.silent).await;
}

async fn write_slowly(into: &mut WriteHalf<'_>, mut bytes: &[u8], lane: &Lane) -> io::Result<()> {
    while !bytes.is_empty() {
        let rate = lane.faults.borrow().bytes_per_second;
        let step = rate.map_or(bytes.len(), |rate| {
            let step = u128::from(rate) * THROTTLE_STEP.as_millis() / 1000;
            usize::try_from(step).unwrap_or(usize::MAX).clamp(1, bytes.len())
        });
        into.write_all(&bytes[..step]).await?;
        lane.count(step);
        bytes = &bytes[step..];
        if rate.is_some() {
            tokio::time::sleep(THROTTLE_STEP).await;
        }
    }
    Ok(())
}

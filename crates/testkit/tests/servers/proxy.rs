//! The proxy: each fault does what it says, to one direction only, and heals.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use testkit::{Direction, Proxy, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const LIMIT: Duration = Duration::from_secs(10);
/// Long enough to see that something does not happen.
const SILENCE: Duration = Duration::from_millis(150);

/// A server that sends back what it gets, and ends when its client does.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    address
}

async fn ping(stream: &mut TcpStream) -> std::io::Result<Duration> {
    let start = Instant::now();
    stream.write_all(b"ping").await?;
    stream.read_exact(&mut [0; 4]).await?;
    Ok(start.elapsed())
}

async fn hears(stream: &mut TcpStream) -> bool {
    tokio::time::timeout(SILENCE, stream.read_exact(&mut [0; 4])).await.is_ok()
}

#[tokio::test]
async fn a_healthy_proxy_passes_bytes_and_the_end_of_a_stream() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    let sent: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
    let (mut from, mut to) = stream.split();
    let mut received = Vec::new();
    let (_, _) = tokio::join!(
        async {
            to.write_all(&sent).await.unwrap();
            to.shutdown().await.unwrap();
        },
        async { from.read_to_end(&mut received).await.unwrap() }
    );
    assert!(received == sent);
    assert_eq!(Direction::BOTH.map(|direction| proxy.passed_bytes(direction)), [1_000_000; 2]);
    wait::until("the connection to be closed", LIMIT, || async {
        if proxy.open() == 0 { Ok(()) } else { Err(proxy.open()) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_delay_is_added_to_its_direction_and_not_to_each_chunk_in_turn() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    proxy.delay(Direction::ToServer, Duration::from_millis(100));
    assert!(ping(&mut stream).await.unwrap() >= Duration::from_millis(100));
    proxy.delay(Direction::ToClient, Duration::from_millis(100));
    assert!(ping(&mut stream).await.unwrap() >= Duration::from_millis(200));

    // Ten writes in a row are under way together.
    let start = Instant::now();
    for _ in 0..10 {
        stream.write_all(b"ping").await.unwrap();
        tokio::task::yield_now().await;
    }
    stream.read_exact(&mut [0; 40]).await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(1000), "{:?}", start.elapsed());

    proxy.heal().await.unwrap();
    assert!(ping(&mut stream).await.unwrap() < Duration::from_millis(100));
}

#[tokio::test]
async fn a_black_hole_swallows_one_direction_until_it_is_healed() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    ping(&mut stream).await.unwrap();
    proxy.blackhole(Direction::ToClient);

    stream.write_all(b"ping").await.unwrap();
    assert!(!hears(&mut stream).await);
    assert_eq!(proxy.passed_bytes(Direction::ToServer), 8, "the request arrived all the same");
    let mut second = TcpStream::connect(proxy.address()).await.unwrap();
    second.write_all(b"ping").await.unwrap();
    assert!(!hears(&mut second).await, "a new connection is as deaf");

    proxy.heal().await.unwrap();
    assert!(hears(&mut stream).await && hears(&mut second).await, "what was held back arrives");

    // Held back and then reset is lost.
    proxy.blackhole(Direction::ToServer);
    stream.write_all(b"ping").await.unwrap();
    proxy.reset();
    let error = stream.read_exact(&mut [0; 4]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.passed_bytes(Direction::ToServer), 12);
}

#[tokio::test]
async fn a_reset_cuts_what_exists_and_not_what_comes() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut before = TcpStream::connect(proxy.address()).await.unwrap();
    ping(&mut before).await.unwrap();
    proxy.reset();
    assert_eq!(ping(&mut before).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut after = TcpStream::connect(proxy.address()).await.unwrap();
    ping(&mut after).await.unwrap();
    drop(proxy);
    assert_eq!(ping(&mut after).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn refusing_keeps_strangers_out_and_friends_in() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut inside = TcpStream::connect(proxy.address()).await.unwrap();
    ping(&mut inside).await.unwrap();
    proxy.refuse().await;
    proxy.refuse().await; // twice is no more than once
    let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    ping(&mut inside).await.unwrap();
    proxy.heal().await.unwrap();
    ping(&mut TcpStream::connect(proxy.address()).await.unwrap()).await.unwrap();
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn a_cut_lets_exactly_so_many_bytes_through_and_hits_one_connection() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut unlucky = TcpStream::connect(proxy.address()).await.unwrap();
    let mut lucky = TcpStream::connect(proxy.address()).await.unwrap();
    ping(&mut unlucky).await.unwrap();
    ping(&mut lucky).await.unwrap();
    proxy.cut_after(Direction::ToClient, 6);
    ping(&mut unlucky).await.unwrap();
    unlucky.write_all(b"pong").await.unwrap();
    let mut part = [0; 4];
    unlucky.read_exact(&mut part[..2]).await.unwrap();
    assert_eq!(&part[..2], b"po");
    assert_eq!(unlucky.read(&mut part).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.passed_bytes(Direction::ToServer), 16, "the request of which the answer was cut arrived");
    ping(&mut lucky).await.unwrap();
}

#[tokio::test]
async fn a_throttled_direction_takes_its_time() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    proxy.throttle(Direction::ToServer, 10_000);
    let start = Instant::now();
    stream.write_all(&[0; 3_000]).await.unwrap();
    stream.read_exact(&mut [0; 3_000]).await.unwrap();
    // 15 steps of 200 bytes, of which the last need not be waited out.
    assert!(start.elapsed() >= Duration::from_millis(14 * 20), "{:?}", start.elapsed());
    proxy.heal().await.unwrap();
    assert!(ping(&mut stream).await.unwrap() < Duration::from_millis(100));
}

#[tokio::test]
async fn a_connection_to_a_dead_server_is_reset() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap()).await.unwrap();
    drop(listener);
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ping(&mut stream).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_url_leads_through_the_proxy() {
    let server = echo().await;
    let proxy = Proxy::start(server).await.unwrap();
    let url = format!("postgres://orders:word@{server}/orders?options=-c%20work_mem%3D5MB");
    let expected = format!("postgres://orders:word@{}/orders?options=-c%20work_mem%3D5MB", proxy.address());
    assert_eq!(proxy.through(&url), expected);
}

//! The monitoring endpoint of nats-server, asked with as little HTTP as it takes.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Asks for `path` and returns the JSON answer, whatever its status.
pub(super) async fn get(address: SocketAddr, path: &str) -> io::Result<Value> {
    let mut stream = TcpStream::connect(address).await?;
    // With version 1.0 the answer is not chunked and ends with the connection.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    let body = body.ok_or_else(|| io::Error::other(format!("{path} was answered with no body")))?;
    serde_json::from_str(body).map_err(io::Error::other)
}

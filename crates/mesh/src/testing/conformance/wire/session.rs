//! One connection: messages pass both ways, and the answer to a statement may be another one.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, split};
use tokio::net::TcpStream;

use super::frames::Frame;
use super::{Fault, SharedPlan};

/// What becomes of the answers, in the order of the requests: the server ends each with "ready for query".
type Answers = Arc<Mutex<VecDeque<Option<Fault>>>>;

/// Passes messages until one side ends.
pub(super) async fn run(client: TcpStream, upstream: &(String, u16), plan: SharedPlan) -> io::Result<()> {
    let server = TcpStream::connect((upstream.0.as_str(), upstream.1)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = split(client);
    let (from_server, to_server) = split(server);
    let answers = Answers::default();
    let requests = requests(from_client, to_server, plan, Arc::clone(&answers));
    let replies = replies(from_server, to_client, answers);
    // Whichever side ends takes the other with it.
    tokio::select! {
        ended = requests => ended,
        ended = replies => ended,
    }
}

async fn requests(
    client: impl AsyncRead + Unpin,
    mut server: impl AsyncWrite + Unpin,
    plan: SharedPlan,
    answers: Answers,
) -> io::Result<()> {
    let mut client = BufReader::new(client);
    Frame::read_first(&mut client).await?.write(&mut server).await?;
    let mut statements = Statements::default();
    while let Some(frame) = Frame::read(&mut client).await? {
        if let Some(sql) = statements.executed(&frame) {
            let fault = plan.lock().pass(&sql);
            statements.fault = statements.fault.or(fault);
        }
        if matches!(frame.kind, Some(b'Q' | b'S')) {
            let fault = statements.fault.take();
            answers.lock().unwrap_or_else(PoisonError::into_inner).push_back(fault);
        }
        frame.write(&mut server).await?;
    }
    server.shutdown().await
}

/// The prepared statements of a connection.
#[derive(Default)]
struct Statements {
    prepared: HashMap<String, String>,
    bound: String,
    /// What the requests since the last "sync" have coming.
    fault: Option<Fault>,
}

impl Statements {
    /// The statement that a message makes the server run.
    fn executed(&mut self, frame: &Frame) -> Option<String> {
        let mut texts = frame.texts();
        match frame.kind {
            // Parse: name, text.
            Some(b'P') => {
                let (name, sql) = (texts.next()?, texts.next()?);
                self.prepared.insert(name, sql);
                None
            }
            // Bind: portal, name.
            Some(b'B') => {
                self.bound = texts.nth(1)?;
                None
            }
            Some(b'E') => self.prepared.get(&self.bound).cloned(),
            Some(b'Q') => texts.next(),
            _ => None,
        }
    }
}

async fn replies(
    server: impl AsyncRead + Unpin,
    mut client: impl AsyncWrite + Unpin,
    answers: Answers,
) -> io::Result<()> {
    let mut server = BufReader::new(server);
    // Until the connection is open, "ready for query" ends no request.
    while let Some(frame) = Frame::read(&mut server).await? {
        frame.write(&mut client).await?;
        if frame.kind == Some(b'Z') {
            break;
        }
    }
    while let Some(frame) = Frame::read(&mut server).await? {
        let is_end = frame.kind == Some(b'Z');
        let fault = {
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            let fault = answers.front().copied().flatten();
            if is_end {
                answers.pop_front();
            }
            fault
        };
        match fault {
            None => frame.write(&mut client).await?,
            Some(Fault::Cut) if is_end => return client.shutdown().await,
            Some(Fault::Error) if is_end => {
                Frame::error("this statement is made to fail after it has run").write(&mut client).await?;
                frame.write(&mut client).await?;
            }
            // What it answered is not passed on.
            Some(_) => {}
        }
    }
    client.shutdown().await
}

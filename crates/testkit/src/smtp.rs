//! A private mail server that keeps what it takes.
//!
//! ```no_run
//! # async fn example() -> testkit::Result<()> {
//! let smtp = testkit::Smtp::start().await?;
//! // ... send something to smtp.url() ...
//! assert_eq!(smtp.mails()?.len(), 1);
//! smtp.answer_recipients(Some("550 no such mailbox"))?;
//! # Ok(())
//! # }
//! ```

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::error::{Error, Result};
use crate::install;
use crate::port::Port;
use crate::process::{ChildProcess, Program};
use crate::{scratch, wait};

const SERVER: &str = include_str!("smtp/server.py");
/// How long the server may take to greet.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// A mail server on 127.0.0.1. Dropping it ends it.
#[derive(Debug)]
pub struct Smtp {
    process: Mutex<Arc<ChildProcess>>,
    port: Port,
    home: TempDir,
    libraries: std::ffi::OsString,
}

/// A mail as the server took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The sender that the client named.
    pub from: String,
    /// The recipients that the client named.
    pub to: Vec<String>,
    /// Headers and text.
    pub content: String,
}

impl Mail {
    /// The value of a header, in whatever case it is written. Folded lines are not joined.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.content.lines().take_while(|line| !line.is_empty());
        lines
            .filter_map(|line| line.split_once(": "))
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    }
}

impl Smtp {
    /// Starts a server, installing it first if need be.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be installed, and whatever keeps it from starting.
    pub async fn start() -> Result<Smtp> {
        let libraries = install::smtp_libraries().await?;
        let (port, home) = (Port::reserve()?, scratch::dir("smtp")?);
        fs::write(home.path().join("server.py"), SERVER).map_err(Error::io("write the mail server"))?;
        let process = launch(&port, &home, &libraries).await?;
        Ok(Smtp { process: Mutex::new(Arc::new(process)), port, home, libraries })
    }

    /// Where it listens, as `smtp://127.0.0.1:port`; the same after a restart.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.port.address())
    }

    /// Kills it without a word. What it took is kept.
    pub async fn kill9(&self) {
        let process = Arc::clone(&self.process.lock().unwrap_or_else(PoisonError::into_inner));
        process.kill9().await;
    }

    /// Starts it again on its port, with what it took.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    pub async fn restart(&self) -> Result<()> {
        self.kill9().await;
        let process = launch(&self.port, &self.home, &self.libraries).await?;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(process);
        Ok(())
    }

    /// Answers every recipient like this, `550 no such mailbox` for instance; takes them again with `None`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn answer_recipients(&self, reply: Option<&str>) -> Result<()> {
        let file = self.home.path().join("reply");
        match reply {
            Some(reply) => fs::write(&file, reply).map_err(Error::io("tell the mail server what to answer")),
            None if file.exists() => fs::remove_file(&file).map_err(Error::io("let the mail server take mails")),
            None => Ok(()),
        }
    }

    /// Everything that it took, in order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn mails(&self) -> Result<Vec<Mail>> {
        let file = self.home.path().join("mails.jsonl");
        if !file.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read_to_string(&file).map_err(Error::io("read the mails"))?;
        // The server may be writing the last line.
        let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(whole.map(|mail| read(&mail)).collect())
    }
}

fn read(mail: &Value) -> Mail {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Mail {
        from: text(&mail["from"]),
        to: mail["to"].as_array().into_iter().flatten().map(text).collect(),
        content: text(&mail["content"]),
    }
}

async fn launch(port: &Port, home: &TempDir, libraries: &std::ffi::OsStr) -> Result<ChildProcess> {
    let program = Program::new("smtp", "python3")
        .arg(home.path().join("server.py"))
        .arg(port.number().to_string())
        .arg(home.path())
        .env("PYTHONPATH", libraries);
    let process = ChildProcess::spawn(program)?;
    let greeted = wait::until("the greeting of the mail server", READY_LIMIT, || async {
        if let Some(status) = process.exit_status() {
            return Ok(Err(Error::Exited { name: "smtp".to_owned(), status, log: process.log_tail(15) }));
        }
        let mut stream = TcpStream::connect(port.address()).await.map_err(|error| error.to_string())?;
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).await.map_err(|error| error.to_string())?;
        if greeting == *b"220" { Ok(Ok(())) } else { Err(format!("{greeting:?}")) }
    });
    match greeted.await {
        Ok(ready) => ready.map(|()| process),
        Err(source) => Err(Error::NotReady { name: "smtp".to_owned(), source, log: process.log_tail(15) }),
    }
}

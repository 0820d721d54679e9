//! What a verb prints: text for people or JSON for programs on standard output, progress on standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// The form of what goes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON document, or one document a line where a verb prints as it goes.
    Json,
}

impl Format {
    /// Prints a whole report.
    ///
    /// # Errors
    /// When standard output cannot be written; a reader that went away ends the output quietly.
    pub fn print<R: Serialize + Display>(self, report: &R) -> io::Result<()> {
        match self {
            Self::Text => line(&report.to_string()),
            Self::Json => line(&serde_json::to_string_pretty(report)?),
        }
    }

    /// Prints one of many reports, each on a line of its own.
    ///
    /// # Errors
    /// As [`Format::print`].
    pub fn print_line<R: Serialize + Display>(self, report: &R) -> io::Result<()> {
        match self {
            Self::Text => line(&report.to_string()),
            Self::Json => line(&serde_json::to_string(report)?),
        }
    }
}

/// Writes `text` and a line end.
fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush()) {
        // `meshctl flows show ... | head` is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Says on standard error what is being done.
pub fn say(text: impl Display) {
    // Nobody is left to be told that standard error is closed.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A line on standard error that changes: in place on a terminal, else one line every few seconds.
#[derive(Debug, Default)]
pub struct Live {
    shown: bool,
    told: Option<tokio::time::Instant>,
}

impl Live {
    /// How often a reader that is no terminal is told.
    const TOLD_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

    /// Shows the line.
    pub fn show(&mut self, text: impl Display) {
        if io::stderr().is_terminal() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
            self.shown = true;
        } else if self.told.is_none_or(|told| told.elapsed() >= Self::TOLD_EVERY) {
            self.told = Some(tokio::time::Instant::now());
            say(text);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.shown {
            // Back to the first column, the line erased.
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// A count on standard error that is overwritten in place; silent where standard error is no terminal.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: u64,
    shown: Option<u64>,
}

impl Progress {
    /// Progress of `what` towards `total`.
    pub fn new(what: &'static str, total: u64) -> Self {
        Self { what, total, shown: None }
    }

    /// Shows `done` when it has moved by a percent.
    pub fn at(&mut self, done: u64) {
        let percent = (done * 100).checked_div(self.total).unwrap_or(100).min(100);
        if self.shown != Some(percent) && io::stderr().is_terminal() {
            let filled = usize::try_from(percent / 4).unwrap_or_default();
            let _ = write!(io::stderr().lock(), "\r{} [{:<25}] {percent:>3} %", self.what, "#".repeat(filled));
            self.shown = Some(percent);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            // Back to the first column, the line erased.
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

//! What to run, and how it is to be ended.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::account::Account;

/// A program with its arguments and environment, ready to be [spawned](super::ChildProcess::spawn).
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) clear_env: bool,
    pub(super) directory: Option<PathBuf>,
    pub(super) log: Option<PathBuf>,
    pub(super) account: Option<Account>,
    pub(super) end_signal: Signal,
}

impl Program {
    /// Names a program; `name` is what errors and the log file call it.
    pub fn new(name: impl Into<String>, path: impl AsRef<Path>) -> Program {
        Program {
            name: name.into(),
            path: path.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            clear_env: false,
            directory: None,
            log: None,
            account: None,
            end_signal: Signal::KILL,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Program {
        self.args.push(arg.into());
        self
    }

    /// Adds several arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Program {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable in the program's environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Program {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Gives the program only the variables set by [`env`](Program::env), and `PATH`.
    pub fn clear_env(mut self) -> Program {
        self.clear_env = true;
        self
    }

    /// Runs the program in `directory` instead of the current one.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Program {
        self.directory = Some(directory.into());
        self
    }

    /// Appends the program's output to this file, which outlives the test; the default is a scratch file.
    pub fn log_to(mut self, file: impl Into<PathBuf>) -> Program {
        self.log = Some(file.into());
        self
    }

    pub(crate) fn run_as(mut self, account: Option<Account>) -> Program {
        self.account = account;
        self
    }

    /// Ends the program with SIGQUIT before SIGKILL, for one that has children of its own to take along.
    pub(crate) fn end_with_quit(mut self) -> Program {
        self.end_signal = Signal::QUIT;
        self
    }
}

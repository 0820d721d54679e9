//! How a run ends, in the numbers that scripts rely on.

use std::process::ExitCode;

/// What `--help` says about exit codes.
pub const EXIT_CODES: &str = "Exit codes:
  0  done, and the answer is yes
  1  done, and the answer is no: drift, a failed check, an order that did not end right; or the work failed
  2  the command line or the files that it names cannot be used
  3  the mesh cannot be reached";

/// The answer of a verb that could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Yes,
    /// Exit code 1.
    No,
}

impl Outcome {
    /// [`Outcome::Yes`] when `answer` is true.
    pub fn from_answer(answer: bool) -> Self {
        if answer { Self::Yes } else { Self::No }
    }
}

/// A failure with an exit code of its own; any other error ends with 1.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Exit code 2: the caller has to change something.
    #[error("{0}")]
    Usage(String),
    /// Exit code 3: a server or a service did not answer.
    #[error("{0}")]
    Unreachable(String),
}

impl Failure {
    /// A usage error as `anyhow` carries it.
    pub fn usage(text: impl Into<String>) -> anyhow::Error {
        Self::Usage(text.into()).into()
    }

    /// An unreachable mesh as `anyhow` carries it.
    pub fn unreachable(text: impl Into<String>) -> anyhow::Error {
        Self::Unreachable(text.into()).into()
    }
}

/// The exit code of a run; an error is told on standard error, with its causes.
pub fn exit_code(result: anyhow::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Yes) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            match error.chain().find_map(|cause| cause.downcast_ref()) {
                Some(Failure::Usage(_)) => ExitCode::from(2),
                Some(Failure::Unreachable(_)) => ExitCode::from(3),
                None => ExitCode::from(1),
            }
        }
    }
}

//! The command line of a service: `<service> [serve|relay|migrate|describe] [--flags]`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{Arguments, Config, ConfigErrors, DatabaseUrl, KvArguments, ProcessConfig, unknown_variables};
use crate::failpoints;
use crate::schema::SchemaError;

/// How a process ends. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Did what it was told, a drain after a signal included.
    Done = 0,
    /// Failed at run time, or a drain was cut off.
    Failed = 1,
    /// The command line or the configuration cannot be used. Trying again gives the same.
    Usage = 2,
    /// The schema or the broker is not in a state to run on: migrate, or apply the streams, first.
    Refused = 3,
}

/// What the process was told to do.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// Run everything.
    Serve(Config),
    /// Publish committed facts, nothing else.
    Relay(Config),
    /// Bring the tables up to date.
    Migrate(DatabaseUrl),
    /// Print what the service is.
    Describe,
}

/// What the process of a service without a database was told to do.
#[derive(Debug)]
pub(crate) enum KvInvocation {
    /// Run everything.
    Serve(ProcessConfig),
    /// Print what the service is.
    Describe,
}

/// Why a start was refused that was well configured: something outside must be put right first.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

#[derive(Parser)]
#[command(after_help = "\
Each flag is also the environment variable shown with it; a flag wins. Unknown variables with the prefix MESH_ are an error.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 the schema or the broker is not in a state to run on.
The first SIGTERM or SIGINT finishes what is in flight within the drain time, the second ends at once.")]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    arguments: Arguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Subcommand)]
enum Command {
    /// Serve HTTP, handle facts and, unless MESH_RELAY=off, publish (the default)
    #[default]
    Serve,
    /// Publish committed facts from the outbox, and nothing else
    Relay,
    /// Bring the tables up to date and end; `serve` and `relay` never do
    Migrate,
    /// Print the service, its subscribers and the facts they hear as JSON
    Describe,
}

#[derive(Parser)]
#[command(after_help = "\
Each flag is also the environment variable shown with it; a flag wins. Unknown variables with the prefix MESH_ are an error.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 the broker is not in a state to run on.
The first SIGTERM or SIGINT finishes what is in flight within the drain time, the second ends at once.")]
struct KvCommandLine {
    #[command(subcommand)]
    command: Option<KvCommand>,
    #[command(flatten)]
    arguments: KvArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Subcommand)]
enum KvCommand {
    /// Handle facts and serve HTTP (the default)
    #[default]
    Serve,
    /// Print the service, its subscribers and the facts they hear as JSON
    Describe,
}

/// Reads the command line and the environment of the process.
///
/// # Errors
/// The code to end with, after the reason (or the help) was printed.
pub(crate) fn parse_process(name: &'static str, build: &'static str) -> Result<Invocation, ExitCode> {
    let invocation = parse(name, build, std::env::args_os(), variables()).map_err(|error| error.report(name))?;
    if let Invocation::Serve(config) | Invocation::Relay(config) = &invocation {
        failpoints::arm(&config.process.faults);
    }
    Ok(invocation)
}

/// The same for a service without a database.
///
/// # Errors
/// The code to end with, after the reason (or the help) was printed.
pub(crate) fn parse_kv_process(name: &'static str, build: &'static str) -> Result<KvInvocation, ExitCode> {
    let invocation = parse_kv(name, build, std::env::args_os(), variables()).map_err(|error| error.report(name))?;
    if let KvInvocation::Serve(config) = &invocation {
        failpoints::arm(&config.faults);
    }
    Ok(invocation)
}

fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
}

/// Why there is nothing to run.
#[derive(Debug)]
enum ParseError {
    /// The command line cannot be read, or asks for help.
    CommandLine(clap::Error),
    /// The configuration cannot be used.
    Config(ConfigErrors),
}

fn parse(
    name: &'static str,
    build: &'static str,
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Invocation, ParseError> {
    let CommandLine { command, arguments } = command_line(name, build, arguments)?;
    let unknown = unknown_variables::<Arguments>(variables);
    let invocation = match command.unwrap_or_default() {
        Command::Serve => arguments.check(unknown).map(Invocation::Serve),
        Command::Relay => arguments.check(unknown).map(Invocation::Relay),
        Command::Migrate => arguments.check_migration(unknown).map(Invocation::Migrate),
        Command::Describe => Ok(Invocation::Describe),
    };
    invocation.map_err(ParseError::Config)
}

fn parse_kv(
    name: &'static str,
    build: &'static str,
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<KvInvocation, ParseError> {
    let KvCommandLine { command, arguments } = command_line(name, build, arguments)?;
    let unknown = unknown_variables::<KvArguments>(variables);
    match command.unwrap_or_default() {
        KvCommand::Serve => arguments.check(unknown).map(KvInvocation::Serve).map_err(ParseError::Config),
        KvCommand::Describe => Ok(KvInvocation::Describe),
    }
}

fn command_line<C: CommandFactory + FromArgMatches>(
    name: &'static str,
    build: &'static str,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<C, ParseError> {
    let matches = C::command()
        .name(name)
        .bin_name(name)
        .version(build)
        .about(format!("The service {name} of the mesh"))
        .try_get_matches_from(arguments)
        .map_err(ParseError::CommandLine)?;
    C::from_arg_matches(&matches).map_err(ParseError::CommandLine)
}

impl ParseError {
    fn report(self, name: &str) -> ExitCode {
        match self {
            Self::CommandLine(error) => {
                // Help goes to standard output and is no failure; a closed pipe leaves nothing to tell.
                let _ = error.print();
                if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
            }
            Self::Config(errors) => {
                eprintln!("{name}: {errors}");
                Exit::Usage.into()
            }
        }
    }
}

/// The code to end with. An error is printed with its causes on one line.
pub(crate) fn finish(name: &str, outcome: Result<(), anyhow::Error>) -> ExitCode {
    let Err(error) = outcome else { return Exit::Done.into() };
    eprintln!("{name}: {error:#}");
    exit_of(&error).into()
}

fn exit_of(error: &anyhow::Error) -> Exit {
    let refused = error.chain().any(|cause| {
        cause.is::<Refused>()
            || cause
                .downcast_ref::<SchemaError>()
                .is_some_and(|schema| matches!(schema, SchemaError::Older { .. } | SchemaError::Changed { .. }))
    });
    let usage = error.is::<ConfigErrors>();
    match (refused, usage) {
        (true, _) => Exit::Refused,
        (false, true) => Exit::Usage,
        (false, false) => Exit::Failed,
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests;

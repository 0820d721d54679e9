//! The three services in one program, built with their fail-points: `shop-under-test orders serve`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let called_as = arguments.next().unwrap_or_default();
    match called_as.to_str() {
        Some("orders") => run(async {
            match orders::Settings::from_environment() {
                Ok(settings) => orders::service(settings).main().await,
                Err(error) => refuse(&error.to_string()),
            }
        }),
        Some("payments") => run(async { payments::service().main().await }),
        Some("inventory") => run(async { inventory::service().main().await }),
        _ => become_service(arguments),
    }
}

/// Runs itself again, in the same process, under the name of the service: a service reads the whole command line.
fn become_service(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(service) = arguments.next().filter(|name| name == "orders" || name == "payments" || name == "inventory")
    else {
        return refuse("the first argument must be orders, payments or inventory");
    };
    match std::env::current_exe() {
        // `exec` returns only when it failed.
        Ok(program) => refuse(&Command::new(program).arg0(service).args(arguments).exec().to_string()),
        Err(error) => refuse(&error.to_string()),
    }
}

fn run(service: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(service),
        Err(error) => refuse(&error.to_string()),
    }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("shop-under-test: {why}");
    ExitCode::from(2)
}

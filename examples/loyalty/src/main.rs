//! Entry point of the loyalty service.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    loyalty::service().main().await
}

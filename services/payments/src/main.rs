//! Entry point of the payments service.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    payments::service().main().await
}

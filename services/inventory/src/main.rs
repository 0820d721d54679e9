//! Entry point of the inventory service.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    inventory::service().main().await
}

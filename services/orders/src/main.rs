//! Entry point of the orders service.

use std::process::ExitCode;

use orders::Settings;

/// What the runtime ends with when it cannot be configured.
const USAGE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    match Settings::from_environment() {
        Ok(settings) => orders::service(settings).main().await,
        Err(error) => {
            eprintln!("orders: {error}");
            ExitCode::from(USAGE)
        }
    }
}

//! Entry point of the notifications service.

use std::process::ExitCode;

use notifications::Settings;

/// What the runtime ends with when it cannot be configured.
const USAGE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    match Settings::from_environment().and_then(notifications::service) {
        Ok(service) => service.main().await,
        Err(error) => {
            eprintln!("notifications: {error}");
            ExitCode::from(USAGE)
        }
    }
}

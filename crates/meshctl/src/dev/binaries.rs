//! The programs of the services: beside this one, built fresh where this one was built.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use tokio::process::Command;

use crate::outcome::Failure;
use crate::output::say;

/// The directory of the services' programs. In a checkout they are built first, so that they are the code that is there.
///
/// # Errors
/// When the build fails, or a program is not beside this one.
pub(super) async fn directory(services: &[&str], build: bool) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let directory = own.parent().map(Path::to_owned).unwrap_or_default();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if build && is_cargo_output(&directory) && checkout.join("Cargo.toml").is_file() {
        run_cargo(services, &directory, &checkout).await?;
    }
    match services.iter().find(|service| !directory.join(service).is_file()) {
        None => Ok(directory),
        Some(service) => Err(Failure::usage(format!(
            "there is no program `{service}` in {}: put it there, beside meshctl",
            directory.display()
        ))),
    }
}

/// Whether cargo puts its programs there.
fn is_cargo_output(directory: &Path) -> bool {
    directory.join(".cargo-lock").is_file() || directory.join(".fingerprint").is_dir()
}

async fn run_cargo(services: &[&str], directory: &Path, checkout: &Path) -> anyhow::Result<()> {
    say(format_args!("building {}, so that they are what is in the checkout", services.join(", ")));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // The directory of the profile `dev` is called `debug`; others are called after their profile.
    let profile = match directory.file_name() {
        Some(name) if name == OsStr::new("debug") => OsStr::new("dev"),
        Some(name) => name,
        None => OsStr::new("dev"),
    };
    let mut command = Command::new(cargo);
    command.arg("build").arg("--profile").arg(profile).current_dir(checkout);
    if !std::io::stderr().is_terminal() {
        command.arg("--quiet");
    }
    if let Some(target) = directory.parent() {
        command.arg("--target-dir").arg(target);
    }
    command.args(services.iter().flat_map(|service| ["--package", service]));
    let status = command.stdin(Stdio::null()).kill_on_drop(true).status().await.context("cannot run cargo")?;
    anyhow::ensure!(status.success(), "the services do not build ({status})");
    Ok(())
}

//! Who we are to NATS: a `.creds` file or a bare nkey seed, read again at every connect.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_nats::{Auth, AuthError, ConnectOptions};
use nkeys::KeyPair;

/// Why a credentials file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialsError {
    #[error("read NATS credentials {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("NATS credentials {path} hold neither an nkey seed nor a .creds document")]
    Shape { path: PathBuf },
    #[error("the nkey seed in {path} is damaged")]
    Seed { path: PathBuf, source: nkeys::error::Error },
}

/// What a credentials file says.
struct Credentials {
    jwt: Option<String>,
    key: KeyPair,
}

/// Options that sign the server's challenge with the key that the file holds at that moment. Checks the file once now, so
/// that a wrong path fails the start instead of the first connect.
pub(crate) fn connect_options(path: &Path) -> Result<ConnectOptions, CredentialsError> {
    read(path)?;
    let path: Arc<Path> = Arc::from(path);
    Ok(ConnectOptions::with_auth_callback(move |nonce| {
        let answer = answer(&path, &nonce);
        std::future::ready(answer)
    }))
}

fn answer(path: &Path, nonce: &[u8]) -> Result<Auth, AuthError> {
    let credentials = read(path).map_err(AuthError::new)?;
    let mut auth = Auth::new();
    auth.signature = Some(credentials.key.sign(nonce).map_err(AuthError::new)?);
    auth.nkey = Some(credentials.key.public_key());
    auth.jwt = credentials.jwt;
    Ok(auth)
}

fn read(path: &Path) -> Result<Credentials, CredentialsError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| CredentialsError::Read { path: path.to_owned(), source })?;
    let shape = || CredentialsError::Shape { path: path.to_owned() };
    let jwt = section(&text, "NATS USER JWT").map(str::to_owned);
    let seed = match &jwt {
        Some(_) => section(&text, "USER NKEY SEED").ok_or_else(shape)?,
        None => text.lines().map(str::trim).find(|line| line.starts_with("SU")).ok_or_else(shape)?,
    };
    let key = KeyPair::from_seed(seed).map_err(|source| CredentialsError::Seed { path: path.to_owned(), source })?;
    Ok(Credentials { jwt, key })
}

/// The one line between `-----BEGIN name-----` and the end marker of a `.creds` document.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| !(line.starts_with("---") && line.contains(name)));
    lines.next()?;
    lines.find(|line| !line.is_empty()).filter(|line| !line.starts_with("---"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_creds_document_and_a_bare_seed_are_told_apart() {
        let creds = "-----BEGIN NATS USER JWT-----\neyJ0.a.b\n------END NATS USER JWT------\n\n\
                     -----BEGIN USER NKEY SEED-----\nSUAX\n------END USER NKEY SEED------\n";
        assert_eq!(section(creds, "NATS USER JWT"), Some("eyJ0.a.b"));
        assert_eq!(section(creds, "USER NKEY SEED"), Some("SUAX"));
        assert_eq!(section("SUAX\n", "NATS USER JWT"), None);
    }

    #[test]
    fn a_missing_and_a_shapeless_file_are_named() {
        let missing = connect_options(Path::new("/nonexistent/orders.nk")).err().map(|error| error.to_string());
        assert_eq!(missing.as_deref(), Some("read NATS credentials /nonexistent/orders.nk"));
        let shapeless = read(Path::new("/dev/null")).err().map(|error| error.to_string());
        assert_eq!(
            shapeless.as_deref(),
            Some("NATS credentials /dev/null hold neither an nkey seed nor a .creds document")
        );
    }
}

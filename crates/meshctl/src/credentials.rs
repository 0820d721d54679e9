//! Who we are to NATS: a `.creds` document, or a file with a bare nkey seed.

use std::fs;
use std::path::Path;

use nkeys::KeyPair;

use crate::outcome::Failure;

/// What a credentials file says.
pub(crate) struct Credentials {
    /// The token of a decentralised set-up; none beside a bare seed.
    pub(crate) jwt: Option<String>,
    /// Signs the server's challenge.
    pub(crate) key: KeyPair,
}

impl Credentials {
    /// Reads a file of either form.
    ///
    /// # Errors
    /// A usage error when it is missing or of neither form. The text never holds a part of the file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("cannot read NATS credentials {}: {error}", path.display())))?;
        Self::parse(&text).ok_or_else(|| {
            Failure::usage(format!("{} holds neither an nkey seed nor a .creds document", path.display()))
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let jwt = section(text, "NATS USER JWT").map(str::to_owned);
        let seed = match jwt {
            Some(_) => section(text, "USER NKEY SEED")?,
            None => text.lines().map(str::trim).find(|line| line.starts_with("SU"))?,
        };
        Some(Self { jwt, key: KeyPair::from_seed(seed).ok()? })
    }
}

/// The line between `-----BEGIN name-----` and its end.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("BEGIN {name}");
    let mut lines = text.lines().map(str::trim).skip_while(|line| !line.contains(&begin)).skip(1);
    lines.find(|line| !line.is_empty()).filter(|line| !line.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_alone_and_a_creds_document_are_both_read() {
        let pair = KeyPair::new_user();
        let (seed, public_key) = (pair.seed().unwrap(), pair.public_key());
        let bare = Credentials::parse(&format!("{seed}\n")).unwrap();
        assert_eq!((bare.jwt, bare.key.public_key()), (None, public_key.clone()));
        let document = format!(
            "-----BEGIN NATS USER JWT-----\naa.bb.cc\n------END NATS USER JWT------\n\nkeep it secret\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let creds = Credentials::parse(&document).unwrap();
        assert_eq!((creds.jwt.as_deref(), creds.key.public_key()), (Some("aa.bb.cc"), public_key));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["", "password", "SUNOTASEED", "-----BEGIN NATS USER JWT-----\naa.bb.cc\n"] {
            assert!(Credentials::parse(text).is_none(), "{text:?}");
        }
    }
}

//! The hostile corpus: messages and the verdict that a reader in any language must come to.

use std::path::Path;

use envelope::{DecodeError, RawMessage};
use serde::Deserialize;

use crate::released::{files, read};

/// One message of the corpus.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What is hostile about it.
    about: String,
    subject: String,
    headers: Vec<(String, String)>,
    /// The body, when it is text.
    body: Option<String>,
    /// The body, when it is not.
    body_hex: Option<String>,
    /// `accepted`, or the reason to park.
    verdict: String,
    /// What an accepted body says.
    reads_as: Option<serde_json::Value>,
}

fn bytes(case: &Case) -> Vec<u8> {
    match (&case.body, &case.body_hex) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(hex)) => {
            let digits: Vec<u8> =
                hex.chars().filter_map(|c| c.to_digit(16)).filter_map(|d| u8::try_from(d).ok()).collect();
            digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
        }
        _ => panic!("{}: one of body and body_hex", case.about),
    }
}

#[test]
fn every_case_meets_its_verdict() {
    let cases = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile"));
    assert!(cases.len() >= 40, "the corpus is where it should be");
    for path in cases {
        let case: Case =
            serde_json::from_slice(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let raw = RawMessage { subject: case.subject.clone(), headers: case.headers.clone(), body: bytes(&case) };
        let cancelled = events::declare::<events::OrderCancelled>();
        let found = (cancelled.read)(&raw);
        let verdict = found.as_ref().map_or_else(DecodeError::reason, |_| "accepted");
        assert_eq!(verdict, case.verdict, "{}: {}: {found:?}", path.display(), case.about);
        assert_eq!(found.ok(), case.reads_as, "{}: {}", path.display(), case.about);
    }
}

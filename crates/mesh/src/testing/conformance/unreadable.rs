//! What cannot be read is parked with its reason and its bytes, and nothing else happens.

use anyhow::Context;
use envelope::{RawMessage, Subject, peek};
use uuid::Uuid;

use super::trial::Trial;
use super::{Outcome, Rule};
use crate::delivery::{ParkReason, Verdict};

pub(super) async fn check<G>(trial: &Trial<G>, messages: &[RawMessage]) -> Outcome {
    let before = trial.snapshot().await?;
    for message in messages {
        let garbled = garbled(message).context("a copy that cannot be decoded")?;
        let verdict = trial.deliver(&garbled, false).await;
        if !matches!(verdict, Verdict::Parked(ParkReason::Undecodable(_))) {
            return trial.broken(Rule::Kept, format!("a body that is no JSON ended as {verdict:?}"));
        }
        kept(trial, &garbled, &verdict).await?;

        let newer = newer(message).context("a copy of the next major")?;
        let verdict = trial.deliver(&newer, false).await;
        if verdict != Verdict::Parked(ParkReason::NewerVersion) {
            return trial.broken(Rule::Kept, format!("a version from the future ended as {verdict:?}"));
        }
        kept(trial, &newer, &verdict).await?;
    }
    match before.difference(&trial.snapshot().await?) {
        Some(difference) => trial.broken(Rule::Kept, difference),
        None => Ok(()),
    }
}

/// The same fact under another id, with a body that breaks off.
fn garbled(message: &RawMessage) -> anyhow::Result<RawMessage> {
    let mut metadata = peek(message)?;
    metadata.id = Uuid::from_u128(metadata.id.as_u128() ^ 1 << 32);
    Ok(RawMessage { headers: metadata.to_headers()?, body: b"{\"broken".to_vec(), ..message.clone() })
}

/// The same fact under another id, in the next major.
fn newer(message: &RawMessage) -> anyhow::Result<RawMessage> {
    let mut metadata = peek(message)?;
    metadata.id = Uuid::from_u128(metadata.id.as_u128() ^ 1 << 33);
    metadata.event_type.major += 1;
    let subject = Subject::new(&metadata.event_type, &metadata.key)?;
    let headers = metadata.to_headers()?;
    Ok(RawMessage { subject: subject.as_str().to_owned(), headers, body: message.body.clone() })
}

async fn kept<G>(trial: &Trial<G>, message: &RawMessage, verdict: &Verdict) -> Outcome {
    let id = trial.incoming(message, false).id();
    let letter = sqlx::query!(
        "select reason, headers, payload from mesh.dead_letter where event_id = $1 and subscriber = $2",
        id,
        trial.name(),
    )
    .fetch_optional(trial.pool())
    .await?;
    let Some(letter) = letter else { return trial.broken(Rule::Kept, "there is no dead letter") };
    let headers: Vec<(String, String)> = serde_json::from_str(&letter.headers).unwrap_or_default();
    let same = (letter.reason.as_str(), &headers, &letter.payload);
    if same == (verdict.detail(), &message.headers, &message.body) {
        return Ok(());
    }
    trial.broken(Rule::Kept, format!("the dead letter says `{}` and holds other bytes or headers", letter.reason))
}

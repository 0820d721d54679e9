//! The best that a bare client reaches on the same server: atomic batches of 1,000, and pipelined single publishes.

use std::time::Instant;

use async_nats::header::{HeaderMap, NATS_BATCH_COMMIT, NATS_BATCH_ID, NATS_BATCH_SEQUENCE, NATS_MESSAGE_ID};
use async_nats::jetstream;
use async_nats::jetstream::message::PublishMessage;
use async_nats::{Client, Request};
use futures_util::future::try_join_all;
use uuid::Uuid;

use crate::rig::Rig;

/// Messages of a batch: the server's limit.
const BATCH: usize = 1_000;

/// A body and headers of the size that the relay sends.
struct Message {
    headers: HeaderMap,
    payload: Vec<u8>,
}

impl Message {
    fn numbered(run: u128, n: usize) -> Self {
        let id = Uuid::from_u128((run << 64) | n as u128).to_string();
        let mut headers = HeaderMap::new();
        for name in 0..14 {
            headers.insert(format!("ce-attribute{name}"), "a value of about thirty bytes..");
        }
        headers.insert(NATS_MESSAGE_ID, id);
        Self { headers, payload: vec![b'x'; 490] }
    }
}

/// Messages a second with atomic batches, one at a time.
pub(crate) async fn batched(rig: &Rig, messages: usize) -> anyhow::Result<f64> {
    let client = rig.nats.admin().await?;
    let begun = Instant::now();
    for batch in 0..messages / BATCH {
        one_batch(&client, batch).await?;
    }
    Ok((messages / BATCH * BATCH) as f64 / begun.elapsed().as_secs_f64())
}

async fn one_batch(client: &Client, batch: usize) -> anyhow::Result<()> {
    let id = format!("raw-{batch}");
    for n in 0..BATCH {
        let mut message = Message::numbered(1, batch * BATCH + n);
        message.headers.insert(NATS_BATCH_ID, id.as_str());
        message.headers.insert(NATS_BATCH_SEQUENCE, (n + 1).to_string());
        let subject = format!("evt.raw.happened.v1.{}", n % 64);
        if n + 1 < BATCH {
            client.publish_with_headers(subject, message.headers, message.payload.into()).await?;
            continue;
        }
        message.headers.insert(NATS_BATCH_COMMIT, "1");
        let request = Request::new().headers(message.headers).payload(message.payload.into());
        let answer = client.send_request(subject, request).await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer.payload)?;
        anyhow::ensure!(answer["count"] == BATCH, "the batch was not stored: {answer}");
    }
    Ok(())
}

/// Messages a second with single publishes, 1,000 in flight.
pub(crate) async fn pipelined(rig: &Rig, messages: usize) -> anyhow::Result<f64> {
    let jetstream = jetstream::new(rig.nats.admin().await?);
    let begun = Instant::now();
    for chunk in 0..messages / BATCH {
        let mut acks = Vec::with_capacity(BATCH);
        for n in 0..BATCH {
            let message = Message::numbered(2, chunk * BATCH + n);
            let publish = PublishMessage::build().headers(message.headers).payload(message.payload.into());
            acks.push(jetstream.send_publish(format!("evt.raw.happened.v1.{}", n % 64), publish).await?);
        }
        try_join_all(acks.into_iter().map(IntoFuture::into_future)).await?;
    }
    Ok((messages / BATCH * BATCH) as f64 / begun.elapsed().as_secs_f64())
}

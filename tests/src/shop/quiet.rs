//! Waiting until nothing moves any more.

use std::time::Duration;

use anyhow::{Result, anyhow};
use async_nats::jetstream;
use serde_json::Value;
use testkit::wait;
use uuid::Uuid;

use super::{Service, Shop, forge};

const STREAM: &str = "EVT";
/// How long a fact may take into the stream.
const SAID_LIMIT: Duration = Duration::from_secs(60);
/// How long everything may take to come to rest after the last fault.
const QUIET_LIMIT: Duration = Duration::from_secs(120);

impl Shop {
    /// Waits until every order has ended, every outbox is empty, and every durable has been answered for everything that
    /// the stream holds.
    ///
    /// Nothing is in flight when the durables had no open delivery before the outboxes were found empty, and the stream
    /// has not grown since.
    ///
    /// # Errors
    /// When that is not so in time, with what still moved.
    pub async fn quiet(&self) -> Result<()> {
        let jetstream = jetstream::new(self.nats().admin().await?);
        let poll = || async {
            let before = idle_at(&jetstream).await?;
            self.nothing_to_send().await?;
            let after = idle_at(&jetstream).await?;
            if before == after { Ok(()) } else { Err(format!("the stream grew from {before} to {after}")) }
        };
        let settled = wait::until("the shop to come to rest", QUIET_LIMIT, poll).await;
        settled.map(drop).map_err(|error| anyhow!("{error}"))
    }

    /// Waits until the stream holds a fact of this type about an order.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn said(&self, order_id: Uuid, kind: &str) -> Result<()> {
        let subject = format!("evt.{kind}.{}", forge::bucket(&order_id.to_string()));
        let stream = jetstream::new(self.nats().admin().await?).get_stream(STREAM).await?;
        let poll = || async {
            let last = stream.get_last_raw_message_by_subject(&subject).await.map_err(|error| error.to_string())?;
            let body: Value = serde_json::from_slice(&last.payload).map_err(|error| error.to_string())?;
            if body["order_id"] == order_id.to_string() { Ok(()) } else { Err(body.to_string()) }
        };
        Ok(wait::until(&format!("{kind} about order {order_id}"), SAID_LIMIT, poll).await?)
    }

    async fn nothing_to_send(&self) -> Result<(), String> {
        let count = async |service: Service, what: &str, sql: &'static str| match self.servers.count(service, sql).await
        {
            Ok(0) => Ok(()),
            Ok(count) => Err(format!("{service} has {count} {what}")),
            Err(error) => Err(format!("{error:#}")),
        };
        for service in Service::ALL {
            count(service, "unsent facts", "select count(*) from mesh.outbox").await?;
        }
        count(Service::Orders, "pending orders", "select count(*) from orders where status = 'pending'").await
    }
}

/// The last sequence of the stream, when every durable has been answered for all of it.
async fn idle_at(jetstream: &jetstream::Context) -> Result<u64, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut stream = jetstream.get_stream(STREAM).await.map_err(|error| text(&error))?;
    let last = stream.info().await.map_err(|error| text(&error))?.state.last_sequence;
    for service in Service::ALL {
        let durable = stream.consumer_info(service.name()).await.map_err(|error| text(&error))?;
        let (waiting, open) = (durable.num_pending, durable.num_ack_pending);
        if waiting > 0 || open > 0 {
            return Err(format!("{waiting} facts wait for {service} and {open} are not answered"));
        }
    }
    Ok(last)
}

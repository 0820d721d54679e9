//! Tells the relays of the other replicas that facts were committed, and hears it from them. Plain NATS, lossy by design.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::broker::Broker;
use crate::context::ServiceContext;

/// At most one hint in this time, however many commits.
const DEBOUNCE: Duration = Duration::from_millis(5);

/// The pause before a lost subscription is made again; the poll of the relay covers the gap.
const RESUBSCRIBE: Duration = Duration::from_secs(5);

/// Sends and hears hints until `soft`.
pub(crate) async fn run(broker: Arc<Broker>, context: Arc<ServiceContext>, soft: CancellationToken) {
    let subject = format!("mesh.wake.{}", context.name);
    while !soft.is_cancelled() {
        let connection = broker.connection();
        let client = connection.client;
        let Ok(mut heard) = client.subscribe(subject.clone()).await else {
            pause(RESUBSCRIBE, &soft).await;
            continue;
        };
        loop {
            tokio::select! {
                hint = heard.next() => match hint {
                    Some(hint) if hint.payload == context.instance.as_bytes().as_slice() => {}
                    Some(_) => context.wake.peer_committed(),
                    None => {
                        pause(RESUBSCRIBE, &soft).await;
                        break;
                    }
                },
                () = broker.replaced(connection.generation) => break,
                // While disconnected nothing takes the hint, and waiting for room would hold up the shutdown.
                () = context.wake.for_peers(), if broker.events().is_connected() => {
                    let own = bytes::Bytes::copy_from_slice(context.instance.as_bytes());
                    if let Err(error) = client.publish(subject.clone(), own).await {
                        tracing::debug!(%error, "a wake-up was not sent; the poll finds the facts");
                    }
                    pause(DEBOUNCE, &soft).await;
                }
                () = soft.cancelled() => return,
            }
        }
    }
}

async fn pause(time: Duration, soft: &CancellationToken) {
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = soft.cancelled() => {}
    }
}

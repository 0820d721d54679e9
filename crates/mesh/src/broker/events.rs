//! What the NATS client reports outside of any call: connection changes and refusals.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::{Event, ServerError};
use tokio::sync::watch;

/// Collects the client's events. The client drops an event when its callback blocks, so recording one never waits.
///
/// A refused permission is visible here only: the publish itself looks like a time-out.
#[derive(Debug, Default)]
pub(crate) struct BrokerEvents {
    connected: watch::Sender<bool>,
    /// How often the connection was lost.
    disconnects: watch::Sender<u64>,
    lame_duck: AtomicBool,
    /// Subjects that the server refused to let us publish to, with its words.
    refused: Mutex<HashMap<String, String>>,
}

impl BrokerEvents {
    pub(super) fn record(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.connected.send_replace(true);
                self.lame_duck.store(false, Ordering::Release);
                tracing::info!("connected to NATS");
            }
            Event::Disconnected | Event::Closed => {
                self.connected.send_replace(false);
                self.disconnects.send_modify(|count| *count += 1);
                tracing::warn!(%event, "the NATS connection is gone");
            }
            Event::LameDuckMode => {
                self.lame_duck.store(true, Ordering::Release);
                tracing::warn!("the NATS server is going to shut down");
            }
            Event::ServerError(error) => self.record_refusal(error),
            Event::SlowConsumer(_) | Event::ClientError(_) | Event::Draining => {
                tracing::warn!(%event, "the NATS client reports trouble");
            }
        }
    }

    fn record_refusal(&self, error: &ServerError) {
        tracing::error!(%error, "the NATS server refused an operation");
        if let ServerError::Other(text) = error
            && let Some(subject) = refused_publish(text)
            && let Ok(mut refused) = self.refused.lock()
        {
            refused.insert(subject.to_owned(), text.clone());
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// True once after the server announced that it is going away.
    pub(crate) fn take_lame_duck(&self) -> bool {
        self.lame_duck.swap(false, Ordering::AcqRel)
    }

    /// Grows with every lost connection.
    pub(crate) fn disconnects(&self) -> u64 {
        *self.disconnects.borrow()
    }

    /// Waits until the connection is lost more often than `seen` times.
    pub(crate) async fn disconnected_since(&self, seen: u64) {
        // The sender lives as long as `self`.
        let _ = self.disconnects.subscribe().wait_for(|count| *count > seen).await;
    }

    /// Waits until the connection is up.
    pub(crate) async fn connected(&self) {
        let _ = self.connected.subscribe().wait_for(|connected| *connected).await;
    }

    /// The server's words if it refused a publish to `subject` since the last call for it.
    pub(crate) fn take_refusal(&self, subject: &str) -> Option<String> {
        self.refused.lock().ok()?.remove(subject)
    }
}

/// The subject in `Permissions Violation for Publish to "evt.a.b.v1.7"`.
fn refused_publish(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    if !lower.contains("permissions violation for publish") {
        return None;
    }
    text.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_publish_names_its_subject_once() {
        let events = BrokerEvents::default();
        let text = "Permissions Violation for Publish to \"evt.orders.order_created.v1.7\"";
        events.record(&Event::ServerError(ServerError::Other(text.to_owned())));
        assert_eq!(events.take_refusal("evt.orders.order_created.v1.7").as_deref(), Some(text));
        assert_eq!(events.take_refusal("evt.orders.order_created.v1.7"), None);
    }

    #[test]
    fn other_refusals_name_no_publish() {
        assert_eq!(refused_publish("Permissions Violation for Subscription to \"_INBOX.x\""), None);
        assert_eq!(refused_publish("maximum payload exceeded"), None);
    }
}

//! What the NATS client reports outside of any call: connection changes and refusals.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_nats::{Event, ServerError};
use tokio::sync::watch;

/// Collects the client's events. The client drops an event when its callback blocks, so recording one never waits.
///
/// A refused permission is visible here only: the publish itself looks like a time-out.
#[derive(Debug, Default)]
pub(crate) struct BrokerEvents {
    /// Which client in a row is listened to.
    generation: AtomicU64,
    connected: watch::Sender<bool>,
    /// How often the connection was lost.
    disconnects: watch::Sender<u64>,
    lame_duck: AtomicBool,
    refusals: watch::Sender<Refusals>,
}

/// Publishes that the server refused for want of a permission.
#[derive(Debug, Default)]
struct Refusals {
    count: u64,
    /// By subject: which refusal was the last, and the server's words.
    last: HashMap<String, (u64, String)>,
}

impl BrokerEvents {
    /// Records what the client of `generation` reports. A client that was replaced may live on for a while, and what it
    /// reports then is not about the connection in use.
    pub(super) fn record(&self, generation: u64, event: &Event) {
        if generation != self.generation.load(Ordering::Acquire) {
            return;
        }
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
        {
            self.refusals.send_modify(|refusals| {
                refusals.count += 1;
                refusals.last.insert(subject.to_owned(), (refusals.count, text.clone()));
            });
        }
    }

    /// Listens to the client of `generation` from here on, which is not connected yet.
    pub(super) fn listen_to(&self, generation: u64) {
        self.generation.store(generation, Ordering::Release);
        self.connected.send_replace(false);
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

    /// Grows with every publish that the server refused.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.borrow().count
    }

    /// Waits until the server refuses more publishes than `seen`; returns how many it has refused by then.
    pub(crate) async fn refused_since(&self, seen: u64) -> u64 {
        // The sender lives as long as `self`.
        self.refusals
            .subscribe()
            .wait_for(|refusals| refusals.count > seen)
            .await
            .map_or(seen, |refusals| refusals.count)
    }

    /// Waits until the server refuses a publish to `subject`, after it had refused `seen` others; returns its words.
    pub(crate) async fn refused(&self, seen: u64, subject: &str) -> String {
        let mut counted = seen;
        loop {
            if let Some(words) = self.refusal(seen, subject) {
                return words;
            }
            counted = self.refused_since(counted).await;
        }
    }

    /// The server's words if it refused a publish to `subject` after it had refused `seen` others.
    pub(crate) fn refusal(&self, seen: u64, subject: &str) -> Option<String> {
        let refusals = self.refusals.borrow();
        refusals.last.get(subject).filter(|(number, _)| *number > seen).map(|(_, words)| words.clone())
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
    fn a_refused_publish_is_known_by_its_subject_to_those_who_published_before_it() {
        let events = BrokerEvents::default();
        let subject = "evt.orders.order_created.v1.7";
        let text = format!("Permissions Violation for Publish to \"{subject}\"");
        let seen = events.refusals();
        events.record(0, &Event::ServerError(ServerError::Other(text.clone())));
        assert_eq!(events.refusal(seen, subject), Some(text));
        assert_eq!(events.refusal(seen, "evt.orders.order_created.v1.8"), None);
        assert_eq!(events.refusal(events.refusals(), subject), None, "it says nothing about a later publish");
    }

    #[test]
    fn a_client_that_was_replaced_is_not_listened_to() {
        let events = BrokerEvents::default();
        events.listen_to(1);
        events.record(1, &Event::Connected);
        events.record(0, &Event::Closed);
        assert!(events.is_connected(), "the replaced client closed, not the one in use");
        assert_eq!(events.disconnects(), 0);
    }

    #[test]
    fn other_refusals_name_no_publish() {
        assert_eq!(refused_publish("Permissions Violation for Subscription to \"_INBOX.x\""), None);
        assert_eq!(refused_publish("maximum payload exceeded"), None);
    }
}

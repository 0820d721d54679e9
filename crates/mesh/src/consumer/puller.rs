//! One pull on the durable: its requests and what they yield.
//!
//! Requests are made here and not by the client's own message stream, because that can only be dropped: the server would
//! go on sending for a request until it notices, and each such message would come again only after `ack_wait`.

use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::BatchConfig;
use async_nats::{StatusCode, Subject, Subscriber};
use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use crate::broker::{BrokerEvents, Connection};

/// How long a request waits at the server. Short, because a process that stops has to wait for its requests to end.
const EXPIRES: Duration = Duration::from_secs(1);

/// How often an idle request must hear from the server: at most half of its life.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// Silence after which a request is taken for lost.
const SILENCE_MAX: Duration = Duration::from_secs(4);

/// Messages per request; the next one is made when half of it has come.
const REQUEST_MESSAGES: usize = 128;

/// How long the end of a pull may take: until the last request has expired, and the server has said so.
const FINISH_MAX: Duration = Duration::from_secs(2);

/// Why a pull has to be built again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// The label under which it is counted.
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

/// A running pull on a durable.
pub(super) struct Puller {
    pub(super) consumer: PullConsumer,
    jetstream: jetstream::Context,
    subscriber: Subscriber,
    inbox: Subject,
    /// Messages that the server may still send for the requests made.
    outstanding: usize,
    heard: Instant,
    /// How often the connection had been lost when the pull began.
    disconnects: u64,
}

impl Puller {
    /// Begins a pull on a durable that was looked up over `connection`; `disconnects` is from before that.
    pub(super) async fn begin(
        connection: &Connection,
        consumer: PullConsumer,
        disconnects: u64,
    ) -> Result<Self, async_nats::SubscribeError> {
        let inbox = Subject::from(connection.client.new_inbox());
        let subscriber = connection.client.subscribe(inbox.clone()).await?;
        let jetstream = connection.jetstream.clone();
        Ok(Self { consumer, jetstream, subscriber, inbox, outstanding: 0, heard: Instant::now(), disconnects })
    }

    /// Waits for the next message. Nothing is lost when the wait is cancelled.
    pub(super) async fn next(&mut self, events: &BrokerEvents) -> Result<jetstream::Message, Trouble> {
        loop {
            self.request().await?;
            let silent_at = self.heard + SILENCE_MAX;
            let received = tokio::select! {
                // What has arrived is read before anything else is believed.
                biased;
                received = self.subscriber.next() => received,
                () = events.disconnected_since(self.disconnects) => {
                    return Err(trouble("disconnected", "the connection was lost, and the requests with it"));
                }
                () = tokio::time::sleep_until(silent_at) => {
                    return Err(trouble("missing_heartbeat", "the server said nothing about the requests"));
                }
            };
            let Some(message) = received else {
                return Err(trouble("ended", "the subscription ended, which means that the client is gone"));
            };
            self.heard = Instant::now();
            if let Some(message) = self.take(message)? {
                return Ok(message);
            }
        }
    }

    /// Makes a request when there is room for one.
    async fn request(&mut self) -> Result<(), Trouble> {
        if self.outstanding > REQUEST_MESSAGES / 2 {
            return Ok(());
        }
        let request = BatchConfig {
            batch: REQUEST_MESSAGES,
            expires: Some(EXPIRES),
            idle_heartbeat: HEARTBEAT,
            ..BatchConfig::default()
        };
        let sent = self.consumer.request_batch(request, self.inbox.clone()).await;
        sent.map_err(|error| trouble("error", &error.to_string()))?;
        self.outstanding += REQUEST_MESSAGES;
        self.heard = Instant::now();
        Ok(())
    }

    /// Tells messages from what the server says about the requests.
    fn take(&mut self, message: async_nats::Message) -> Result<Option<jetstream::Message>, Trouble> {
        let said = message.description.clone().unwrap_or_default();
        match message.status {
            None | Some(StatusCode::OK) => {
                self.outstanding = self.outstanding.saturating_sub(1);
                return Ok(Some(jetstream::Message { message, context: self.jetstream.clone() }));
            }
            Some(StatusCode::IDLE_HEARTBEAT) => {}
            // The request has expired, with so many messages left of it.
            Some(StatusCode::TIMEOUT | StatusCode::NOT_FOUND) => {
                let left = message.headers.as_ref().and_then(|headers| headers.get("Nats-Pending-Messages"));
                let left = left.and_then(|left| left.as_str().parse().ok()).unwrap_or(REQUEST_MESSAGES);
                self.outstanding = self.outstanding.saturating_sub(left);
            }
            Some(StatusCode::REQUEST_TERMINATED) if said == "Consumer Deleted" => {
                return Err(trouble("consumer_deleted", &said));
            }
            Some(StatusCode::REQUEST_TERMINATED) if said.starts_with("Exceeded") => {
                return Err(trouble("request_limit", &said));
            }
            Some(StatusCode::NO_RESPONDERS) => return Err(trouble("no_responders", "nobody serves the stream")),
            // A new leader, a server that shuts down: whatever the requests were, they are gone.
            Some(status) => return Err(trouble("error", &format!("{status} {said}"))),
        }
        Ok(None)
    }

    /// Ends the pull in order: makes no more requests and returns what still comes for those that were made.
    pub(super) async fn finish(&mut self) -> Vec<jetstream::Message> {
        let mut rest = Vec::new();
        let deadline = Instant::now() + FINISH_MAX;
        while self.outstanding > 0 {
            let Ok(Some(message)) = timeout_at(deadline, self.subscriber.next()).await else { break };
            match self.take(message) {
                Ok(message) => rest.extend(message),
                Err(_) => break,
            }
        }
        rest
    }
}

fn trouble(reason: &'static str, detail: &str) -> Trouble {
    Trouble { reason, detail: detail.to_owned() }
}

//! Sending rows to JetStream and learning what became of each. Nothing here touches the database.

use std::collections::{HashMap, HashSet};
use std::future::IntoFuture;
use std::sync::Arc;

use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::batch::{self, BatchEnd};
use super::method::{BATCH_ROWS_MAX, Method, MethodChoice};
use super::outcome::{self, Outcome};
use super::row::Row;
use crate::broker::{Broker, BrokerEvents};
use crate::context::ServiceContext;
use crate::failpoints;

/// Publishes rounds of rows.
#[derive(Debug)]
pub(super) struct Publisher {
    broker: Arc<Broker>,
    context: Arc<ServiceContext>,
    methods: MethodChoice,
    /// Nobody knows what became of the last batch.
    batch_in_doubt: bool,
    /// Acknowledgements that never came. Each leaks an entry in the client, so after many the client is replaced.
    lost_acks: u64,
}

/// Lost acknowledgements after which the client is replaced (about 7 MB of leaked entries).
const LOST_ACKS_MAX: u64 = 10_000;

/// A round's outcomes, one for each row, and the way it went.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) method: Method,
    pub(super) outcomes: Vec<Outcome>,
}

impl Publisher {
    pub(super) fn new(broker: Arc<Broker>, context: Arc<ServiceContext>) -> Self {
        Self { broker, context, methods: MethodChoice::default(), batch_in_doubt: false, lost_acks: 0 }
    }

    /// Publishes the rows, which are in sequence order for each key. Returns when the outcome of every row is known to be
    /// stored, refused, or unknown; nothing is left in flight.
    pub(super) async fn publish(&mut self, rows: &[Row]) -> Round {
        let begun = Instant::now();
        let wanted =
            if self.batch_in_doubt { Method::Pipelined } else { self.methods.choose(rows.len().min(BATCH_ROWS_MAX)) };
        let round = match wanted {
            Method::Batch => self.batch(rows).await,
            Method::Pipelined => self.pipelined(rows).await,
        };
        if round.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Stored(_))) {
            self.methods.measured(round.method, rows.len(), begun.elapsed());
        }
        round
    }

    /// One atomic batch; single messages when the server does not take it as one (a known id in it, a refused subject).
    async fn batch(&mut self, rows: &[Row]) -> Round {
        let id = self.context.clock.draw_id().to_string();
        match batch::publish(&self.broker, &id, rows).await {
            BatchEnd::Stored(first) => {
                let outcomes = (first..).take(rows.len()).map(Outcome::Stored).collect();
                Round { method: Method::Batch, outcomes }
            }
            BatchEnd::Unknown(why) => {
                // The rows are sent again one by one: if they are stored, a batch of known ids would be refused whole, and
                // if one of them is at fault, only that way tells which.
                self.batch_in_doubt = true;
                tracing::warn!(why, rows = rows.len(), "the outcome of an atomic batch is unknown");
                let outcomes = vec![Outcome::Unknown(why); rows.len()];
                Round { method: Method::Batch, outcomes }
            }
            BatchEnd::Refused(why) => {
                tracing::debug!(why, rows = rows.len(), "the batch was refused as a whole; publishing row by row");
                self.pipelined(rows).await
            }
        }
    }

    /// Waves of single messages: in each, the first unpublished row of every key. After a failure, the later rows of that
    /// key are held back, so that no retry is ever stored behind a later row.
    async fn pipelined(&mut self, rows: &[Row]) -> Round {
        let mut outcomes = vec![Outcome::HeldBack; rows.len()];
        let mut failed: HashSet<&str> = HashSet::new();
        for wave in waves(rows) {
            let wave: Vec<usize> =
                wave.into_iter().filter(|&index| !failed.contains(rows[index].key.as_str())).collect();
            for (index, outcome) in self.wave(rows, &wave).await {
                if !matches!(outcome, Outcome::Stored(_)) {
                    failed.insert(&rows[index].key);
                }
                outcomes[index] = outcome;
            }
        }
        Round { method: Method::Pipelined, outcomes }
    }

    async fn wave(&mut self, rows: &[Row], wave: &[usize]) -> Vec<(usize, Outcome)> {
        let jetstream = self.broker.connection().jetstream;
        let since = Since::now(self.broker.events());
        let mut settled = Vec::with_capacity(wave.len());
        let mut open = HashSet::with_capacity(wave.len());
        let sent = FuturesUnordered::new();
        for &index in wave {
            match rows[index].wire_headers() {
                Err(error) => settled.push((index, Outcome::Refused(error.to_string()))),
                Ok(headers) => {
                    let message = PublishMessage::build().payload(rows[index].payload.clone()).headers(headers);
                    match jetstream.send_publish(rows[index].subject.clone(), message).await {
                        Ok(ack) => {
                            open.insert(index);
                            sent.push(ack.into_future().map(move |ack| (index, ack)));
                        }
                        Err(error) => settled.push((index, outcome::from_error(&error))),
                    }
                }
            }
            failpoints::hit("relay.mid_batch");
        }
        failpoints::hit("relay.after_publish_before_ack");
        self.acknowledgements(rows, sent, open, since, &mut settled).await;
        if settled.iter().any(|(_, outcome)| matches!(outcome, Outcome::Stored(_))) {
            self.batch_in_doubt = false;
        }
        settled
    }

    /// Waits until something is known about every row that was sent.
    async fn acknowledgements(
        &mut self,
        rows: &[Row],
        mut sent: FuturesUnordered<impl Future<Output = (usize, Result<PublishAck, PublishError>)>>,
        mut open: HashSet<usize>,
        since: Since,
        settled: &mut Vec<(usize, Outcome)>,
    ) {
        let events = Arc::clone(self.broker.events());
        let disconnected = events.disconnected_since(since.disconnects);
        let refused = events.refused_since(since.refusals);
        tokio::pin!(disconnected, refused);
        while !open.is_empty() {
            tokio::select! {
                Some((index, ack)) = sent.next() => if open.remove(&index) {
                    settled.push((index, self.judge(&rows[index], ack)));
                },
                // A refused publish is never acknowledged: waiting out the time-out would hold up the other keys.
                seen = &mut refused => {
                    refused.set(events.refused_since(seen));
                    open.retain(|&index| match events.refusal(since.refusals, &rows[index].subject) {
                        Some(words) => {
                            self.lost_acks += 1;
                            settled.push((index, Outcome::Refused(words)));
                            false
                        }
                        None => true,
                    });
                }
                // No acknowledgement crosses a lost connection either.
                () = &mut disconnected => {
                    self.lost_acks += open.len() as u64;
                    let lost = || Outcome::Unknown("the connection was lost before the acknowledgement".to_owned());
                    settled.extend(open.drain().map(|index| (index, lost())));
                }
            }
        }
    }

    fn judge(&mut self, row: &Row, ack: Result<PublishAck, PublishError>) -> Outcome {
        match ack {
            Ok(ack) => outcome::from_ack(&ack, row.lost_sequence),
            Err(error) => {
                self.lost_acks += 1;
                outcome::from_error(&error)
            }
        }
    }

    /// Replaces the client when it has leaked too much, and says whether it did.
    pub(super) async fn replace_leaky_client(&mut self) -> bool {
        if self.lost_acks < LOST_ACKS_MAX {
            return false;
        }
        self.lost_acks = 0;
        let generation = self.broker.connection().generation;
        if let Err(error) = self.broker.replace(generation).await {
            tracing::warn!(%error, "the NATS client could not be replaced");
        }
        true
    }
}

/// What the client had reported when a publish began: what it reports after it is about that publish, or a later one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since {
    pub(super) disconnects: u64,
    pub(super) refusals: u64,
}

impl Since {
    pub(super) fn now(events: &BrokerEvents) -> Self {
        Self { disconnects: events.disconnects(), refusals: events.refusals() }
    }
}

/// Splits rows into waves with each key at most once per wave, keeping each key's order.
fn waves(rows: &[Row]) -> Vec<Vec<usize>> {
    let mut depth: HashMap<&str, usize> = HashMap::new();
    let mut waves: Vec<Vec<usize>> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let wave = depth.entry(&row.key).and_modify(|wave| *wave += 1).or_insert(0);
        if *wave == waves.len() {
            waves.push(Vec::new());
        }
        waves[*wave].push(index);
    }
    waves
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;

    fn row(seq: i64, key: &str) -> Row {
        Row {
            bucket_group: 0,
            seq,
            event_id: Uuid::from_u128(seq.unsigned_abs().into()),
            subject: String::new(),
            key: key.to_owned(),
            key_version: seq,
            headers: "[]".to_owned(),
            payload: Bytes::new(),
            occurred_at: OffsetDateTime::UNIX_EPOCH,
            attempts: 0,
            lost_sequence: None,
            epoch: 1,
        }
    }

    #[test]
    fn a_wave_holds_each_key_once_and_keeps_its_order() {
        let rows: Vec<Row> = [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "b")].map(|(seq, key)| row(seq, key)).into();
        assert_eq!(waves(&rows), [vec![0, 2], vec![1, 4], vec![3]]);
        assert_eq!(waves(&[]), Vec::<Vec<usize>>::new());
    }
}

//! What the relay does with the outcomes of a round and with finished moves.

use tokio::time::Instant;

use super::blocked::ATTEMPTS_MAX;
use super::keeper::Held;
use super::method::Method;
use super::outcome::Outcome;
use super::publish::Round;
use super::row::Row;
use super::settle::{self, Acknowledged, StreamIdentity};
use super::settler::Moved;
use super::{Relay, TurnError};
use crate::telemetry::metrics::{self, PublishMethod};

/// What a round says as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RoundEnd {
    /// Every row was stored.
    Stored,
    /// Some rows were stored or refused, others not.
    Partly,
    /// No row was stored and none refused: the broker as a whole is in trouble, and no key is to blame.
    Nothing,
}

impl Relay {
    /// Acts on the outcomes of a round.
    pub(super) async fn conclude(
        &mut self,
        identity: StreamIdentity,
        rows: &[Row],
        round: Round,
    ) -> Result<RoundEnd, TurnError> {
        let mut stored = Vec::with_capacity(rows.len());
        let mut unknown = Vec::new();
        let mut refused = Vec::new();
        let mut remembered = Vec::new();
        let mut given_back = Vec::new();
        let now = self.context.clock.now().as_offset();
        for (row, outcome) in rows.iter().zip(round.outcomes) {
            match outcome {
                Outcome::Stored(sequence) => {
                    self.reader.blocked.stored(&row.key);
                    // What comes back after days says nothing about how fast facts are published.
                    if row.lost_sequence.is_none() {
                        metrics::publish_latency((now - row.occurred_at).try_into().unwrap_or_default());
                    }
                    stored.push(acknowledged(row, sequence));
                    continue;
                }
                Outcome::Unknown(why) => unknown.push((row, why)),
                Outcome::Refused(why) => refused.push((row, why)),
                Outcome::Remembered => remembered.push(row),
                Outcome::HeldBack => {}
            }
            given_back.push(row.seq);
        }
        metrics::relay_published(published_as(round.method), stored.len() as u64);
        let is_silent = stored.is_empty() && refused.is_empty() && remembered.is_empty();
        let end = match (stored.len() == rows.len(), is_silent) {
            (true, _) => RoundEnd::Stored,
            (false, false) => RoundEnd::Partly,
            (false, true) => RoundEnd::Nothing,
        };
        if !stored.is_empty() {
            let moved = self.settler.start(identity, stored).await;
            self.take_in(moved);
        }
        self.reader.give_back(given_back);
        if let Some((_, why)) = unknown.first() {
            metrics::relay_failed("unknown");
            self.context.ops.relay_trouble(self.context.clock.now(), why);
            tracing::warn!(rows = unknown.len(), why, "the outcome of publishes is unknown; they are sent again");
        }
        if end == RoundEnd::Partly {
            let (now, scale) = (Instant::now(), self.jitter());
            unknown.iter().for_each(|(row, _)| self.reader.blocked.failed(&row.key, now, scale));
        }
        remembered.into_iter().for_each(|row| self.wait_out(row));
        for (row, why) in refused {
            self.refuse(row, &why).await?;
        }
        Ok(end)
    }

    /// A row that the server remembers and does not hold: its key waits for the end of the duplicate window.
    fn wait_out(&mut self, row: &Row) {
        metrics::relay_failed("remembered");
        tracing::debug!(event = %row.event_id, "the server remembers a fact that it has lost");
        let scale = self.jitter();
        self.reader.blocked.failed(&row.key, Instant::now(), scale);
    }

    /// A row that the broker refused: counted, held back with its key, put aside after the attempts.
    async fn refuse(&mut self, row: &Row, why: &str) -> Result<(), TurnError> {
        metrics::relay_failed("refused");
        self.context.ops.relay_trouble(self.context.clock.now(), why);
        let attempts = row.attempts + 1;
        tracing::error!(event = %row.event_id, subject = row.subject, attempts, why, "the broker refused a fact");
        if attempts >= ATTEMPTS_MAX {
            settle::move_dead(&self.pool, self.context.instance, row, why).await?;
            self.reader.blocked.died(&row.key);
        } else {
            // Held back before it is counted: the count may fail.
            let scale = self.jitter();
            self.reader.blocked.failed(&row.key, Instant::now(), scale);
            settle::count_refusal(&self.pool, self.context.instance, row, why).await?;
        }
        Ok(())
    }

    fn jitter(&self) -> f64 {
        0.5 + self.context.clock.random() / 2.0
    }

    /// What was read ahead rests on the round before it: it may hold later rows of a key whose earlier row was not stored.
    pub(super) fn drop_ahead(&mut self) {
        let ahead = std::mem::take(&mut self.ahead);
        self.reader.give_back(ahead.iter().map(|row| row.seq));
    }

    pub(super) fn take_in(&mut self, moved: Vec<Moved>) {
        for moved in moved {
            if moved.complete {
                self.reader.settled(moved.sequences);
            } else {
                self.reader.give_back(moved.sequences);
                self.forget("acknowledged rows did not leave the outbox: a lease was lost");
            }
        }
    }

    /// Drops everything that rests on the leases, and asks for them anew.
    pub(super) fn forget(&mut self, why: &'static str) {
        tracing::warn!(why, "the relay reads anew");
        metrics::relay_failed("lease_lost");
        self.drop_ahead();
        self.reader.set_leases(&[]);
        self.held = Held { renewal: self.held.renewal, ..Held::default() };
        self.shared.doubt();
    }
}

fn acknowledged(row: &Row, stream_sequence: i64) -> Acknowledged {
    Acknowledged { bucket_group: row.bucket_group, seq: row.seq, epoch: row.epoch, stream_sequence }
}

fn published_as(method: Method) -> PublishMethod {
    match method {
        Method::Pipelined => PublishMethod::Single,
        Method::Batch => PublishMethod::Batch,
    }
}

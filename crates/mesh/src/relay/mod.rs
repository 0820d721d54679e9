//! Publishes committed facts: claim, publish, move, under leases shared with the other replicas.
//!
//! The loop owns no transaction across a network call: a claim is one statement, the publish happens outside the database,
//! the move is one statement fenced by the lease's epoch. While one round is being published, the next is read and the
//! one before it is moved.

mod batch;
mod blocked;
mod claim;
mod conclude;
mod floor;
mod keeper;
mod leases;
mod method;
mod outcome;
mod publish;
mod reader;
mod row;
mod settle;
mod settler;

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::broker::{Broker, STREAM};
use crate::clock::jittered;
use crate::context::ServiceContext;
use crate::failpoints;
use crate::failure::Backoff;
use crate::telemetry::metrics::{self, RelayState};
use conclude::RoundEnd;
use keeper::{Held, Shared};
use publish::Publisher;
use reader::Reader;
use row::Row;
use settle::StreamIdentity;
use settler::Settler;

/// The poll that is the truth behind all wake-ups: doubling from 5 ms to 100 ms while nothing comes.
const POLL: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_millis(100) };

/// Pauses after the database or the broker failed as a whole.
const PAUSE: Backoff = Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(1) };

/// How often keys behind dead rows are read anew.
const DEAD_KEYS_EVERY: Duration = Duration::from_secs(2);

/// How long the stream is taken for the same one while the connection holds: somebody may make it anew under it.
const STREAM_FOR: Duration = Duration::from_secs(30);

/// The relay of one process.
#[derive(Debug)]
pub(crate) struct Relay {
    pool: PgPool,
    context: Arc<ServiceContext>,
    broker: Arc<Broker>,
    soft: CancellationToken,
    shared: Arc<Shared>,
    reader: Reader,
    publisher: Publisher,
    settler: Settler,
    /// The stream that acknowledges, after how many lost connections it was looked up, and when.
    stream: Option<(StreamIdentity, u64, Instant)>,
    /// Read while the last round was published.
    ahead: Vec<Row>,
    held: Held,
    idle_polls: u32,
    failures: u32,
    dead_keys_due: Instant,
}

/// Why a turn ended early.
#[derive(Debug, thiserror::Error)]
enum TurnError {
    #[error("the database did not answer")]
    Database(#[from] sqlx::Error),
    #[error("the broker did not answer: {0}")]
    Broker(String),
}

impl Relay {
    /// A relay over `pool`, which it shares with nothing else. It publishes until `soft`, and from then on
    /// waits no more for a database that is away.
    pub(crate) fn new(
        pool: PgPool,
        context: Arc<ServiceContext>,
        broker: Arc<Broker>,
        soft: CancellationToken,
    ) -> Self {
        let settler = Settler::new(pool.clone(), context.instance, Arc::clone(&context.clock), soft.clone());
        Self {
            reader: Reader::new(pool.clone()),
            publisher: Publisher::new(Arc::clone(&broker), Arc::clone(&context)),
            shared: Arc::default(),
            pool,
            context,
            broker,
            soft,
            settler,
            stream: None,
            ahead: Vec::new(),
            held: Held::default(),
            idle_polls: 0,
            failures: 0,
            dead_keys_due: Instant::now(),
        }
    }

    /// Publishes until the soft token; then ends the round in hand and gives up the leases.
    pub(crate) async fn run(mut self) {
        let soft = self.soft.clone();
        let keeper_stop = CancellationToken::new();
        let keeper =
            keeper::keep(self.pool.clone(), Arc::clone(&self.context), Arc::clone(&self.shared), keeper_stop.clone());
        let keeper = tokio::spawn(keeper);
        while !soft.is_cancelled() {
            match self.turn(&soft).await {
                Ok(()) => self.failures = 0,
                Err(error) => {
                    self.failures = self.failures.saturating_add(1);
                    metrics::relay_state(RelayState::Stalled);
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        failures = self.failures,
                        "the relay pauses"
                    );
                    let pause = jittered(PAUSE.delay(self.failures), &*self.context.clock);
                    self.pause(pause, &soft).await;
                }
            }
        }
        self.ahead.clear();
        let moved = self.settler.finish(0).await;
        self.take_in(moved);
        keeper_stop.cancel();
        if let Err(error) = keeper.await {
            tracing::error!(%error, "the keeper of the relay's leases ended");
        }
        metrics::relay_state(RelayState::Off);
    }

    /// One round, or one wait.
    async fn turn(&mut self, soft: &CancellationToken) -> Result<(), TurnError> {
        let moved = self.settler.finish(usize::MAX).await;
        self.take_in(moved);
        self.follow_leases();
        if self.reader.holds_nothing() {
            metrics::relay_state(RelayState::Idle);
            self.wait_for_leases(soft).await;
            return Ok(());
        }
        let identity = self.stream_identity().await?;
        self.follow_dead_keys().await?;
        self.reader.advance_floors().await?;
        let mut rows = self.reader.still_publishable(std::mem::take(&mut self.ahead), Instant::now());
        if rows.is_empty() {
            rows = self.reader.claim().await?;
        }
        if rows.is_empty() {
            metrics::relay_state(RelayState::Idle);
            self.wait_for_facts(soft).await;
            return Ok(());
        }
        self.idle_polls = 0;
        failpoints::hit("relay.after_claim");
        if self.held.deadline.is_none_or(|deadline| Instant::now() >= deadline) {
            self.reader.give_back(rows.iter().map(|row| row.seq));
            self.forget("the lease ran out before the rows could be published");
            return Ok(());
        }
        metrics::relay_state(RelayState::Publishing);
        self.round(identity, rows).await
    }

    /// Publishes a round; reads the next one meanwhile when this one was full enough to promise more.
    async fn round(&mut self, identity: StreamIdentity, rows: Vec<Row>) -> Result<(), TurnError> {
        self.report_work();
        let deep = rows.len() >= method::BATCH_ROWS_MAX / 2;
        let (round, ahead) = if deep {
            let (round, ahead) = tokio::join!(self.publisher.publish(&rows), self.reader.claim());
            (round, ahead)
        } else {
            (self.publisher.publish(&rows).await, Ok(Vec::new()))
        };
        // The outcomes first: what was stored must be moved even when reading ahead failed.
        let ended = self.conclude(identity, &rows, round).await;
        self.ahead = ahead?;
        if !matches!(ended, Ok(RoundEnd::Stored)) {
            self.drop_ahead();
        }
        if self.publisher.replace_leaky_client().await {
            self.stream = None;
        }
        match ended? {
            RoundEnd::Stored | RoundEnd::Partly => Ok(()),
            RoundEnd::Nothing => Err(TurnError::Broker("no row of the round was stored".to_owned())),
        }
    }

    /// Takes over the newest renewal, and tells the keeper what is in flight.
    fn follow_leases(&mut self) {
        let newest = self.shared.held.borrow().clone();
        if newest.renewal != self.held.renewal {
            self.take_over(newest);
        }
        self.report_work();
    }

    fn report_work(&self) {
        self.shared.report(self.held.renewal, self.reader.busy_groups());
    }

    fn take_over(&mut self, newest: Held) {
        if newest.leases.iter().any(|lease| !self.held.leases.contains(lease)) {
            // The holder before may have put a row aside a moment ago.
            self.dead_keys_due = Instant::now();
        }
        self.reader.set_leases(&newest.leases);
        metrics::relay_leases(newest.leases.len() as u64);
        self.context.wake.set_alone(newest.leases.len() == crate::outbox::BUCKET_GROUPS as usize);
        self.held = newest;
    }

    async fn follow_dead_keys(&mut self) -> Result<(), TurnError> {
        if Instant::now() >= self.dead_keys_due {
            self.reader.set_dead_keys(settle::dead_keys(&self.pool).await?);
            self.reader.blocked.prune(Instant::now());
            self.dead_keys_due = Instant::now() + DEAD_KEYS_EVERY;
        }
        Ok(())
    }

    /// The stream's identity; looked up again after every lost connection and every now and then, because it may be another
    /// stream by then.
    async fn stream_identity(&mut self) -> Result<StreamIdentity, TurnError> {
        let events = self.broker.events();
        let disconnects = events.disconnects();
        if let Some((identity, seen, looked_up)) = self.stream
            && seen == disconnects
            && looked_up.elapsed() < STREAM_FOR
            && events.is_connected()
        {
            return Ok(identity);
        }
        if !events.is_connected() {
            return Err(TurnError::Broker("not connected".to_owned()));
        }
        let info = self.broker.connection().jetstream.get_stream(STREAM).await;
        let stream = info.map_err(|error| TurnError::Broker(format!("stream {STREAM}: {error}")))?;
        let identity = StreamIdentity { created: stream.cached_info().created };
        self.stream = Some((identity, disconnects, Instant::now()));
        Ok(identity)
    }

    async fn wait_for_leases(&mut self, soft: &CancellationToken) {
        let mut renewals = self.shared.held.subscribe();
        let seen = self.held.renewal;
        tokio::select! {
            _ = renewals.wait_for(|held| held.renewal > seen) => {}
            () = soft.cancelled() => {}
        }
    }

    async fn wait_for_facts(&mut self, soft: &CancellationToken) {
        self.idle_polls = self.idle_polls.saturating_add(1);
        let now = Instant::now();
        let poll = now + POLL.delay(self.idle_polls);
        let until = self.reader.blocked.next_due(now).map_or(poll, |due| due.min(poll));
        tokio::select! {
            () = self.context.wake.for_relay() => self.idle_polls = 0,
            () = tokio::time::sleep_until(until) => {}
            () = soft.cancelled() => {}
        }
    }

    /// Waits out a pause, or less when the connection comes back meanwhile.
    async fn pause(&self, pause: Duration, soft: &CancellationToken) {
        let lost = !self.broker.events().is_connected();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.broker.events().connected(), if lost => {}
            () = soft.cancelled() => {}
        }
    }
}

//! The tasks that deliver: starting them as the decision of `sharing` says, and answering the broker when they are done.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Consumer;
use super::message::{KeepAlive, Pending};
use super::sharing::Start;
use super::work::{Answer, work, work_together};
use crate::delivery::{Delivery, Inbox};
use crate::failpoints;

/// Messages of different keys, each with its key.
type Messages<Context> = Vec<(String, Pending<Context>)>;

/// Running deliveries.
pub(super) struct Workers<Context> {
    tasks: JoinSet<Done<Context>>,
    /// What the tasks have, so that it can be kept alive, and whose lanes it is.
    work: HashMap<Id, Vec<(String, KeepAlive)>>,
    /// Tasks that have several messages.
    groups: usize,
    most: usize,
}

/// A worker's end.
pub(super) struct Done<Context> {
    messages: Messages<Context>,
    answers: Vec<Answer>,
    begun: Instant,
}

/// How a task ended.
type Ended<Context> = Result<(Id, Done<Context>), JoinError>;

impl<Context: 'static> Workers<Context> {
    /// At most `most` at the same time.
    pub(super) fn new(most: usize) -> Self {
        Self { tasks: JoinSet::new(), work: HashMap::new(), groups: 0, most }
    }

    /// The next one that is done; none when none runs.
    pub(super) async fn next(&mut self) -> Option<Ended<Context>> {
        self.tasks.join_next_with_id().await
    }

    /// The messages in work.
    pub(super) fn in_work(&self) -> impl Iterator<Item = &KeepAlive> {
        self.work.values().flatten().map(|(_, message)| message)
    }

    fn start<I: Inbox<Context = Context>>(&mut self, delivery: Delivery<I>, messages: Messages<Context>) {
        let work: Vec<_> = messages.iter().map(|(key, pending)| (key.clone(), pending.keep_alive())).collect();
        self.groups += usize::from(work.len() > 1);
        let task = self.tasks.spawn(deliver(delivery, messages));
        self.work.insert(task.id(), work);
    }

    /// The lanes of a task that has ended.
    fn ended(&mut self, id: Id) -> Vec<(String, KeepAlive)> {
        let work = self.work.remove(&id).unwrap_or_default();
        self.groups -= usize::from(work.len() > 1);
        work
    }
}

async fn deliver<I: Inbox>(delivery: Delivery<I>, messages: Messages<I::Context>) -> Done<I::Context> {
    let begun = Instant::now();
    let (keys, mut pending): (Vec<String>, Vec<Pending<I::Context>>) = messages.into_iter().unzip();
    let answers = match &mut pending[..] {
        [single] => vec![work(&delivery, single).await],
        several => work_together(&delivery, several).await,
    };
    Done { messages: keys.into_iter().zip(pending).collect(), answers, begun }
}

impl<I: Inbox> Consumer<I> {
    pub(super) fn start_workers(&mut self) {
        while self.gate.is_open() {
            let messages = self.next_messages();
            if messages.is_empty() {
                return;
            }
            self.workers.start(self.delivery.clone(), messages);
        }
    }

    /// What one more worker is to do; nothing when there is none, or none to do it.
    fn next_messages(&mut self) -> Messages<I::Context> {
        let running = self.workers.work.len();
        if running >= self.workers.most {
            return Vec::new();
        }
        if let Some(alone) = self.lanes.start_alone() {
            return vec![alone];
        }
        let groups = self.workers.groups;
        let lanes = &mut self.lanes;
        match self.sharing.next(lanes.ready(), running - groups, groups, self.workers.most) {
            Start::Wait => Vec::new(),
            Start::Single => lanes.start().into_iter().collect(),
            Start::Shared(messages) => std::iter::from_fn(|| lanes.start()).take(messages).collect(),
        }
    }

    /// Answers the broker by the verdicts of a worker, and frees its lanes.
    pub(super) async fn take_back(&mut self, ended: Ended<I::Context>, soft: &CancellationToken) {
        match ended {
            Ok((id, done)) => {
                self.workers.ended(id);
                if done.answers.iter().all(|answer| *answer == Answer::Acknowledge) {
                    self.sharing.measured(done.messages.len(), done.begun.elapsed());
                }
                for ((key, pending), answer) in done.messages.into_iter().zip(done.answers) {
                    self.conclude(&key, pending, answer, soft).await;
                }
            }
            Err(error) => {
                // Nothing was acknowledged: the broker delivers it again.
                tracing::error!(%error, "a delivery worker ended by itself");
                for (key, _) in self.workers.ended(error.id()) {
                    self.lanes.settled(&key);
                }
            }
        }
    }

    async fn conclude(&mut self, key: &str, pending: Pending<I::Context>, answer: Answer, soft: &CancellationToken) {
        match answer {
            Answer::Acknowledge => {
                pending.acknowledge().await;
                failpoints::hit("consume.after_ack");
                self.lanes.settled(key);
            }
            Answer::Alone => self.lanes.again_alone(key, pending),
            Answer::Again(after) => self.lanes.again(key, pending, Instant::now() + after),
            Answer::Outage => {
                self.lanes.again(key, pending, Instant::now());
                if self.gate.close() {
                    let (gate, soft) = (Arc::clone(&self.gate), soft.clone());
                    let (inbox, registry) = (self.delivery.inbox.clone(), self.registry.clone());
                    let clock = Arc::clone(&self.delivery.context.clock);
                    tokio::spawn(async move { gate.probe(&inbox, &registry, &clock, &soft).await });
                }
            }
        }
    }
}

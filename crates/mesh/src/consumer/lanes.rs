//! Lanes by key: messages of one key run one after the other, messages of different keys at the same time. Pure.
//!
//! A message that has to be tried again stays at the head of its lane; the messages behind it wait, the other lanes go on.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

/// Messages waiting for their turn, by key.
#[derive(Debug)]
pub(super) struct Lanes<M> {
    lanes: HashMap<String, Lane<M>>,
    /// Keys whose head may start, in the order in which they became ready.
    ready: VecDeque<String>,
    running: usize,
    running_max: usize,
}

#[derive(Debug)]
struct Lane<M> {
    queue: VecDeque<M>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Running,
    /// The head is not tried before this instant.
    Cooling(Instant),
}

impl<M> Lanes<M> {
    /// Lanes of which at most `running_max` run at the same time.
    pub(super) fn new(running_max: usize) -> Self {
        Self { lanes: HashMap::new(), ready: VecDeque::new(), running: 0, running_max }
    }

    /// Adds a message behind those of its key.
    pub(super) fn push(&mut self, key: &str, message: M) {
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.queue.push_back(message);
            return;
        }
        self.lanes.insert(key.to_owned(), Lane { queue: VecDeque::from([message]), state: State::Ready });
        self.ready.push_back(key.to_owned());
    }

    /// Takes the next message that may run; it is running until [`Lanes::settled`] or [`Lanes::again`].
    pub(super) fn start(&mut self) -> Option<(String, M)> {
        if self.running >= self.running_max {
            return None;
        }
        while let Some(key) = self.ready.pop_front() {
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
            if let Some(message) = lane.queue.pop_front() {
                lane.state = State::Running;
                self.running += 1;
                return Some((key, message));
            }
        }
        None
    }

    /// The running message of the key is done.
    pub(super) fn settled(&mut self, key: &str) {
        let Some(lane) = self.lanes.get_mut(key) else { return };
        self.running = self.running.saturating_sub(1);
        if lane.queue.is_empty() {
            self.lanes.remove(key);
        } else {
            lane.state = State::Ready;
            self.ready.push_back(key.to_owned());
        }
    }

    /// The running message of the key goes back to the head of its lane, not before `at`.
    pub(super) fn again(&mut self, key: &str, message: M, at: Instant) {
        let Some(lane) = self.lanes.get_mut(key) else { return };
        self.running = self.running.saturating_sub(1);
        lane.queue.push_front(message);
        lane.state = State::Cooling(at);
    }

    /// Makes the lanes ready whose time has come; returns when the next one is due.
    pub(super) fn warm_up(&mut self, now: Instant) -> Option<Instant> {
        let mut next = None;
        for (key, lane) in &mut self.lanes {
            match lane.state {
                State::Cooling(at) if at <= now => {
                    lane.state = State::Ready;
                    self.ready.push_back(key.clone());
                }
                State::Cooling(at) => next = Some(next.map_or(at, |next: Instant| next.min(at))),
                State::Ready | State::Running => {}
            }
        }
        next
    }

    /// Everything that waits, running messages not among it.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &M> {
        self.lanes.values().flat_map(|lane| lane.queue.iter())
    }

    /// Empties the lanes of what waits.
    pub(super) fn drain(&mut self) -> Vec<M> {
        self.ready.clear();
        let mut drained = Vec::new();
        self.lanes.retain(|_, lane| {
            drained.extend(lane.queue.drain(..));
            lane.state == State::Running
        });
        drained
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// Keys with at least one message, running or waiting.
    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn started(lanes: &mut Lanes<u32>) -> Vec<(String, u32)> {
        std::iter::from_fn(|| lanes.start()).collect()
    }

    fn pair(key: &str, message: u32) -> (String, u32) {
        (key.to_owned(), message)
    }

    #[test]
    fn one_key_runs_in_order_and_different_keys_at_once() {
        let mut lanes = Lanes::new(8);
        for (key, message) in [("a", 1), ("a", 2), ("b", 3), ("a", 4)] {
            lanes.push(key, message);
        }
        assert_eq!(started(&mut lanes), [pair("a", 1), pair("b", 3)]);
        lanes.settled("a");
        assert_eq!(started(&mut lanes), [pair("a", 2)]);
        lanes.settled("b");
        lanes.settled("a");
        assert_eq!(started(&mut lanes), [pair("a", 4)]);
    }

    #[test]
    fn a_message_that_is_tried_again_holds_back_its_own_key_only() {
        let now = Instant::now();
        let later = now + Duration::from_secs(5);
        let mut lanes = Lanes::new(8);
        lanes.push("a", 1);
        lanes.push("a", 2);
        assert_eq!(started(&mut lanes), [pair("a", 1)]);
        lanes.again("a", 1, later);
        lanes.push("b", 3);
        assert_eq!(lanes.warm_up(now), Some(later));
        assert_eq!(started(&mut lanes), [pair("b", 3)]);
        assert_eq!(lanes.warm_up(later), None);
        assert_eq!(started(&mut lanes), [pair("a", 1)], "the failed one first, the one behind it waits");
    }

    #[test]
    fn no_more_run_at_once_than_allowed() {
        let mut lanes = Lanes::new(2);
        for (key, message) in [("a", 1), ("b", 2), ("c", 3)] {
            lanes.push(key, message);
        }
        assert_eq!(started(&mut lanes), [pair("a", 1), pair("b", 2)]);
        lanes.settled("a");
        assert_eq!(started(&mut lanes), [pair("c", 3)]);
    }

    #[test]
    fn what_waits_can_be_handed_back_while_the_rest_runs_on() {
        let mut lanes = Lanes::new(1);
        for (key, message) in [("a", 1), ("a", 2), ("b", 3)] {
            lanes.push(key, message);
        }
        assert_eq!(lanes.start(), Some(pair("a", 1)));
        let mut drained = lanes.drain();
        drained.sort_unstable();
        assert_eq!(drained, [2, 3]);
        assert_eq!(lanes.running(), 1);
        lanes.settled("a");
        assert_eq!(lanes.len(), 0);
    }
}

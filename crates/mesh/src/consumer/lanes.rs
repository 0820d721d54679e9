//! Lanes by key: messages of one key run one after the other, messages of different keys at the same time. Pure.
//!
//! A message that has to be tried again stays at the head of its lane; the messages behind it wait, the other lanes go on.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use tokio::time::Instant;

/// Messages waiting for their turn, by key.
#[derive(Debug)]
pub(super) struct Lanes<M> {
    lanes: HashMap<String, Lane<M>>,
    /// Keys whose head may start, in the order in which they became ready.
    ready: VecDeque<String>,
    /// Keys whose head may start, but not together with others.
    alone: VecDeque<String>,
    /// Keys whose head waits, and until when.
    cooling: BinaryHeap<Reverse<(Instant, String)>>,
    running: usize,
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
    /// The head is not tried before its time.
    Cooling,
}

impl<M> Lanes<M> {
    /// No lanes yet.
    pub(super) fn new() -> Self {
        Self {
            lanes: HashMap::new(),
            ready: VecDeque::new(),
            alone: VecDeque::new(),
            cooling: BinaryHeap::new(),
            running: 0,
        }
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

    /// Takes the next message that may run with others; it is running until [`Lanes::settled`] or one of the ways back.
    pub(super) fn start(&mut self) -> Option<(String, M)> {
        let key = self.ready.pop_front()?;
        self.run(key)
    }

    /// Takes the next message that has to run without others.
    pub(super) fn start_alone(&mut self) -> Option<(String, M)> {
        let key = self.alone.pop_front()?;
        self.run(key)
    }

    fn run(&mut self, key: String) -> Option<(String, M)> {
        let lane = self.lanes.get_mut(&key)?;
        let message = lane.queue.pop_front()?;
        lane.state = State::Running;
        self.running += 1;
        Some((key, message))
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
        if self.back(key, message, State::Cooling) {
            self.cooling.push(Reverse((at, key.to_owned())));
        }
    }

    /// The running message of the key goes back to the head of its lane, to run next and without others.
    pub(super) fn again_alone(&mut self, key: &str, message: M) {
        if self.back(key, message, State::Ready) {
            self.alone.push_back(key.to_owned());
        }
    }

    fn back(&mut self, key: &str, message: M, state: State) -> bool {
        let Some(lane) = self.lanes.get_mut(key) else { return false };
        self.running = self.running.saturating_sub(1);
        lane.queue.push_front(message);
        lane.state = state;
        true
    }

    /// Makes the lanes ready whose time has come; returns when the next one is due.
    pub(super) fn warm_up(&mut self, now: Instant) -> Option<Instant> {
        while let Some(Reverse((at, key))) = self.cooling.pop() {
            if at > now {
                self.cooling.push(Reverse((at, key)));
                return Some(at);
            }
            if let Some(lane) = self.lanes.get_mut(&key) {
                lane.state = State::Ready;
                self.ready.push_back(key);
            }
        }
        None
    }

    /// Everything that waits, running messages not among it.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &M> {
        self.lanes.values().flat_map(|lane| lane.queue.iter())
    }

    /// Empties the lanes of what waits.
    pub(super) fn drain(&mut self) -> Vec<M> {
        self.ready.clear();
        self.alone.clear();
        self.cooling.clear();
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

    /// Keys whose head may start with others.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
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
        let mut lanes = Lanes::new();
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
        let mut lanes = Lanes::new();
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
    fn a_message_that_has_to_run_alone_keeps_its_place_in_its_lane() {
        let mut lanes = Lanes::new();
        for (key, message) in [("a", 1), ("a", 2), ("b", 3)] {
            lanes.push(key, message);
        }
        assert_eq!(started(&mut lanes), [pair("a", 1), pair("b", 3)]);
        lanes.again_alone("a", 1);
        assert_eq!(started(&mut lanes), [], "not with others");
        assert_eq!(lanes.start_alone(), Some(pair("a", 1)));
        assert_eq!(lanes.start_alone(), None);
        lanes.settled("a");
        assert_eq!(started(&mut lanes), [pair("a", 2)]);
    }

    #[test]
    fn what_waits_can_be_handed_back_while_the_rest_runs_on() {
        let mut lanes = Lanes::new();
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

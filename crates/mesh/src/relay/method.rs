//! Which way of publishing is faster for how many rows: measured, not assumed. Pure.
//!
//! With `sync_interval: always` one server writes an atomic batch with one fsync and single messages with one each; with
//! the default, or on three servers, the order turns round. So the relay keeps the cost per row of both ways for each
//! size class and tries the other way now and then.

use std::time::Duration;

/// Most messages in one atomic batch: the server's limit.
pub(super) const BATCH_ROWS_MAX: usize = 1_000;

/// Below this, a batch's fixed cost (staging on disk) never pays.
const BATCH_ROWS_MIN: usize = 8;

/// Where a batch is assumed to win before anything was measured.
const BATCH_ROWS_ASSUMED: usize = 20;

/// Every how many rounds of a class the slower way is measured again.
const EXPLORE_EVERY: u32 = 256;

/// How to publish a round of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// Each row by itself, many in flight, one per key.
    Pipelined,
    /// All rows as one atomic batch.
    Batch,
}

/// Smoothed cost per row of both ways, by size class.
#[derive(Debug, Default)]
pub(super) struct MethodChoice {
    classes: [Class; 11],
}

#[derive(Debug, Default, Clone, Copy)]
struct Class {
    pipelined: Option<f64>,
    batch: Option<f64>,
    rounds: u32,
}

impl MethodChoice {
    /// The way for the next round of `rows` rows.
    pub(super) fn choose(&mut self, rows: usize) -> Method {
        if rows < BATCH_ROWS_MIN {
            return Method::Pipelined;
        }
        let class = &mut self.classes[size_class(rows)];
        class.rounds = class.rounds.wrapping_add(1);
        let faster = match (class.pipelined, class.batch) {
            (Some(pipelined), Some(batch)) if pipelined < batch => Method::Pipelined,
            (Some(_), Some(_)) => Method::Batch,
            _ if rows >= BATCH_ROWS_ASSUMED => Method::Batch,
            _ => Method::Pipelined,
        };
        match (class.rounds.is_multiple_of(EXPLORE_EVERY), faster) {
            (false, faster) => faster,
            (true, Method::Batch) => Method::Pipelined,
            (true, Method::Pipelined) => Method::Batch,
        }
    }

    /// Takes a measurement of a round in which every row was stored.
    pub(super) fn measured(&mut self, method: Method, rows: usize, elapsed: Duration) {
        if rows < BATCH_ROWS_MIN {
            return;
        }
        let class = &mut self.classes[size_class(rows)];
        let slot = match method {
            Method::Pipelined => &mut class.pipelined,
            Method::Batch => &mut class.batch,
        };
        let cost = elapsed.as_secs_f64() / rows as f64;
        *slot = Some(slot.map_or(cost, |smoothed| smoothed + (cost - smoothed) / 8.0));
    }
}

/// Classes of doubling size: 8-15, 16-31, ... all from 1024 together.
fn size_class(rows: usize) -> usize {
    (rows.max(1).ilog2() as usize).min(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_go_one_by_one_and_a_backlog_as_a_batch_until_measured() {
        let mut choice = MethodChoice::default();
        assert_eq!(choice.choose(1), Method::Pipelined);
        assert_eq!(choice.choose(12), Method::Pipelined);
        assert_eq!(choice.choose(20), Method::Batch);
        assert_eq!(choice.choose(1_000), Method::Batch);
    }

    #[test]
    fn the_measured_faster_way_wins_in_its_class_only() {
        let mut choice = MethodChoice::default();
        choice.measured(Method::Batch, 800, Duration::from_millis(40));
        choice.measured(Method::Pipelined, 800, Duration::from_millis(12));
        assert_eq!(choice.choose(700), Method::Pipelined);
        assert_eq!(choice.choose(200), Method::Batch, "another class, nothing measured there");
    }

    #[test]
    fn the_slower_way_is_tried_again_now_and_then() {
        let mut choice = MethodChoice::default();
        choice.measured(Method::Batch, 512, Duration::from_millis(10));
        choice.measured(Method::Pipelined, 512, Duration::from_millis(90));
        let rounds = 2 * EXPLORE_EVERY as usize;
        let explored = (0..rounds).filter(|_| choice.choose(512) == Method::Pipelined).count();
        assert_eq!(explored, 2);
    }
}

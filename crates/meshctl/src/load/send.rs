//! Sends the orders at their pace, whatever becomes of the ones before: a slow shop does not slow the load down, up to the
//! number of requests that may be under way.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::goods::Goods;
use super::mix::{Kind, Mix};
use crate::clock;
use crate::shop::Shop;

/// How fast, and how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) orders: u64,
    pub(super) every: Duration,
    pub(super) at_once: usize,
}

/// An order that was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) order_id: Uuid,
    /// The end that it has to come to.
    pub(super) meant: Kind,
}

/// A run of the sender.
pub(super) struct Sending {
    done: Arc<Done>,
    stop: watch::Sender<bool>,
    finished: watch::Receiver<bool>,
}

/// What came of the requests.
#[derive(Debug, Default)]
struct Done {
    sent: Mutex<Vec<Sent>>,
    refused: Mutex<Vec<String>>,
}

impl Sending {
    /// Begins to send.
    pub(super) fn begin(shop: Shop, goods: Goods, mix: Mix, pace: Pace) -> Self {
        let done = Arc::new(Done::default());
        let (stop, stopped) = watch::channel(false);
        let (told, finished) = watch::channel(false);
        let work = send_all(shop, goods, mix, pace, Arc::clone(&done), stopped);
        tokio::spawn(async move {
            work.await;
            told.send_replace(true);
        });
        Self { done, stop, finished }
    }

    /// No more orders.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until every request is answered.
    pub(super) async fn finished(&self) {
        // A sender that is gone has finished, too.
        let _ = self.finished.clone().wait_for(|finished| *finished).await;
    }

    /// The orders that were placed so far.
    pub(super) fn sent(&self) -> Vec<Sent> {
        self.done.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why others were not.
    pub(super) fn refused(&self) -> Vec<String> {
        self.done.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn send_all(shop: Shop, goods: Goods, mix: Mix, pace: Pace, done: Arc<Done>, mut stopped: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(pace.at_once));
    let goods = Arc::new(goods);
    let mut due = Instant::now();
    for (number, kind) in (0..pace.orders).zip(mix.kinds()) {
        tokio::select! {
            () = sleep_until(due) => {}
            _ = stopped.wait_for(|stop| *stop) => break,
        }
        due += pace.every;
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { break };
        let (shop, goods, done) = (shop.clone(), Arc::clone(&goods), Arc::clone(&done));
        tokio::spawn(async move {
            let placed = place(&shop, &goods, number, kind).await;
            match placed {
                Ok(sent) => done.sent.lock().unwrap_or_else(PoisonError::into_inner).push(sent),
                Err(error) => done.refused.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{error:#}")),
            }
            drop(permit);
        });
    }
    // All permits are back when all requests are answered.
    let all = u32::try_from(pace.at_once).unwrap_or(u32::MAX);
    let _ = room.acquire_many(all).await;
}

async fn place(shop: &Shop, goods: &Goods, number: u64, kind: Kind) -> anyhow::Result<Sent> {
    let order = shop.place(&goods.order(number, kind), &clock::draw_id().to_string()).await?;
    let order_id = order.order_id;
    if kind != Kind::Cancelled {
        return Ok(Sent { order_id, meant: kind });
    }
    match shop.cancel(order_id, &clock::draw_id().to_string()).await {
        Ok(()) => Ok(Sent { order_id, meant: Kind::Cancelled }),
        // The shop was faster: what is confirmed cannot be cancelled, and stays as it is.
        Err(error) => match shop.order(order_id).await {
            Ok(order) if order.status == "confirmed" => Ok(Sent { order_id, meant: Kind::Confirmed }),
            _ => Err(error),
        },
    }
}

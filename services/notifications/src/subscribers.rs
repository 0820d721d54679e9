//! What this service does with what it hears.

use std::sync::Arc;
use std::time::Duration;

use envelope::Event;
use events::{OrderCancelled, OrderConfirmed, OrderCreated, RefundIssued};
use mesh::{Backoff, Failure, Handled, Kv, Policy, Received, Subscriber};
use uuid::Uuid;

use crate::domain::{Decision, Heard, News, Notice, on};
use crate::mail::Post;
use crate::recipients;

/// When an order is created, remember whose it is, and send what was held back for want of that.
#[derive(Debug)]
pub struct RememberCustomer(pub Arc<Post>);

/// When an order is confirmed, write to its customer.
#[derive(Debug)]
pub struct MailConfirmation(pub Arc<Post>);

/// When an order is cancelled, write to its customer.
#[derive(Debug)]
pub struct MailCancellation(pub Arc<Post>);

/// When a customer has money back, write about it.
#[derive(Debug)]
pub struct MailRefund(pub Arc<Post>);

impl Subscriber<Kv> for RememberCustomer {
    type Event = OrderCreated;
    const NAME: &'static str = "remember-customer";

    fn policy(&self) -> Policy {
        policy(&self.0)
    }

    async fn handle(&self, kv: &mut Kv, received: Received<OrderCreated>) -> Result<Handled, Failure> {
        let order = received.event;
        hear(&self.0, kv, order.order_id, Heard::Created(order.customer_id)).await
    }

    async fn probe(&self) -> anyhow::Result<()> {
        self.0.probe().await
    }
}

impl Subscriber<Kv> for MailConfirmation {
    type Event = OrderConfirmed;
    const NAME: &'static str = "mail-confirmation";

    fn policy(&self) -> Policy {
        policy(&self.0)
    }

    async fn handle(&self, kv: &mut Kv, received: Received<OrderConfirmed>) -> Result<Handled, Failure> {
        let order = received.event.order_id;
        hear(&self.0, kv, order, notice(&received, order, News::Confirmed)).await
    }
}

impl Subscriber<Kv> for MailCancellation {
    type Event = OrderCancelled;
    const NAME: &'static str = "mail-cancellation";

    fn policy(&self) -> Policy {
        policy(&self.0)
    }

    async fn handle(&self, kv: &mut Kv, received: Received<OrderCancelled>) -> Result<Handled, Failure> {
        let (order, reason) = (received.event.order_id, received.event.reason.clone());
        hear(&self.0, kv, order, notice(&received, order, News::Cancelled { reason })).await
    }
}

impl Subscriber<Kv> for MailRefund {
    type Event = RefundIssued;
    const NAME: &'static str = "mail-refund";

    fn policy(&self) -> Policy {
        policy(&self.0)
    }

    async fn handle(&self, kv: &mut Kv, received: Received<RefundIssued>) -> Result<Handled, Failure> {
        let (order, amount) = (received.event.order_id, received.event.amount);
        hear(&self.0, kv, order, notice(&received, order, News::Refunded { amount })).await
    }
}

/// A mail server that refuses for now means minutes: greylisting, a full mailbox.
fn policy(post: &Post) -> Policy {
    let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(300) };
    Policy { attempts_max: 12, backoff, timeout: post.timeout() }
}

fn notice<E: Event>(received: &Received<E>, order_id: Uuid, news: News) -> Heard {
    Heard::Notice(Notice { event_id: received.metadata.id, order_id, at: received.metadata.time, news })
}

async fn hear(post: &Post, kv: &Kv, order_id: Uuid, heard: Heard) -> Result<Handled, Failure> {
    let known = recipients::of_order(kv, order_id).await?;
    match on(known.value, heard) {
        Decision::Send(customer, notice) => {
            post.send(customer, &notice).await?;
            Ok(Handled::Effect)
        }
        Decision::Remember(recipient) => {
            recipients::remember(kv, order_id, &recipient, known.revision).await?;
            Ok(Handled::Effect)
        }
        Decision::Hold(recipient) => {
            recipients::remember(kv, order_id, &recipient, known.revision).await?;
            Ok(Handled::NoEffect("held_back"))
        }
        Decision::SendHeld(mut recipient) => {
            // From here on nothing more is held back, so that nobody writes this entry but who sends.
            let revision = recipients::remember(kv, order_id, &recipient, known.revision).await?;
            if let Some(customer) = recipient.customer_id {
                for notice in &recipient.held {
                    post.send(customer, notice).await?;
                }
            }
            recipient.held.clear();
            recipients::remember(kv, order_id, &recipient, revision).await?;
            Ok(Handled::Effect)
        }
        Decision::Keep => Ok(Handled::NoEffect("already_known")),
    }
}

//! What a worker does with one message: every open subscriber in turn, a verdict for each.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;

use super::message::Pending;
use crate::delivery::{Delivery, Inbox, Incoming, Retry, RetryCause, Unit, Verdict};
use crate::failpoints;
use crate::telemetry::{metrics, trace};

/// What is to happen with the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Every subscriber has settled it.
    Acknowledge,
    /// At least one has not; when to try again.
    Again(Duration),
    /// Something that deliveries need is away: again as soon as it is back.
    Outage,
    /// Again at once, with a transaction of its own.
    Alone,
}

/// Delivers the message to its open subscribers. Those that settle it are not asked again.
pub(super) async fn work<I: Inbox>(delivery: &Delivery<I>, pending: &mut Pending<I::Context>) -> Answer {
    failpoints::hit("consume.after_receive");
    let incoming = Arc::clone(&pending.incoming);
    if !pending.is_heard {
        return unheard(delivery, &incoming).await;
    }
    let mut open = Vec::new();
    let mut answer = Answer::Acknowledge;
    for (subscriber, mut next) in std::mem::take(&mut pending.open) {
        let span = span(subscriber.name(), &incoming);
        let verdict = delivery.deliver(&subscriber, &incoming, &mut next).instrument(span).await;
        report(delivery, subscriber.name(), &incoming, &verdict);
        if let Verdict::Retry(retry) = &verdict {
            answer = answer.and(retry);
            open.push((subscriber, next));
        }
    }
    pending.open = open;
    failpoints::hit("consume.after_commit_before_ack");
    answer
}

/// Delivers many messages by one transaction, as far as they let themselves; an answer for each.
pub(super) async fn work_together<I: Inbox>(
    delivery: &Delivery<I>,
    messages: &mut [Pending<I::Context>],
) -> Vec<Answer> {
    failpoints::hit("consume.after_receive");
    let (places, units) = shared(delivery, messages);
    let verdicts = if units.is_empty() { Vec::new() } else { delivery.deliver_together(units).await };
    let mut outage = vec![false; messages.len()];
    for ((message, subscriber), verdict) in places.into_iter().zip(verdicts) {
        let Some(verdict) = verdict else { continue };
        let pending = &mut messages[message];
        report(delivery, subscriber, &pending.incoming, &verdict);
        if verdict.is_settled() {
            pending.open.retain(|(open, _)| open.name() != subscriber);
        } else {
            outage[message] = true;
        }
    }
    let mut answers = Vec::with_capacity(messages.len());
    for (pending, outage) in messages.iter().zip(outage) {
        answers.push(if outage { Answer::Outage } else { rest(delivery, pending).await });
    }
    failpoints::hit("consume.after_commit_before_ack");
    answers
}

/// The position of a message and the name of one of its subscribers.
type Place = (usize, &'static str);

/// The deliveries that may share a transaction, and which message and subscriber each is of.
fn shared<I: Inbox>(delivery: &Delivery<I>, messages: &[Pending<I::Context>]) -> (Vec<Place>, Vec<Unit<I::Context>>) {
    let mut places = Vec::new();
    let mut units = Vec::new();
    for (message, pending) in messages.iter().enumerate() {
        let incoming = &pending.incoming;
        for (subscriber, next) in &pending.open {
            if delivery.may_share(subscriber, incoming, *next) {
                places.push((message, subscriber.name()));
                let span = span(subscriber.name(), incoming);
                units.push(Unit { subscriber: Arc::clone(subscriber), incoming: Arc::clone(incoming), span });
            }
        }
    }
    (places, units)
}

/// What is to happen with a message after the shared transaction.
async fn rest<I: Inbox>(delivery: &Delivery<I>, pending: &Pending<I::Context>) -> Answer {
    if !pending.open.is_empty() {
        Answer::Alone
    } else if pending.is_heard {
        Answer::Acknowledge
    } else {
        unheard(delivery, &pending.incoming).await
    }
}

impl Answer {
    fn and(self, retry: &Retry) -> Self {
        match (self, retry.cause) {
            (_, RetryCause::Outage) | (Self::Outage, _) => Self::Outage,
            // The latest: none is tried before its own back-off is over.
            (Self::Again(later), _) => Self::Again(later.max(retry.after)),
            (Self::Acknowledge | Self::Alone, _) => Self::Again(retry.after),
        }
    }
}

/// A type that no subscriber hears is counted and done with; a subject that cannot be read is kept.
async fn unheard<I: Inbox>(delivery: &Delivery<I>, incoming: &Incoming) -> Answer {
    let verdict = match incoming.subject_type() {
        Some(_) => Verdict::Foreign,
        None => {
            delivery.keep_unroutable(incoming, format!("`{}` is no subject of a fact", incoming.raw().subject)).await
        }
    };
    report(delivery, "-", incoming, &verdict);
    if verdict.is_settled() { Answer::Acknowledge } else { Answer::Outage }
}

fn span(subscriber: &str, incoming: &Incoming) -> tracing::Span {
    let span = tracing::info_span!("deliver", subscriber, event = %incoming.id());
    if let Ok(metadata) = incoming.metadata()
        && let Some(context) = &metadata.trace
    {
        trace::set_parent(&span, context);
    }
    span
}

/// One line and one count per verdict.
fn report<I>(delivery: &Delivery<I>, subscriber: &'static str, incoming: &Incoming, verdict: &Verdict) {
    metrics::verdict(verdict.label(), subscriber);
    let ops = &delivery.context.ops;
    if verdict.is_settled() {
        ops.settled(incoming.id(), subscriber);
    }
    match verdict {
        Verdict::Duplicate => {
            metrics::duplicate(subscriber);
            ops.duplicate(subscriber);
        }
        Verdict::NoEffect(reason) => ops.skipped(subscriber, reason),
        Verdict::Compensated(action) => metrics::compensated(action),
        _ => {}
    }
    let flow = incoming.metadata().ok().map(|metadata| metadata.correlation_id.to_string()).unwrap_or_default();
    if let (true, Ok(metadata)) = (verdict.is_settled(), incoming.metadata()) {
        let lag = delivery.context.clock.now().as_offset() - metadata.time.as_offset();
        metrics::inbox_lag(subscriber, lag.try_into().unwrap_or_default());
    }
    tracing::info!(
        verdict = verdict.label(),
        detail = verdict.detail(),
        subscriber,
        fact = incoming.event_type_text(),
        event = %incoming.id(),
        flow,
        sequence = incoming.stream_sequence(),
        "delivered"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_open_subscriber_keeps_the_message_and_an_outage_outweighs_a_delay() {
        let retry = |cause, after| Retry { after: Duration::from_secs(after), cause };
        let failure = Answer::Acknowledge.and(&retry(RetryCause::Failure, 9)).and(&retry(RetryCause::Failure, 4));
        assert_eq!(failure, Answer::Again(Duration::from_secs(9)));
        assert_eq!(failure.and(&retry(RetryCause::Outage, 1)), Answer::Outage);
        assert_eq!(Answer::Outage.and(&retry(RetryCause::Failure, 1)), Answer::Outage);
    }
}

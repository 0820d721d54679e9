//! The service's durable consumer: declared elsewhere, verified here, never created.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer};
use async_nats::jetstream::context::{ConsumerInfoError, ConsumerInfoErrorKind};

use crate::broker::{Connection, STREAM};
use crate::delivery::Registry;

/// Why the durable consumer cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DurableError {
    /// The stream or the durable does not exist.
    #[error("durable consumer `{name}` on stream {STREAM} does not exist ({why}); run `meshctl streams apply`")]
    Missing { name: &'static str, why: String },
    /// It cannot be looked at: no answer, which a missing permission looks like as well.
    #[error(
        "durable consumer `{name}` on stream {STREAM} cannot be read ({why}); a missing permission looks like this too"
    )]
    Unavailable { name: &'static str, why: String },
    /// It differs from what this build relies on.
    #[error("durable consumer `{name}` on stream {STREAM} has drifted: {}; run `meshctl streams diff`", .differences.join("; "))]
    Drifted { name: &'static str, differences: Vec<String> },
    /// A pull could not be started.
    #[error("pull from durable consumer `{name}`: {why}")]
    Pull { name: &'static str, why: String },
}

/// Looks the durable up and compares what this build relies on.
pub(crate) async fn verify<Context>(
    connection: &Connection,
    name: &'static str,
    registry: &Registry<Context>,
) -> Result<PullConsumer, DurableError> {
    let unavailable = |why: String| DurableError::Unavailable { name, why };
    let stream =
        connection.jetstream.get_stream_no_info(STREAM).await.map_err(|error| unavailable(error.to_string()))?;
    let consumer: PullConsumer = stream.get_consumer(name).await.map_err(|error| lookup_failed(name, &*error))?;
    let differences = differences(&consumer.cached_info().config, registry);
    if differences.is_empty() { Ok(consumer) } else { Err(DurableError::Drifted { name, differences }) }
}

fn lookup_failed(name: &'static str, error: &(dyn std::error::Error + Send + Sync + 'static)) -> DurableError {
    let why = error.to_string();
    match error.downcast_ref().map(ConsumerInfoError::kind) {
        Some(ConsumerInfoErrorKind::NotFound | ConsumerInfoErrorKind::StreamNotFound) => {
            DurableError::Missing { name, why }
        }
        _ => DurableError::Unavailable { name, why },
    }
}

/// What differs from what the runtime relies on, field by field.
fn differences<Context>(config: &async_nats::jetstream::consumer::Config, registry: &Registry<Context>) -> Vec<String> {
    let mut found = Vec::new();
    if config.ack_policy != AckPolicy::Explicit {
        found.push(format!("ack_policy is {:?}, not explicit", config.ack_policy));
    }
    if config.max_deliver > 0 {
        found.push(format!("max_deliver is {}, which drops a message after it", config.max_deliver));
    }
    if config.inactive_threshold > Duration::ZERO {
        found.push("inactive_threshold is set, which deletes an idle durable".to_owned());
    }
    if config.ack_wait < Duration::from_secs(10) {
        found.push(format!("ack_wait is {:?}, shorter than 10 s", config.ack_wait));
    }
    if config.headers_only {
        found.push("headers_only is set, so no fact has a body".to_owned());
    }
    let single = (!config.filter_subject.is_empty()).then_some(&config.filter_subject);
    let filters: Vec<&String> = config.filter_subjects.iter().chain(single).collect();
    for subscriber in registry.iter() {
        let wanted = subscriber.event_type();
        let heard = |bucket: u32| {
            let subject = format!("evt.{}.{}.v{}.{bucket}", wanted.domain, wanted.name, wanted.major);
            filters.iter().any(|filter| covers(filter, &subject))
        };
        if !filters.is_empty() && !(0..envelope::BUCKETS).all(heard) {
            found.push(format!("no filter for all of {wanted}, which `{}` hears", subscriber.name()));
        }
    }
    found
}

/// Whether a filter with wildcards takes a subject.
fn covers(filter: &str, subject: &str) -> bool {
    let (mut parts, mut tokens) = (filter.split('.').peekable(), subject.split('.'));
    while let Some(part) = parts.next() {
        match (part, tokens.next()) {
            // Only at the end is it a wildcard.
            (">", Some(_)) if parts.peek().is_none() => return true,
            ("*", Some(_)) => {}
            (part, Some(token)) if part == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn filters_take_subjects_as_the_server_does() {
        let subject = "evt.orders.order_created.v1.0";
        for filter in ["evt.>", "evt.orders.order_created.v1.*", "evt.*.*.*.*", subject] {
            assert!(covers(filter, subject), "{filter}");
        }
        for filter in
            ["evt.orders.order_created.v2.*", "evt.orders.order_created.v1", "evt.orders.>.v1", "evt.*.*.*.*.*"]
        {
            assert!(!covers(filter, subject), "{filter}");
        }
    }
}

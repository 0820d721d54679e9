//! Which changes of a living stream, bucket or consumer may be made. Pure.

use serde::Serialize;
use serde_json::Value;

use super::plan::AssetKind;

/// Whether a change may be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is lost by it.
    Safe,
    /// It is made, and has an effect that is easily overlooked.
    Note {
        /// The effect.
        text: String,
    },
    /// It is not made: facts or positions would be lost, or the server cannot do it.
    Refused {
        /// What would be lost, and what to do instead.
        why: String,
    },
}

/// Whether the server fills in `value` when `field` is left out.
pub(super) fn is_default(kind: AssetKind, field: &str, value: &Value) -> bool {
    const SECOND: i64 = 1_000_000_000;
    let text = |default: &str| value == default;
    let number = |default: i64| value.as_i64() == Some(default);
    match (kind, field) {
        (AssetKind::Stream | AssetKind::Bucket, "retention") => text("limits"),
        (AssetKind::Stream | AssetKind::Bucket, "storage") => text("file"),
        (AssetKind::Stream | AssetKind::Bucket, "discard") => text("old"),
        (AssetKind::Stream | AssetKind::Bucket, "compression") => text("none"),
        (AssetKind::Stream | AssetKind::Bucket, "num_replicas") => number(1),
        (AssetKind::Stream | AssetKind::Bucket, "duplicate_window") => number(120 * SECOND),
        (AssetKind::Consumer, "deliver_policy") => text("all"),
        (AssetKind::Consumer, "replay_policy") => text("instant"),
        (AssetKind::Consumer, "ack_wait") => number(30 * SECOND),
        (AssetKind::Consumer, "max_ack_pending") => number(1_000),
        (AssetKind::Consumer, "max_waiting") => number(512),
        _ => false,
    }
}

/// Judges the change of one field from `live` to `declared`; `null` is an absent field.
pub(super) fn judge(kind: AssetKind, field: &str, live: &Value, declared: &Value) -> Verdict {
    match kind {
        AssetKind::Stream => judge_stream(field, live, declared),
        AssetKind::Bucket => judge_bucket(field, live, declared),
        AssetKind::Consumer => judge_consumer(field, live, declared),
    }
}

fn judge_stream(field: &str, live: &Value, declared: &Value) -> Verdict {
    match field {
        "subjects" if !missing(live, declared).is_empty() => refused(format!(
            "facts under {} would be refused at once; publishers have to stop first, then the stream is edited by hand",
            missing(live, declared).join(", ")
        )),
        "retention" => refused("facts would be deleted by other rules than those that their readers rely on"),
        "storage" | "mirror" | "sources" | "first_seq" | "sealed" => {
            refused("the server cannot change it on a living stream, and a new stream would begin empty")
        }
        "discard" => refused("a full stream would delete facts instead of refusing new ones, or the other way round"),
        "max_age" | "max_bytes" | "max_msgs" | "max_msgs_per_subject" if is_tighter(live, declared) => {
            refused("facts beyond the new limit would be deleted at once")
        }
        "deny_purge" | "deny_delete" if *declared != Value::Bool(true) => {
            refused("the server does not take back this protection")
        }
        "allow_rollup_hdrs" | "allow_msg_ttl" if *declared == Value::Bool(true) => {
            refused("a publisher could make stored facts disappear")
        }
        _ => Verdict::Safe,
    }
}

fn judge_bucket(field: &str, live: &Value, declared: &Value) -> Verdict {
    match field {
        // Its only writer is the service that it belongs to, which lets entries expire and takes them back.
        "allow_rollup_hdrs" | "allow_msg_ttl" => Verdict::Safe,
        "max_msgs_per_subject" => refused("a bucket keeps the last entry of each key, neither more nor fewer"),
        "max_age" | "max_bytes" | "max_msgs" if is_tighter(live, declared) => {
            refused("entries beyond the new limit would be forgotten at once, and what they settle would happen again")
        }
        _ => judge_stream(field, live, declared),
    }
}

fn judge_consumer(field: &str, live: &Value, declared: &Value) -> Verdict {
    match field {
        "filter_subjects" => judge_filters(live, declared),
        "ack_policy" | "deliver_policy" | "opt_start_seq" | "opt_start_time" | "replay_policy" | "deliver_subject"
        | "flow_control" | "idle_heartbeat" | "max_waiting" | "mem_storage" => {
            refused("the server cannot change it on a living consumer, and a new consumer would lose its position")
        }
        "inactive_threshold" if !declared.is_null() => {
            refused("the server would delete the consumer, and with it its position, while the service is down")
        }
        "max_deliver" if declared.as_i64().is_some_and(|deliveries| deliveries > 0) => note(format!(
            "after {declared} deliveries the server drops a fact for this consumer, without a dead letter"
        )),
        _ => Verdict::Safe,
    }
}

fn judge_filters(live: &Value, declared: &Value) -> Verdict {
    let mut effects = Vec::new();
    let added = missing(declared, live);
    if !added.is_empty() {
        effects.push(format!("facts under {} that were stored before the change are not delivered", added.join(", ")));
    }
    let removed = missing(live, declared);
    if !removed.is_empty() {
        effects.push(format!("pending facts under {} are not delivered any more", removed.join(", ")));
    }
    note(effects.join("; "))
}

/// The texts of `from` that `in_` does not have.
fn missing<'a>(from: &'a Value, in_: &Value) -> Vec<&'a str> {
    let texts = |value: &'a Value| value.as_array().into_iter().flatten().filter_map(Value::as_str);
    let has = |text: &str| in_.as_array().is_some_and(|items| items.iter().any(|item| item == text));
    texts(from).filter(|text| !has(text)).collect()
}

/// Whether a limit becomes smaller; absent, zero and negative ones are no limit.
fn is_tighter(live: &Value, declared: &Value) -> bool {
    let limit = |value: &Value| value.as_i64().filter(|limit| *limit > 0);
    match (limit(live), limit(declared)) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(before), Some(after)) => after < before,
    }
}

fn refused(why: impl Into<String>) -> Verdict {
    Verdict::Refused { why: why.into() }
}

fn note(text: impl Into<String>) -> Verdict {
    Verdict::Note { text: text.into() }
}

use std::collections::HashSet;

use super::*;

/// The names that DESIGN promises to dashboards, whatever else there is.
const PROMISED: [&str; 13] = [
    "outbox_pending_count",
    "outbox_oldest_pending_seconds",
    "outbox_publish_latency_seconds",
    "outbox_failed_count",
    "saga_compensation_total",
    "saga_stuck_count",
    "inbox_duplicates_total",
    "inbox_lag_seconds",
    "consumer_pending",
    "verdicts_total",
    "dead_letter_count",
    "reconcile_republished_total",
    "key_sequence_gap_total",
];

#[test]
fn the_promised_names_exist_once_and_fit_prometheus() {
    let names: Vec<_> = Metric::ALL.iter().map(|metric| metric.definition().name).collect();
    for promised in PROMISED {
        assert!(names.contains(&promised), "{promised}");
    }
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "a name is there twice");
    for name in names {
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
    }
}

#[test]
fn counters_say_total_and_others_do_not() {
    for metric in Metric::ALL {
        let Definition { name, kind, help, .. } = metric.definition();
        assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
        assert!(!help.is_empty(), "{name}");
    }
}

/// Calls every function of the module, and finds every metric of the enum with exactly its labels.
#[test]
fn every_metric_is_measured_with_its_labels() {
    let text = Exposition::of(|| {
        outbox_pending(3, Duration::from_millis(1500));
        outbox_failed(1);
        publish_latency(Duration::from_millis(4));
        relay_published(PublishMethod::Batch, 64);
        relay_published(PublishMethod::Single, 1);
        relay_failed("refused");
        relay_leases(16);
        relay_state(RelayState::Idle);
        compensations_declared(&["release"]);
        compensated("refund");
        stuck_flows(2);
        subscriber_declared("other", &["handled"]);
        duplicate("charge-customer");
        inbox_lag("charge-customer", Duration::from_secs(2));
        verdict("handled", "charge-customer");
        sequence_gap("charge-customer");
        consumer_pending(9);
        consumer_in_flight(1);
        consumer_rebuilt("no_heartbeat");
        dead_letters(1, 2);
        redriven("charge-customer");
        redrive_failed("charge-customer");
        discarded(4);
        outbox_retried(1);
        ops_events_dropped(2);
        republished(5);
        reconciled(20, Some(1.5));
        reconcile_failed();
        janitor_deleted("idempotency", 1_000);
        janitor_dropped("inbox");
        janitor_failed("held");
        broker_connected(true);
        broker_reconnected();
        http_request("POST /orders", 201, Duration::from_millis(3));
        idempotent_request("place-order", "fresh");
        pool_wait(Duration::from_micros(10));
        pool_connections(5, 2);
        build_info("orders", "1.2.3", "i".to_owned());
        process(crate::telemetry::process::usage().unwrap());
    });
    for metric in Metric::ALL {
        let Definition { name, labels, .. } = metric.definition();
        let series: Vec<_> = text.lines().filter(|line| is_series_of(line, name)).collect();
        assert!(!series.is_empty(), "{name} in\n{text}");
        for line in series {
            let mut found = labels_of(line);
            found.retain(|label| *label != "le");
            assert_eq!(found.iter().collect::<HashSet<_>>(), labels.iter().collect(), "{line}");
        }
    }
    for expected in [
        "outbox_oldest_pending_seconds 1.5",
        "relay_published_total{method=\"batch\"} 64",
        "relay_state{state=\"idle\"} 1",
        "relay_state{state=\"stalled\"} 0",
        "saga_compensation_total{action=\"release\"} 0",
        "saga_compensation_total{action=\"refund\"} 1",
        "dead_letter_count{state=\"dead\"} 2",
        "reconcile_verified_age_seconds 1.5",
        "janitor_rows_removed_total{table=\"idempotency\"} 1000",
        "database_pool_connections{state=\"used\"} 3",
        "outbox_publish_latency_seconds_bucket{le=\"0.005\"} 1",
        "outbox_publish_latency_seconds_bucket{le=\"0.0025\"} 0",
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
    }
}

fn is_series_of(line: &str, name: &str) -> bool {
    let series = line.split(['{', ' ']).next().unwrap_or_default();
    let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| series.strip_suffix(suffix));
    series == name || base == Some(name)
}

fn labels_of(line: &str) -> Vec<&str> {
    let Some((_, rest)) = line.split_once('{') else { return Vec::new() };
    rest.split("=\"")
        .filter_map(|part| part.rsplit(['"', ',', '{']).next())
        .filter(|name| !name.contains('}'))
        .collect()
}

#[test]
fn series_without_labels_are_visible_before_anything_happens() {
    let text = Exposition::of(|| {});
    for expected in ["outbox_pending_count 0", "saga_stuck_count 0", "reconcile_republished_total 0"] {
        assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
    }
}

#[test]
fn a_process_has_one_recorder_however_often_it_asks() {
    let first = install().unwrap();
    let second = install().unwrap();
    republished(7);
    assert!(first.render().contains("reconcile_republished_total 7"));
    assert!(second.render().contains("process_resident_memory_bytes "));
}

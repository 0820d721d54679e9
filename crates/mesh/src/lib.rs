//! The runtime: outbox, relay, inbox, delivery, consumer, HTTP, telemetry, lifecycle.

//! What a service tells about itself: metrics for alarms, traces for one order, logs for people.

mod log;
pub mod metrics;
mod otlp;
mod process;
pub mod trace;

pub use log::{LogFormat, Telemetry, TelemetryError};

//! The recorder of the process and its text form.

use std::sync::OnceLock;
use std::time::Duration;
use std::{io, thread};

use ::metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::{Definition, Kind, Metric};
use crate::telemetry::process;

/// Bucket bounds in seconds: a database round trip, a broker fsync, a slow handler, an outage.
const BUCKETS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// How often samples of histograms are folded into buckets when nobody scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Renders the metrics of the process.
#[derive(Debug, Clone)]
pub struct Exposition(PrometheusHandle);

/// Why metrics cannot be recorded.
#[derive(Debug, Clone, thiserror::Error)]
#[error("metrics cannot be recorded: {0}")]
pub struct InstallError(String);

static INSTALLED: OnceLock<Result<Exposition, InstallError>> = OnceLock::new();

/// Makes the process record its metrics. A second call returns the recorder of the first.
///
/// # Errors
/// When the process has a recorder of another kind.
pub fn install() -> Result<Exposition, InstallError> {
    INSTALLED
        .get_or_init(|| {
            let recorder = recorder().map_err(|error| InstallError(error.to_string()))?;
            let exposition = Exposition(recorder.handle());
            ::metrics::set_global_recorder(recorder).map_err(|error| InstallError(error.to_string()))?;
            describe();
            keep_up(exposition.0.clone()).map_err(|error| InstallError(error.to_string()))?;
            Ok(exposition)
        })
        .clone()
}

fn recorder() -> Result<PrometheusRecorder, BuildError> {
    Ok(PrometheusBuilder::new().set_buckets(&BUCKETS)?.build_recorder())
}

/// Keeps the memory of unscraped histograms bounded, on a thread that lives as long as the process.
fn keep_up(handle: PrometheusHandle) -> io::Result<()> {
    let upkeep = move || {
        loop {
            thread::park_timeout(UPKEEP_INTERVAL);
            handle.run_upkeep();
        }
    };
    thread::Builder::new().name("metrics-upkeep".to_owned()).spawn(upkeep).map(drop)
}

/// Registers the help texts, and every series without labels at 0: an alarm must tell "nothing happened" from "nobody
/// measures".
fn describe() {
    for Definition { name, kind, labels, help } in Metric::ALL.iter().map(|metric| metric.definition()) {
        match kind {
            Kind::Counter => describe_counter!(name, help),
            Kind::Gauge => describe_gauge!(name, help),
            Kind::Histogram => describe_histogram!(name, Unit::Seconds, help),
        }
        match kind {
            Kind::Counter if labels.is_empty() => counter!(name).increment(0),
            Kind::Gauge if labels.is_empty() => gauge!(name).set(0.0),
            _ => {}
        }
    }
}

impl Exposition {
    /// The Prometheus text format, with the process's usage as of now.
    #[must_use]
    pub fn render(&self) -> String {
        if let Some(usage) = process::usage() {
            super::process(usage);
        }
        self.0.render()
    }

    /// Runs `measure` with a recorder of its own and returns what it recorded: for tests, which share a process.
    #[cfg(test)]
    pub(crate) fn of(measure: impl FnOnce()) -> String {
        let recorder = recorder().expect("the buckets are not empty");
        ::metrics::with_local_recorder(&recorder, || {
            describe();
            measure();
        });
        recorder.handle().render()
    }
}

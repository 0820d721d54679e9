//! The subscriber of the process: where log lines and spans go.

use std::io::{self, IsTerminal};
use std::str::FromStr;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, ParseError, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use super::otlp::{self, OtlpError};
use crate::context::ServiceContext;

/// How long the last spans may take to leave at the end of the process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// One line for people.
    #[default]
    Text,
    /// One JSON object per line for collectors.
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("expected `text` or `json`"),
        }
    }
}

/// Why telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not in the syntax of `tracing_subscriber::EnvFilter`.
    #[error("the log filter cannot be read")]
    Filter(#[from] ParseError),
    /// Spans cannot be exported.
    #[error(transparent)]
    Otlp(#[from] OtlpError),
    /// The process logs already.
    #[error("the process has a log subscriber already")]
    Installed(#[from] TryInitError),
}

/// Logs and traces of the process, until it is dropped: then the spans that wait are sent, whatever else went wrong.
#[derive(Debug)]
#[must_use = "dropping it ends the export of spans"]
pub struct Telemetry {
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// Installs the subscriber of the process. Log lines go to standard output.
    ///
    /// # Errors
    /// [`TelemetryError`]; nothing is installed then.
    pub fn init(
        context: &ServiceContext,
        format: LogFormat,
        filter: &str,
        otlp_endpoint: Option<&str>,
    ) -> Result<Self, TelemetryError> {
        let filter = EnvFilter::try_new(filter)?;
        let provider = otlp::provider(otlp_endpoint, resource(context))?;
        tracing_subscriber::registry().with(lines(format).with_filter(filter)).with(spans(&provider)).try_init()?;
        Ok(Self { provider })
    }

    /// Sends the spans that wait and stops the export.
    pub fn shut_down(&self) {
        // A second call has nothing to do, and there is nobody left to tell about an unreachable collector but the log.
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH_TIMEOUT) {
            tracing::debug!(%error, "the last spans were not exported");
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// What every span of the process says about its origin.
fn resource(context: &ServiceContext) -> Resource {
    Resource::builder_empty()
        .with_service_name(context.name)
        .with_attributes([
            KeyValue::new("service.version", context.build),
            KeyValue::new("service.instance.id", context.instance.to_string()),
        ])
        .build()
}

fn lines<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stdout).with_ansi(io::stdout().is_terminal());
    match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_span_list(false).boxed(),
    }
}

/// Keeps a trace id for every span of level info and above, independent of the log filter: a quiet log must not cut a
/// trace.
pub(super) fn spans<S>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let scope = InstrumentationScope::builder("mesh").with_version(env!("CARGO_PKG_VERSION")).build();
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer_with_scope(scope))
        .with_location(false)
        .with_threads(false)
        .with_filter(filter_fn(is_traced))
}

/// Spans from info up, and the warnings and errors that happen in them.
fn is_traced(metadata: &Metadata<'_>) -> bool {
    let least = if metadata.is_span() { LevelFilter::INFO } else { LevelFilter::WARN };
    *metadata.level() <= least
}

//! Export of spans over OTLP/HTTP.

use std::future::Future;
use std::time::Duration;

use opentelemetry_otlp::{ExporterBuildError, SpanExporter as OtlpExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tokio::runtime::{Builder, Runtime};

/// How long one export may take before its spans are dropped.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where traces are posted below a collector's base address.
const TRACES_PATH: &str = "/v1/traces";

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The exporter refuses its endpoint.
    #[error("the OTLP exporter cannot be built")]
    Exporter(#[from] ExporterBuildError),
    /// No thread or no poller for the exporter.
    #[error("the OTLP exporter cannot start its runtime")]
    Runtime(#[from] std::io::Error),
}

/// A source of spans. With an endpoint they are exported in batches; without one they only have ids, which is what the
/// propagation of contexts needs.
pub(super) fn provider(endpoint: Option<&str>, resource: Resource) -> Result<SdkTracerProvider, OtlpError> {
    let builder = SdkTracerProvider::builder().with_resource(resource);
    Ok(match endpoint {
        Some(endpoint) => builder.with_batch_exporter(OwnRuntime::new(endpoint)?).build(),
        None => builder.build(),
    })
}

/// An exporter that brings the runtime of its HTTP client.
///
/// The batch processor drives exports on a thread of its own, where no tokio runtime is entered and the asynchronous
/// client would panic. With a private single-threaded runtime on that thread, a flush also works from any thread and
/// after the service's runtime has stopped.
#[derive(Debug)]
struct OwnRuntime {
    exporter: OtlpExporter,
    runtime: Runtime,
}

impl OwnRuntime {
    fn new(endpoint: &str) -> Result<Self, OtlpError> {
        let exporter = OtlpExporter::builder()
            .with_http()
            .with_endpoint(traces_url(endpoint))
            .with_timeout(EXPORT_TIMEOUT)
            .build()?;
        Ok(Self { exporter, runtime: Builder::new_current_thread().enable_all().build()? })
    }
}

impl SpanExporter for OwnRuntime {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        std::future::ready(self.runtime.block_on(self.exporter.export(batch)))
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// The address for traces: a collector's base address gets the path of the specification, a full one is kept.
fn traces_url(endpoint: &str) -> String {
    let base = endpoint.trim_end_matches('/');
    if base.ends_with(TRACES_PATH) { base.to_owned() } else { format!("{base}{TRACES_PATH}") }
}

#[cfg(test)]
mod tests;

//! Pages of servers and workers for monitoring systems: `/healthz` and `/metrics`.

use std::sync::Arc;

use cofferdam_mcp::MonitoringPage;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::records::CallLog;

/// A server or a worker that has such pages.
pub(crate) trait MonitoringSource: Send + Sync + 'static {
    /// Returns the current health.
    fn health(&self) -> HealthReport;

    /// Returns the metrics in the text format of Prometheus; `None` if there are none.
    fn metrics(&self) -> Option<String>;
}

/// Health of a server or a worker, with a line for each finding.
pub(crate) struct HealthReport {
    is_healthy: bool,
    lines: Vec<String>,
}

impl HealthReport {
    pub(crate) fn new(is_healthy: bool, state: impl Into<String>) -> Self {
        Self { is_healthy, lines: vec![state.into()] }
    }

    /// Adds the state of the call log. A log that cannot be written is unhealthy.
    pub(crate) fn with_log(mut self, log: Option<&CallLog>) -> Self {
        let Some(log) = log else { return self };
        let health = log.recorder().health();
        self.is_healthy &= !health.is_failing;
        self.lines.push(match health.is_failing {
            false => "the call log is written".to_owned(),
            true => "the call log cannot be written".to_owned(),
        });
        if health.dropped > 0 {
            self.lines.push(format!("not recorded: {}", health.dropped));
        }
        #[cfg(feature = "witness")]
        if let Some(witnesses) = log.witness_health() {
            self.lines.push(match (witnesses.is_failing, witnesses.error) {
                (false, _) => "witnesses sign the call log".to_owned(),
                (true, error) => {
                    format!("a witness does not sign the call log: {}", error.unwrap_or_default())
                }
            });
        }
        #[cfg(feature = "otlp")]
        if let Some(export) = log.export_health() {
            let state = if export.is_failing { "cannot be sent" } else { "are sent" };
            let counts = format!("{} sent, {} rejected", export.sent, export.rejected);
            self.lines.push(format!("spans {state}: {counts}"));
        }
        self
    }

    fn into_page(self) -> MonitoringPage {
        MonitoringPage {
            is_healthy: self.is_healthy,
            media_type: "text/plain; charset=utf-8",
            text: self.lines.iter().map(|line| format!("{line}\n")).collect(),
        }
    }
}

/// Serves the pages until `stop` is canceled. Every client that can connect may read them.
pub(crate) fn serve(
    listener: TcpListener,
    monitored: impl MonitoringSource,
    stop: CancellationToken,
) {
    let pages = move |path: &str| match path {
        "/healthz" => Some(monitored.health().into_page()),
        "/metrics" => monitored.metrics().map(|text| MonitoringPage {
            is_healthy: true,
            media_type: "text/plain; version=0.0.4",
            text,
        }),
        _ => None,
    };
    tokio::spawn(cofferdam_mcp::serve_monitoring(listener, Arc::new(pages), stop));
}

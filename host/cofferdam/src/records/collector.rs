//! `[records.otlp]`: a collector of OpenTelemetry that gets a span for each call.

use std::collections::BTreeMap;

use cofferdam_record::{OtlpExporter, OtlpHealth, OtlpOptions};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::CallLog;
use crate::Result;
use crate::config::{ConfigFile, sources};
use crate::error::Context as _;
use crate::granting::{ValueReader, Values};

/// `[records.otlp]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CollectorTable {
    /// Base endpoint, such as `http://localhost:4318`.
    url: Spanned<String>,
    /// Headers of each request, by name.
    #[serde(default)]
    headers: BTreeMap<String, Spanned<Value>>,
    /// Name of the service in spans.
    service: Option<String>,
}

impl CollectorTable {
    /// Returns the base endpoint.
    pub(super) fn url(&self) -> &str {
        self.url.get_ref()
    }
}

/// Checks the address of the collector, without reading the values of headers.
pub(crate) fn check(file: &ConfigFile) -> Result<()> {
    let Some(table) = &file.config.records.otlp else { return Ok(()) };
    let exporter = OtlpExporter::new(OtlpOptions::new(table.url.get_ref()));
    exporter.map_err(|error| file.error(table.url.span(), error.to_string()))?;
    Ok(())
}

/// Returns the exporter that a configuration asks for.
///
/// # Errors
/// Returns an error if the endpoint or a header is invalid.
pub fn exporter(file: &ConfigFile) -> Result<Option<OtlpExporter>> {
    let Some(table) = &file.config.records.otlp else { return Ok(None) };
    let headers = sources(&table.headers).map_err(|(span, message)| file.error(span, message))?;
    let headers = ValueReader::new(file, "records", "otlp", Values::Read).all(&headers)?;
    let mut options = OtlpOptions::new(table.url.get_ref());
    options.headers = headers.into_iter().collect();
    if let Some(service) = &table.service {
        options.service.clone_from(service);
    }
    let exporter = OtlpExporter::new(options);
    Ok(Some(exporter.map_err(|error| file.error(table.url.span(), error.to_string()))?))
}

impl CallLog {
    /// Sends spans of what is recorded from now on to a collector.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    ///
    /// # Panics
    /// If the caller is not within a Tokio runtime.
    pub(crate) fn export_to(&self, exporter: OtlpExporter) -> Result<()> {
        let follower = self.recorder.follow().context("the call log cannot be read")?;
        *self.export.lock() = Some(exporter.follow(follower));
        Ok(())
    }

    /// Returns the state of the export to a collector, if there is one.
    #[must_use]
    pub(crate) fn export_health(&self) -> Option<OtlpHealth> {
        let export = self.export.lock();
        export.as_ref().map(|export| export.health())
    }
}

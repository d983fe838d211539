//! Response formats in the dialect of an API.

use std::sync::Arc;

use cofferdam_agent::ResponseFormat;
use parking_lot::Mutex;
use serde_json::Value;

use super::Provider;

/// A response format, converted for one API.
#[derive(Debug)]
pub(super) struct WrittenFormat {
    pub(super) format: ResponseFormat,
    pub(super) schema: Value,
    /// True if the provider is asked to enforce the schema.
    pub(super) is_strict: bool,
    /// True if the API can express the schema; otherwise the instructions describe it.
    pub(super) has_native_form: bool,
}

/// Cache of the latest format, because requests of an agent have the same one.
#[derive(Debug, Default)]
pub(super) struct FormatCache(Mutex<Option<Arc<WrittenFormat>>>);

impl FormatCache {
    /// Returns the format in the dialect of a provider. Logs the constraints that the dialect
    /// cannot express, when it converts the format.
    pub(super) fn written(
        &self,
        provider: Provider,
        format: &ResponseFormat,
    ) -> Arc<WrittenFormat> {
        let mut latest = self.0.lock();
        if let Some(known) = latest.as_ref().filter(|known| known.format == *format) {
            return Arc::clone(known);
        }
        let written = Arc::new(WrittenFormat::write(provider, format));
        *latest = Some(Arc::clone(&written));
        written
    }
}

impl WrittenFormat {
    fn write(provider: Provider, format: &ResponseFormat) -> Self {
        let shown = format.schema().in_dialect(provider.dialect(true));
        let name = format.name();
        for loss in &shown.losses {
            tracing::warn!(%provider, format = name, %loss, "the provider does not enforce a part of a response format");
        }
        // The Messages API has no form without enforcement.
        let has_native_form = provider != Provider::Anthropic || shown.strict;
        Self {
            format: format.clone(),
            schema: shown.schema,
            is_strict: shown.strict,
            has_native_form,
        }
    }
}

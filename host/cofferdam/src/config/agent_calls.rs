//! `[agent.calls]`: middleware around the calls of agents.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use cofferdam_agent::Layer;
use cofferdam_agent::middleware::{RateLimit, Redaction, Retry, Timeout};
use cofferdam_tool::redact::Redactor;
use cofferdam_tool::retry::RetryPolicy;
use serde::Deserialize;
use toml::Spanned;

use super::ConfigFile;
use crate::granting::{ValueReader, Values};
use crate::{Error, Result};

/// Maximum number of retries of one call.
const RETRIES_MAX: u32 = 100;

/// `[agent.calls]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct AgentCallsTable {
    /// Secrets whose values are removed from results.
    redact: Vec<String>,
    /// Maximum rate of calls of each tool.
    rate: Option<CallRateTable>,
    /// Maximum seconds of a call with its retries.
    timeout: Option<NonZeroU64>,
    /// Maximum number of retries of a call that ends in a transient failure.
    retries: Option<Spanned<u32>>,
}

/// `rate = { calls = 10, seconds = 60 }`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
struct CallRateTable {
    calls: NonZeroUsize,
    seconds: NonZeroU64,
}

impl ConfigFile {
    /// Returns the middleware of `[agent.calls]`, from the outermost to the innermost. Agents with
    /// the same layers share their rate. Reads the secrets that are to be redacted.
    ///
    /// # Errors
    /// Returns an error for too many retries, and for a secret that does not exist, cannot be read,
    /// or is too short to be redacted.
    pub fn call_layers(file: Option<&Self>) -> Result<Vec<Layer>> {
        file.map_or_else(|| Ok(Vec::new()), |file| file.layers(Values::Read))
    }

    /// Returns whether secrets are redacted in results. Calls of programs pass no middleware, so
    /// their results contain the secrets.
    #[must_use]
    pub fn redacts_results(&self) -> bool {
        !self.config.agent.calls.redact.is_empty()
    }

    /// Checks `[agent.calls]` without reading secrets.
    pub(crate) fn check_call_layers(&self) -> Result<()> {
        self.layers(Values::Leave).map(drop)
    }

    fn layers(&self, values: Values) -> Result<Vec<Layer>> {
        let table = &self.config.agent.calls;
        let mut layers = Vec::new();
        let mut reader = ValueReader::new(self, "agent", "calls", values);
        for name in &table.redact {
            reader.secret(name)?;
        }
        if !reader.secrets().is_empty() {
            let secrets = reader.secrets().iter().map(|(name, value)| (name.as_str(), value));
            let redactor =
                Redactor::new(secrets).map_err(|error| Error::invalid(error.to_string()))?;
            layers.push(Layer::function(Redaction::new(redactor)));
        }
        if let Some(rate) = &table.rate {
            let within = Duration::from_secs(rate.seconds.get());
            layers.push(Layer::function(RateLimit::new(rate.calls.get(), within)));
        }
        if let Some(seconds) = table.timeout {
            layers.push(Layer::function(Timeout::new(Duration::from_secs(seconds.get()))));
        }
        if let Some(retries) = &table.retries {
            if *retries.get_ref() > RETRIES_MAX {
                let message = format!("expected at most {RETRIES_MAX} retries");
                return Err(self.error(retries.span(), message).into());
            }
            let policy = RetryPolicy::on_transient(*retries.get_ref());
            layers.push(Layer::function(Retry::new(policy.backoff)));
        }
        Ok(layers)
    }
}

//! `[[records.witness]]`: services that sign the checkpoints of the call log.

use cofferdam_record::{WitnessClient, WitnessHealth, WitnessKey, WitnessOptions, WitnessTask};
use serde::Deserialize;
use toml::Spanned;

use super::CallLog;
use crate::Result;
use crate::config::ConfigFile;

/// `[[records.witness]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WitnessTable {
    /// Submission prefix, such as `https://witness.example.com`.
    url: Spanned<String>,
    /// Key of the witness: `name+id+base64`.
    key: Spanned<String>,
}

/// Returns the keys of the witnesses that a configuration names.
///
/// # Errors
/// Returns an error if a key is invalid.
pub fn witness_keys(file: &ConfigFile) -> Result<Vec<WitnessKey>> {
    file.config.records.witness.iter().map(|table| key(file, table)).collect()
}

/// Returns the clients of the witnesses that a configuration names.
pub(super) fn clients(file: &ConfigFile) -> Result<Vec<WitnessClient>> {
    let client = |table: &WitnessTable| {
        let options = WitnessOptions::new(table.url.get_ref(), key(file, table)?);
        let client = WitnessClient::new(options);
        Ok(client.map_err(|error| file.error(table.url.span(), error.to_string()))?)
    };
    file.config.records.witness.iter().map(client).collect()
}

fn key(file: &ConfigFile, table: &WitnessTable) -> Result<WitnessKey> {
    let key = WitnessKey::parse(table.key.get_ref());
    Ok(key.map_err(|error| file.error(table.key.span(), error.to_string()))?)
}

impl CallLog {
    /// Offers the checkpoints of the log to witnesses while it is open.
    ///
    /// # Panics
    /// If the caller is not within a Tokio runtime.
    pub(crate) fn offer_to(&self, witnesses: Vec<WitnessClient>) {
        let task = WitnessTask::start(self.directory.clone(), witnesses);
        *self.witnesses.lock() = Some(task);
    }

    /// Returns the state of the offers to witnesses, if there are any.
    #[must_use]
    pub(crate) fn witness_health(&self) -> Option<WitnessHealth> {
        let task = self.witnesses.lock();
        task.as_ref().map(WitnessTask::health)
    }
}

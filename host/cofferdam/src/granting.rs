//! Resolves the grants of a plugin to open stores, values and rules.

use std::collections::BTreeMap;

use cofferdam_engine::{Grants, Mount};
use cofferdam_files::FileStore;
use cofferdam_tool::permission::SecretText;
use cofferdam_tool::{FileAccess, Limits};

use crate::Error;
use crate::config::{ConfigFile, GrantsTable, OfferedGrants, PluginConfig, ValueSource};
use crate::policy_files::{self, PolicyFile};
use crate::stores::Stores;

/// Mode of reading values: only a call needs them, and reading a secret may prompt the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Secrets and variables are read.
    Read,
    /// Secrets and variables are left empty.
    Leave,
}

/// Returns the grants of `plugin`, which the configuration of `stores` calls `name`.
pub(crate) fn of_plugin(
    name: &str,
    plugin: &PluginConfig,
    stores: &Stores<'_>,
) -> crate::Result<Grants> {
    let (file, values) = (stores.file(), stores.values());
    let offered = offered(file, plugin)?;
    resolve_offered(offered, ValueReader::new(file, "plugins", name, values), stores)
}

/// Returns an error if a limit is 0 so that no call can succeed.
///
/// # Errors
/// Returns the message, which names the limit.
pub(crate) fn check_limits(limits: &Limits) -> Result<(), String> {
    limits.zero_for_every_call().map_or(Ok(()), |key| {
        Err(format!(
            "the limit `{key}` is 0, so that no call can succeed; set it to at least 1, or leave it out"
        ))
    })
}

/// Returns the grants of `plugin` in `file`, without the values that they name.
pub(crate) fn offered(file: &ConfigFile, plugin: &PluginConfig) -> crate::Result<OfferedGrants> {
    let mut offered = OfferedGrants::default();
    if plugin.default_grants {
        file.config
            .grants
            .add_to(&mut offered)
            .map_err(|(span, message)| file.error(span, message))?;
    }
    plugin.grants.add_to(&mut offered).map_err(|(span, message)| file.error(span, message))?;
    Ok(offered)
}

/// Returns the grants of `[KIND.NAME]` in `file`.
pub(crate) fn of_table(
    file: &ConfigFile,
    kind: &str,
    name: &str,
    table: &GrantsTable,
    values: Values,
) -> crate::Result<Grants> {
    let mut offered = OfferedGrants::default();
    table.add_to(&mut offered).map_err(|(span, message)| file.error(span, message))?;
    resolve_offered(offered, ValueReader::new(file, kind, name, values), &Stores::new(file, values))
}

/// Opens the stores and reads the values of offered grants.
fn resolve_offered(
    offered: OfferedGrants,
    mut reader: ValueReader<'_>,
    stores: &Stores<'_>,
) -> crate::Result<Grants> {
    let mut mounts = Vec::new();
    for (mount, access) in &offered.policy.files {
        let span = offered.files_at.get(mount).cloned().unwrap_or_default();
        mounts.push(Mount {
            sharing: stores.sharing(mount),
            ..Mount::new(mount.clone(), stores.get(mount, span)?, *access)
        });
    }
    let headers = offered.policy.http.iter().flat_map(|grant| &grant.headers);
    let bound = headers.flat_map(|header| header.value.secrets());
    for secret in offered.policy.secrets.iter().map(String::as_str).chain(bound) {
        reader.secret(secret)?;
    }
    let env = reader.all(&offered.env)?;
    let config = reader.all(&offered.config)?;
    Ok(Grants {
        mounts,
        http: offered.policy.http,
        sockets: offered.policy.sockets,
        env,
        config,
        secrets: reader.secrets,
        readable_secrets: offered.policy.secrets,
        clock: offered.policy.clock,
        random: offered.policy.random,
        tools: offered.policy.tools,
        all_tools: false,
        ask: offered.policy.ask,
    })
}

/// Reads values from their sources, each secret once.
pub(crate) struct ValueReader<'a> {
    file: &'a ConfigFile,
    /// Table that the values are for, such as `plugins.text`.
    table: String,
    values: Values,
    secrets: BTreeMap<String, SecretText>,
}

impl<'a> ValueReader<'a> {
    /// Creates a reader for `[KIND.NAME]` of `file`.
    pub(crate) fn new(file: &'a ConfigFile, kind: &str, name: &str, values: Values) -> Self {
        Self { file, table: format!("{kind}.{name}"), values, secrets: BTreeMap::new() }
    }

    /// Returns whether values are read.
    pub(crate) fn values(&self) -> Values {
        self.values
    }

    /// Returns the secrets that were read.
    pub(crate) fn secrets(&self) -> &BTreeMap<String, SecretText> {
        &self.secrets
    }

    /// Counts a value that is no named secret as one, so that it is redacted.
    pub(crate) fn add_secret(&mut self, name: &str, value: &SecretText) {
        if self.values == Values::Read {
            self.secrets.insert(name.to_owned(), value.clone());
        }
    }

    /// Returns the secret with that name; empty with [`Values::Leave`].
    pub(crate) fn secret(&mut self, name: &str) -> crate::Result<SecretText> {
        let Some(source) = self.file.config.secrets.get(name) else {
            let message = format!(
                "[{}] names the secret `{name}`, which this file does not have; add to [secrets], for example: \
                 {name} = {{ env = \"{}\" }}",
                self.table,
                name.to_uppercase().replace('-', "_"),
            );
            return Err(self.file.error_in_table(&format!("[{}", self.table), message).into());
        };
        if self.values == Values::Leave {
            return Ok(SecretText::new(""));
        }
        if let Some(known) = self.secrets.get(name) {
            return Ok(known.clone());
        }
        let value = self.file.read_secret(name, source)?;
        self.secrets.insert(name.to_owned(), value.clone());
        Ok(value)
    }

    /// Returns the values of all `sources`.
    pub(crate) fn all(
        &mut self,
        sources: &BTreeMap<String, ValueSource>,
    ) -> crate::Result<BTreeMap<String, SecretText>> {
        sources.iter().map(|(name, source)| Ok((name.clone(), self.value(source)?))).collect()
    }

    /// Returns the value of `source`; empty with [`Values::Leave`], unless it is a literal.
    pub(crate) fn value(&mut self, source: &ValueSource) -> crate::Result<SecretText> {
        match source {
            ValueSource::Literal(text) => Ok(SecretText::new(text.as_str())),
            ValueSource::Secret(name) => self.secret(name),
            ValueSource::Env(_) if self.values == Values::Leave => Ok(SecretText::new("")),
            ValueSource::Env(name) => {
                let value = std::env::var(name).map_err(|_| {
                    Error::Invalid(format!(
                        "[{}] names the environment variable {name}, which is not set or not UTF-8",
                        self.table
                    ))
                })?;
                Ok(SecretText::new(value))
            }
        }
    }
}

/// Returns an error if a writable mount contains one of `files`, because a plugin could then grant
/// itself anything.
pub(crate) fn check_mounts(mounts: &[Mount], files: &[PolicyFile]) -> crate::Result<()> {
    policy_files::check_mounts(mounts, files).map_err(|error| usage(error.to_string()))
}

/// Returns an error if a writable store contains one of `files`. `name` describes the store to the
/// operator.
pub(crate) fn check_store(
    name: &str,
    store: &dyn FileStore,
    access: FileAccess,
    files: &[PolicyFile],
) -> crate::Result<()> {
    policy_files::check_store(name, store, access, files).map_err(|error| usage(error.to_string()))
}

fn usage(message: impl Into<String>) -> crate::Error {
    Error::Invalid(message.into())
}

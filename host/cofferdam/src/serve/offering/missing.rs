//! Permissions that plugins ask for and do not have.

use std::collections::BTreeSet;
use std::sync::Arc;

use cofferdam_engine::{Engine, Plugin};
use cofferdam_mcp::MissingGrant;
use cofferdam_tool::{Permission, ToolSource as _};

use super::ServedState;
use crate::compose::{self, PluginSpec};
use crate::error::Context as _;
use crate::loading::{self, LoadState};
use crate::{Error, consent, granting, policy_files};

impl ServedState {
    /// Returns the permissions that the operator can grant with a plain yes, by plugin.
    pub(in crate::serve) fn missing(&self) -> Vec<(String, Vec<MissingGrant>)> {
        self.missing_by(|spec, plugin| consent::missing_without_details(plugin, spec))
    }

    /// Returns all permissions that plugins ask for and do not have.
    pub(in crate::serve) fn not_granted(&self) -> Vec<(String, Vec<MissingGrant>)> {
        self.missing_by(|_, plugin| {
            let missing = &plugin.granted().missing;
            missing.iter().map(|missing| missing.permission.clone()).collect()
        })
    }

    fn missing_by(
        &self,
        missing: impl Fn(&PluginSpec, &Plugin) -> Vec<Permission>,
    ) -> Vec<(String, Vec<MissingGrant>)> {
        let of = |(spec, plugin): (&PluginSpec, &Arc<Plugin>)| {
            let missing = missing(spec, plugin).into_iter().map(|permission| MissingGrant {
                permission: permission.to_string(),
                in_plain_words: permission.in_plain_words(),
            });
            (plugin.name().to_owned(), missing.collect::<Vec<_>>())
        };
        self.ready().map(of).filter(|(_, missing)| !missing.is_empty()).collect()
    }

    /// Grants a plugin those of `permissions` that it is missing and that need no further details,
    /// and returns their names. If `is_lasting`, it also writes them to the configuration, if there
    /// is one.
    pub(in crate::serve) async fn grant_missing(
        &mut self,
        engine: &Engine,
        name: &str,
        permissions: &BTreeSet<String>,
        is_lasting: bool,
    ) -> crate::Result<Vec<String>> {
        let deciding = compose::policy_files_of(self.plugins.iter().map(|(spec, _)| spec));
        let found = self.plugins.iter_mut().find(|(spec, _)| spec.options.name.as_str() == name);
        let (spec, state) = found.with_context(|| format!("there is no plugin `{name}`"))?;
        let LoadState::Ready(plugin) = state else {
            return Err(Error::failed(format!("the plugin `{name}` is not available")));
        };
        let mut wider = spec.clone();
        let operator = &self.operator;
        let granted =
            consent::grant_without_details(plugin, &mut wider, permissions, is_lasting, operator)?;
        // The new grant may be a directory that has not been checked yet.
        granting::check_mounts(&wider.options.grants.mounts, &policy_files::locate(&deciding))?;
        *spec = wider;
        *state = LoadState::Ready(loading::load_again(engine, spec, &self.operator).await?);
        Ok(granted)
    }
}

//! Part of a plugin that its calls share: identity, grants, and values that are derived from them
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_network::Client;
use cofferdam_tool::record::PluginIdentity;
use cofferdam_tool::redact::{Redactor, UnusableSecret};
use cofferdam_tool::{PluginName, ToolName};
use hashbrown::HashMap;
use wasmtime_wasi_config::WasiConfigVariables;

use crate::Grants;

/// Identity and grants of a plugin, as its calls use them.
pub(crate) struct PluginContext {
    /// Name and digest.
    pub(crate) identity: PluginIdentity,
    pub(crate) grants: Arc<Grants>,
    /// Removes the secrets of `grants` from strings.
    pub(crate) redactor: Redactor,
    /// Configuration values of `grants`, for `wasi:config`.
    pub(crate) config: WasiConfigVariables,
    /// Sends HTTP requests.
    pub(crate) client: Client,
    /// True if the model sees the text of unexpected errors.
    pub(crate) shows_errors: bool,
    /// True for tools whose last call computed for long.
    computes: HashMap<ToolName, AtomicBool>,
}

impl PluginContext {
    /// Creates the context of a plugin with `tools`.
    ///
    /// # Errors
    /// If a secret is too short to be redacted.
    pub(crate) fn new(
        identity: PluginIdentity,
        grants: Grants,
        client: Client,
        tools: impl Iterator<Item = ToolName>,
    ) -> Result<Self, UnusableSecret> {
        let redactor = grants.redactor()?;
        let mut config = WasiConfigVariables::new();
        for (key, value) in &grants.config {
            config.insert(key, value.expose());
        }
        let computes = tools.map(|name| (name, AtomicBool::default())).collect();
        Ok(Self {
            identity,
            grants: Arc::new(grants),
            redactor,
            config,
            client: client.for_requester(),
            shows_errors: false,
            computes,
        })
    }

    /// Sets whether the model sees the text of unexpected errors.
    pub(crate) fn showing_errors(self, shows_errors: bool) -> Self {
        Self { shows_errors, ..self }
    }

    /// Creates the context of a plugin with no grants and no tools.
    ///
    /// # Errors
    /// Never fails: without secrets, none can be too short.
    pub(crate) fn without_grants(name: PluginName, client: Client) -> Result<Self, UnusableSecret> {
        let identity = PluginIdentity { name, digest: "".into() };
        Self::new(identity, Grants::default(), client, std::iter::empty())
    }

    /// Returns the configured name of the plugin.
    pub(crate) fn name(&self) -> &PluginName {
        &self.identity.name
    }

    /// Returns true if the last call of the tool computed for long.
    pub(crate) fn computes(&self, tool: &str) -> bool {
        self.computes.get(tool).is_some_and(|computes| computes.load(Ordering::Relaxed))
    }

    /// Records whether a call of the tool computed for long.
    pub(crate) fn set_computes(&self, tool: &str, computed: bool) {
        if let Some(computes) = self.computes.get(tool)
            // Calls on other cores read the flag, so it is only written when it changes.
            && computes.load(Ordering::Relaxed) != computed
        {
            computes.store(computed, Ordering::Relaxed);
        }
    }
}

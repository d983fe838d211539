//! What calls count the users of, in a copy for each core.
//!
//! A call holds on to what it was given, and its record to the names of what was called. Where cores count the users of the same
//! thing, each of them has to fetch the counter from another one with every call, which takes about as long as everything else
//! that is done with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cofferdam_network::Client;
use cofferdam_tool::{PluginIdentity, PluginName, ToolName};

use crate::engine::EngineInner;
use crate::places::Gate;
use crate::state::Given;

/// A plugin as the calls of one core hold on to it. On memory of its own: processors fetch two lines at a time.
#[repr(align(128))]
pub(crate) struct CoreCopy {
    /// Name and digest.
    pub(crate) identity: PluginIdentity,
    pub(crate) given: Arc<Given>,
    /// Sends requests.
    pub(crate) client: Client,
    /// Where the calls of the core come in.
    pub(crate) gate: Arc<Gate>,
    tools: HashMap<ToolName, AtomicBool>,
}

impl CoreCopy {
    /// What the first core has.
    pub(crate) fn first(
        engine: &EngineInner,
        identity: PluginIdentity,
        given: Given,
        tools: impl Iterator<Item = ToolName>,
    ) -> Self {
        Self {
            identity,
            given: Arc::new(given),
            client: engine.client.clone(),
            gate: Arc::clone(engine.gate(0)),
            tools: tools.map(|name| (name, AtomicBool::default())).collect(),
        }
    }

    /// The same for the core whose calls come in at `gate`. What is only read is shared with the first one.
    pub(crate) fn at(&self, gate: &Arc<Gate>) -> Self {
        let PluginIdentity { name, digest } = &self.identity;
        Self {
            identity: PluginIdentity { name: name.detached(), digest: Arc::from(&**digest) },
            given: Arc::clone(&self.given),
            client: self.client.clone(),
            gate: Arc::clone(gate),
            tools: self.tools.keys().map(|name| (name.detached(), AtomicBool::default())).collect(),
        }
    }

    /// The plugin's configured name.
    pub(crate) fn name(&self) -> &PluginName {
        &self.identity.name
    }

    /// A tool of the plugin, and whether its last call on this core computed for long.
    pub(crate) fn tool(&self, name: &ToolName) -> Option<(&ToolName, &AtomicBool)> {
        self.tools.get_key_value(name)
    }
}

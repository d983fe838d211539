//! Permissions of the loaded plugins, for the pages of an inspector.

use std::path::Path;

use super::ServedState;
use crate::compose::PluginSpec;
use crate::inspector::{PluginGrants, grants_of_plugin};
use crate::loading::LoadState;

impl ServedState {
    /// Returns the permissions of the plugins. `config` is the configuration that commands name.
    pub(in crate::serve) fn grants(&self, config: Option<&Path>) -> Vec<PluginGrants> {
        self.plugins.iter().map(|(spec, plugin)| of_plugin(spec, plugin, config)).collect()
    }
}

fn of_plugin(spec: &PluginSpec, plugin: &LoadState, config: Option<&Path>) -> PluginGrants {
    let problem = match plugin {
        LoadState::Ready(plugin) => return grants_of_plugin(plugin, config),
        LoadState::Loading => "it is being loaded".to_owned(),
        LoadState::Unavailable(unavailable) => format!("{:#}", unavailable.error()),
    };
    let plugin = spec.options.name.to_string();
    PluginGrants { plugin, problem: Some(problem), ..PluginGrants::default() }
}

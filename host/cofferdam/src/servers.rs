//! Remote MCP servers of the configuration: settings, connections, supervision and consent.

mod authorization;
pub mod connect;
mod pins;
mod settings;
mod supervised;

pub(crate) use self::connect::connect_all;
pub use self::connect::{ConnectOutcome, Unreachable, connect};
pub use self::pins::{ServerChange, ServerPins};
pub use self::settings::{ServerSpec, deciding_files, of_config, of_name, unknown};
pub use self::supervised::{ChangeSignal, SupervisedServer};
pub(crate) use self::supervised::{start_all, wait_for_all};

use crate::config::ConfigFile;
use crate::granting::Values;
use crate::{Operator, Result, Selection};

/// Returns whether the configuration names a server.
pub(crate) fn are_named(file: &ConfigFile) -> bool {
    !file.config.servers.is_empty()
}

/// Returns whether the configuration names this server.
pub(crate) fn is_named(file: &ConfigFile, name: &str) -> bool {
    file.config.servers.contains_key(name)
}

/// Checks the servers that toolsets of a configuration name.
pub(crate) fn check_toolsets(file: &ConfigFile) -> Result<()> {
    for server in file.config.toolsets.values().flat_map(|table| &table.servers) {
        if !is_named(file, server.get_ref()) {
            let message = format!("there is no server `{}`", server.get_ref());
            return Err(file.error(server.span(), message).into());
        }
    }
    Ok(())
}

/// Checks the servers of a configuration without reading values.
pub(crate) fn check(file: &ConfigFile) -> Result<()> {
    of_config(file, Values::Leave, &Operator::default()).map(drop)
}

/// Returns the servers of the configuration, with the timeout of the selection.
pub(crate) fn selected(
    selection: &Selection,
    config: Option<&ConfigFile>,
    operator: &Operator,
) -> Result<Vec<ServerSpec>> {
    let Some(config) = config else { return Ok(Vec::new()) };
    let mut specs = of_config(config, Values::Read, operator)?;
    if let Some(timeout) = selection.timeout {
        for spec in &mut specs {
            spec.settings.call_wait = timeout;
            spec.settings.tasks = spec.settings.tasks.with_max_task_wait(timeout);
        }
    }
    Ok(specs)
}

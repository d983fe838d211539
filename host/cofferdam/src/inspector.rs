//! Inspector of the call log: pages for a browser on this machine.

use std::path::PathBuf;
use std::sync::Arc;

pub use cofferdam_inspector::{
    GrantAdvice, Inspector, InspectorError, InspectorOptions, Workbench,
};
use cofferdam_tool::PluginName;

use crate::config::ConfigFile;
use crate::{Result, consent, records};

/// Beginning of advice that is a command.
const COMMAND_LABEL: &str = "to grant it: ";

/// Returns the options of an inspector for a log: that of `directory`, of a configuration, or of
/// the user. Commands that grant what was refused name the configuration.
///
/// # Errors
/// Returns an error if the home directory is needed and not known.
pub fn options_ambient(
    config: Option<&ConfigFile>,
    directory: Option<PathBuf>,
) -> Result<InspectorOptions> {
    let directory = directory.map_or_else(|| records::directory_ambient(config), Ok)?;
    let mut options = InspectorOptions::new(directory);
    let path = config.map(|config| config.path.clone());
    options.grant_advice = Arc::new(move |plugin, capability| {
        // A line of a log may have any name.
        let plugin = PluginName::new(plugin).ok()?;
        let advice = consent::how_to_grant(plugin.as_str(), capability, path.as_deref())?;
        Some(advice.strip_prefix(COMMAND_LABEL).map_or(advice.clone(), str::to_owned))
    });
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_the_command_that_grants() {
        let options = options_ambient(None, Some(PathBuf::from("log"))).unwrap();
        assert_eq!(options.directory, PathBuf::from("log"));
        let advice = |capability| (options.grant_advice)("weather", capability);
        assert_eq!(
            advice("http:GET https://example.com/").as_deref(),
            Some("--allow-http 'GET https://example.com/'")
        );
        assert_eq!(advice("wasi:sockets/tcp"), None);
        assert_eq!((options.grant_advice)("weather; id", "http:GET https://example.com/"), None);
    }
}

//! Starter configurations of `cofferdam config init`.

use std::fmt::Write as _;
use std::path::PathBuf;

use cofferdam_tool::{Permission, PluginName};

use crate::flags;

/// Plugin of a starter configuration.
pub struct StarterPlugin {
    /// Name of the plugin.
    pub name: PluginName,
    /// Component, relative to the configuration or absolute.
    pub component: PathBuf,
    /// Permissions that the plugin asks for and does not have without a grant.
    pub requested: Vec<Permission>,
}

/// Returns the first line of a configuration that this program creates.
pub(crate) fn header(file_name: &str) -> String {
    let file_name = flags::word(file_name);
    format!(
        "# Plugins, and what they may do. `cofferdam config check {file_name}` explains this \
         file.\n"
    )
}

/// Returns the text of a configuration that loads `plugins` and grants them nothing. Comments name
/// the permissions that they ask for, and the commands that grant them to the file `file_name`.
#[must_use]
pub fn text(file_name: &str, plugins: &[StarterPlugin]) -> String {
    let mut text = header(file_name);
    let file_name = flags::word(file_name);
    for StarterPlugin { name, component, requested } in plugins {
        let component = toml::Value::from(component.display().to_string());
        // Writing to a string cannot fail.
        let _ = write!(text, "\n[plugins.{name}]\ncomponent = {component}\n");
        if requested.is_empty() {
            text.push_str("# It asks for nothing beyond what a plugin has without a grant.\n");
            continue;
        }
        text.push_str("# It asks for these permissions and has none of them yet:\n");
        for permission in requested {
            let words = permission.in_plain_words();
            let _ = writeln!(text, "#   '{permission}'  to {words}");
        }
        let _ = writeln!(
            text,
            "# Grant one:  cofferdam grant {name} PERMISSION --config {file_name}\n\
             # Grant all:  cofferdam grant {name} --all-asked --config {file_name}"
        );
    }
    if plugins.is_empty() {
        text.push_str(
            "\n# [plugins.NAME]\n# component = \"plugin.wasm\"\n\n# [stores.data]\n# directory = \
             \"./data\"\n",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ComponentLocation, ConfigFile};

    #[test]
    fn a_starter_configuration_is_valid_and_grants_nothing() {
        let plugin = StarterPlugin {
            name: PluginName::new("web").unwrap(),
            component: PathBuf::from("a \"b\".wasm"),
            requested: vec!["http:GET https://a.example/".parse().unwrap()],
        };
        for plugins in [vec![], vec![plugin]] {
            let text = text("my tools.toml", &plugins);
            assert!(text.contains("`cofferdam config check 'my tools.toml'`"), "{text}");
            let file = ConfigFile::parse(std::path::Path::new("cofferdam.toml"), &text).unwrap();
            assert_eq!(file.config.plugins.len(), plugins.len(), "{text}");
            if let Some(plugin) = file.config.plugins.get("web") {
                assert_eq!(
                    plugin.component.get_ref(),
                    &ComponentLocation::File("a \"b\".wasm".into())
                );
                assert!(text.contains("#   'http:GET https://a.example/'  to "), "{text}");
                assert!(text.contains("grant web --all-asked --config 'my tools.toml'"), "{text}");
            }
        }
    }
}

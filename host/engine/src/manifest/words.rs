//! `[tools.NAME]`: descriptions of tools that are plain functions.

use std::collections::BTreeMap;

use cofferdam_tool::Annotations;
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

/// Descriptions of a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolWords {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    #[serde(default)]
    annotations: AnnotationWords,
    #[serde(default)]
    pub(super) parameters: BTreeMap<Spanned<String>, ParameterWords>,
}

/// Description of a parameter.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParameterWords {
    pub(crate) description: Option<String>,
    pub(crate) default: Option<Value>,
    pub(crate) examples: Option<Vec<Value>>,
}

/// [`Annotations`] in a file, where an unknown name is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct AnnotationWords {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
    long_running: Option<bool>,
}

impl ToolWords {
    pub(crate) fn parameter(&self, parameter: &str) -> Option<&ParameterWords> {
        self.parameters.iter().find(|(name, _)| name.get_ref() == parameter).map(|(_, words)| words)
    }

    pub(crate) fn annotations(&self) -> Annotations {
        let AnnotationWords { read_only, destructive, idempotent, open_world, long_running } =
            self.annotations;
        Annotations { read_only, destructive, idempotent, open_world, long_running }
    }
}

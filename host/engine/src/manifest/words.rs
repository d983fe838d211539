//! `[tools.NAME]`: descriptions of tools that are plain functions, and declarations of tools that
//! are a command.

use std::collections::BTreeMap;

use cofferdam_tool::Annotations;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml::Spanned;

/// Descriptions of a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ToolWords {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// Group of the tool.
    pub(crate) group: Option<String>,
    #[serde(default)]
    annotations: AnnotationWords,
    #[serde(default)]
    pub(super) parameters: BTreeMap<Spanned<String>, ParameterWords>,
    /// Schema of the arguments of a command's tool: a table, or JSON in a string.
    pub(crate) schema: Option<Spanned<Value>>,
    pub(crate) output_schema: Option<Spanned<Value>>,
    /// Command line after the name of the program.
    pub(crate) arguments: Option<Vec<Spanned<ArgumentWords>>>,
    /// Template of standard input.
    pub(crate) stdin: Option<Spanned<String>>,
    pub(crate) output: Option<OutputFormat>,
}

/// Form of a command's standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OutputFormat {
    #[default]
    Text,
    Json,
}

/// Word on a command line, or several that are left out together.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a string, or a list of strings")]
pub(crate) enum ArgumentWords {
    One(String),
    Group(Vec<String>),
}

impl ArgumentWords {
    /// Returns the templates of the words.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Group(texts) => texts,
        }
        .iter()
        .map(String::as_str)
    }
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

    /// Returns true if the tool has keys that only tools of a command have.
    pub(super) fn is_of_command(&self) -> bool {
        self.schema.is_some()
            || self.output_schema.is_some()
            || self.arguments.is_some()
            || self.stdin.is_some()
            || self.output.is_some()
    }

    pub(crate) fn annotations(&self) -> Annotations {
        let AnnotationWords { read_only, destructive, idempotent, open_world, long_running } =
            self.annotations;
        Annotations { read_only, destructive, idempotent, open_world, long_running }
    }
}

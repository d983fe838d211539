//! What a person adds to a typed plugin in a file beside the component: `<plugin>.toml`.
//!
//! ```toml
//! [tools.forecast]
//! description = "The weather of the next days."
//! annotations = { read-only = true }
//!
//! [tools.forecast.parameters.days]
//! description = "How many days."
//! default = 3
//! examples = [1, 7]
//! ```
//!
//! It overrides the docs in the component, field by field. It cannot add a tool, rename one, or change a type; what it
//! names has to exist, and a default has to be a value of its parameter (`ARG-38`). A plugin that declares its tools says
//! all this itself: a file beside it is not read.

use std::collections::BTreeMap;

use cofferdam_tool::Annotations;
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

/// Longest file: a plugin may not say more in all (`ARG-43`).
pub(crate) const SIDECAR_BYTES_MAX: u64 = 262_144;

/// A sidecar file, well-formed.
#[derive(Debug, Default)]
pub(crate) struct Sidecar {
    text: String,
    file: File,
}

/// Why a sidecar file is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct SidecarError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tools: BTreeMap<Spanned<String>, ToolWords>,
}

/// What is said about a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolWords {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    #[serde(default)]
    annotations: AnnotationWords,
    #[serde(default)]
    parameters: BTreeMap<Spanned<String>, ParameterWords>,
}

/// What is said about a parameter.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterWords {
    pub(super) description: Option<String>,
    pub(super) default: Option<Value>,
    pub(super) examples: Option<Vec<Value>>,
}

/// [`Annotations`] in a file in which a misspelt one is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct AnnotationWords {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
    long_running: Option<bool>,
}

impl Sidecar {
    /// Reads the text of a file.
    pub(crate) fn parse(text: &str) -> Result<Self, SidecarError> {
        let file = toml::from_str(text)
            .map_err(|error| at(text, error.span().map_or(0, |span| span.start), error.message()))?;
        Ok(Self { text: text.to_owned(), file })
    }

    /// Refuses words about tools and parameters that do not exist. `parameters` gives those of a tool.
    pub(super) fn check<'p>(
        &self,
        parameters: impl Fn(&str) -> Option<Vec<&'p str>>,
    ) -> Result<(), SidecarError> {
        for (tool, words) in &self.file.tools {
            let name = tool.get_ref();
            let Some(known) = parameters(name) else {
                return Err(self.unknown(tool, &format!("the plugin has no tool `{name}`")));
            };
            for parameter in words.parameters.keys() {
                let missing = parameter.get_ref();
                if !known.contains(&missing.as_str()) {
                    let message = format!("the tool `{name}` has no parameter `{missing}`");
                    return Err(self.unknown(parameter, &message));
                }
            }
        }
        Ok(())
    }

    pub(super) fn tool(&self, tool: &str) -> Option<&ToolWords> {
        self.file.tools.iter().find(|(name, _)| name.get_ref() == tool).map(|(_, words)| words)
    }

    fn unknown(&self, name: &Spanned<String>, message: &str) -> SidecarError {
        at(&self.text, name.span().start, message)
    }
}

impl ToolWords {
    pub(super) fn parameter(&self, parameter: &str) -> Option<&ParameterWords> {
        self.parameters.iter().find(|(name, _)| name.get_ref() == parameter).map(|(_, words)| words)
    }

    pub(super) fn annotations(&self) -> Annotations {
        let AnnotationWords { read_only, destructive, idempotent, open_world, long_running } =
            self.annotations;
        Annotations { read_only, destructive, idempotent, open_world, long_running }
    }
}

fn at(text: &str, offset: usize, message: &str) -> SidecarError {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    SidecarError { line, column, message: message.split_whitespace().collect::<Vec<_>>().join(" ") }
}

//! Manifest: what the author of a plugin states about it in addition to its code.
//!
//! It is TOML, from one of two sources: a custom section of the component, or a file next to the
//! component with the same name and the extension `.toml`. A table of the file replaces the same
//! table of the section, so that the operator who installs a plugin can correct its manifest
//! without changing its bytes.
//!
//! * `[permissions]` is what the plugin asks for. It grants nothing: the operator grants, see
//!   [`Policy`](cofferdam_tool::Policy). A plugin without this table takes whatever it is offered.
//! * `[limits]` is what the plugin needs, or restricts itself to.
//! * `[about]` is what a client may show: `icons`.
//! * `[tools.NAME]` describes tools that are plain functions, and declares those of a command, a
//!   component that exports `wasi:cli/run`. A component that declares its tools describes them
//!   itself.

mod about;
mod permissions;
pub(crate) mod sections;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_tool::permission::{Permissions, RequestedLimits, RequestedPermissions};
use serde::Deserialize;
use toml::Spanned;

use self::about::AboutTable;
use self::permissions::PermissionsTable;
pub(crate) use self::words::{OutputFormat, ToolWords};

/// Maximum size of a manifest in bytes: the limit for all descriptions of a plugin (`ARG-43`).
pub const MANIFEST_BYTES_MAX: u64 = 262_144;
/// Name of the custom section that contains a manifest.
const SECTION: &str = "cofferdam:manifest";

/// Both manifests of a plugin.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    beside: Option<ManifestText>,
    embedded: Option<ManifestText>,
}

/// Well-formed manifest.
#[derive(Debug)]
pub(crate) struct ManifestText {
    text: String,
    tables: Tables,
    permissions: Option<Permissions>,
    icons: Option<Vec<String>>,
}

/// Error in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ManifestError {
    /// Line, counted from 1.
    pub line: usize,
    /// Column, counted from 1, in characters.
    pub column: usize,
    /// Description of the problem.
    pub message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tables {
    about: Option<AboutTable>,
    permissions: Option<PermissionsTable>,
    limits: Option<RequestedLimits>,
    tools: BTreeMap<Spanned<String>, ToolWords>,
}

impl ManifestText {
    fn parse(text: &str) -> Result<Self, ManifestError> {
        let mut tables: Tables = toml::from_str(text).map_err(|error| {
            at(text, error.span().map_or(0, |span| span.start), error.message())
        })?;
        let permissions = tables.permissions.take().map(PermissionsTable::read).transpose();
        let permissions = permissions.map_err(|(offset, message)| at(text, offset, &message))?;
        let icons = tables.about.take().map(AboutTable::icons).transpose();
        let icons = icons.map_err(|(offset, message)| at(text, offset, &message))?;
        Ok(Self { text: text.to_owned(), tables, permissions, icons })
    }
}

impl Manifest {
    /// Parses the manifests of both sources.
    pub(crate) fn parse(
        beside: Option<&str>,
        embedded: Option<&str>,
    ) -> Result<Self, ManifestError> {
        let (beside, embedded) = (
            beside.map(ManifestText::parse).transpose()?,
            embedded.map(ManifestText::parse).transpose()?,
        );
        Ok(Self { beside, embedded })
    }

    fn texts(&self) -> impl Iterator<Item = &ManifestText> {
        self.beside.iter().chain(&self.embedded)
    }

    /// Returns the addresses of icons for the plugin.
    pub(crate) fn icons(&self) -> Vec<String> {
        self.texts().find_map(|text| text.icons.clone()).unwrap_or_default()
    }

    /// Returns the permissions and limits that the plugin asks for.
    pub(crate) fn requested(&self) -> RequestedPermissions {
        let permissions = self.texts().find_map(|text| text.permissions.clone());
        let limits = self.texts().find_map(|text| text.tables.limits.clone());
        match (permissions, limits) {
            (None, None) => RequestedPermissions::Unstated,
            (None, Some(limits)) => RequestedPermissions::UnstatedWithin(limits),
            (Some(permissions), limits) => RequestedPermissions::Stated(Box::new(Permissions {
                limits: limits.unwrap_or_default(),
                ..permissions
            })),
        }
    }

    /// Rejects descriptions of tools and parameters that do not exist. `parameters` returns those
    /// of a tool.
    pub(crate) fn check_words<'p>(
        &self,
        parameters: impl Fn(&str) -> Option<Vec<&'p str>>,
    ) -> Result<(), ManifestError> {
        for text in self.texts() {
            for (tool, words) in &text.tables.tools {
                let name = tool.get_ref();
                if words.is_of_command() {
                    let message = format!(
                        "the tool `{name}` is a function; only tools of a command have `schema`, \
                         `output-schema`, `arguments`, `stdin` and `output`"
                    );
                    return Err(text.unknown(tool, &message));
                }
                let Some(known) = parameters(name) else {
                    return Err(text.unknown(tool, &format!("the plugin has no tool `{name}`")));
                };
                let is_unknown =
                    |parameter: &&Spanned<String>| !known.contains(&parameter.get_ref().as_str());
                if let Some(parameter) = words.parameters.keys().find(is_unknown) {
                    let missing = parameter.get_ref();
                    let message = format!("the tool `{name}` has no parameter `{missing}`");
                    return Err(text.unknown(parameter, &message));
                }
            }
        }
        Ok(())
    }

    /// Rejects descriptions of the parameters of a command's tool, which its schema contains.
    pub(crate) fn check_parameters_in_schema(&self, tool: &str) -> Result<(), ManifestError> {
        for text in self.texts() {
            let words = text.tool(tool).map(|(_, words)| words);
            if let Some(parameter) = words.and_then(|words| words.parameters.keys().next()) {
                let name = parameter.get_ref();
                let message = format!(
                    "the tool `{tool}` is of a command: describe the parameter `{name}` in its `schema`"
                );
                return Err(text.unknown(parameter, &message));
            }
        }
        Ok(())
    }

    /// Returns the names of all described tools, in order.
    pub(crate) fn tool_names(&self) -> BTreeSet<&str> {
        self.texts()
            .flat_map(|text| text.tables.tools.keys().map(|name| name.get_ref().as_str()))
            .collect()
    }

    /// Returns the declaration of a tool of a command, with the manifest that contains it.
    pub(crate) fn command_tool(&self, tool: &str) -> Option<(&ManifestText, &ToolWords)> {
        let mut declared =
            self.texts().filter_map(|text| text.tool(tool).map(|(_, words)| (text, words)));
        declared.find(|(_, words)| words.schema.is_some())
    }

    /// Returns the error for a tool of a command that is described without a schema.
    pub(crate) fn without_schema(&self, tool: &str) -> ManifestError {
        let message = format!("the tool `{tool}` of a command has no `schema` for its arguments");
        let named = self.texts().find_map(|text| Some(text.unknown(text.tool(tool)?.0, &message)));
        named.unwrap_or(ManifestError { line: 1, column: 1, message })
    }

    /// Returns the descriptions of a tool.
    pub(crate) fn tool(&self, tool: &str) -> Option<&ToolWords> {
        self.texts().find_map(|text| text.tool(tool)).map(|(_, words)| words)
    }
}

impl ManifestText {
    /// Returns the table of a tool, with its name.
    fn tool(&self, tool: &str) -> Option<(&Spanned<String>, &ToolWords)> {
        self.tables.tools.iter().find(|(name, _)| name.get_ref() == tool)
    }

    fn unknown(&self, name: &Spanned<String>, message: &str) -> ManifestError {
        self.error_at(name.span().start, message)
    }

    /// Returns an error at an offset of the text.
    pub(crate) fn error_at(&self, offset: usize, message: &str) -> ManifestError {
        at(&self.text, offset, message)
    }
}

fn at(text: &str, offset: usize, message: &str) -> ManifestError {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    ManifestError {
        line,
        column,
        message: message.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Error of reading the manifest inside a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedManifestError {
    /// There is more than one section, and using any of them would be a guess.
    #[error("there is more than one section `{SECTION}`")]
    Several,
    /// The manifest is too long.
    #[error("it is longer than {MANIFEST_BYTES_MAX} bytes")]
    TooLong,
    /// The manifest is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
}

/// Returns the manifest inside a component as a string.
pub(crate) fn embedded(component: &[u8]) -> Result<Option<&str>, EmbeddedManifestError> {
    let mut sections = sections::custom_of_modules(component, SECTION);
    let Some(section) = sections.next() else { return Ok(None) };
    if sections.next().is_some() {
        return Err(EmbeddedManifestError::Several);
    }
    if u64::try_from(section.len()).unwrap_or(u64::MAX) > MANIFEST_BYTES_MAX {
        return Err(EmbeddedManifestError::TooLong);
    }
    std::str::from_utf8(section).map(Some).map_err(|_| EmbeddedManifestError::NotText)
}

/// Error of embedding a manifest into a component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The bytes are not a component.
    #[error("the file is not a WebAssembly component")]
    NotAComponent,
    /// The component already has a manifest.
    #[error("the component has a manifest already; rebuild it without one")]
    Present,
    /// The manifest breaks a rule.
    #[error("the manifest is not accepted: line {0}")]
    Manifest(#[from] ManifestError),
}

/// Adds `manifest` to `component` in a custom section.
///
/// # Errors
/// [`EmbedError`]. Rules that depend on the component's tools are not checked.
pub fn embed_manifest(component: &[u8], manifest: &str) -> Result<Vec<u8>, EmbedError> {
    if !component.starts_with(b"\0asm\x0d\0\x01\0") {
        return Err(EmbedError::NotAComponent);
    }
    ManifestText::parse(manifest)?;
    if !matches!(embedded(component), Ok(None)) {
        return Err(EmbedError::Present);
    }
    Ok(sections::with_custom(component, SECTION, manifest.as_bytes()))
}

#[cfg(test)]
mod tests;

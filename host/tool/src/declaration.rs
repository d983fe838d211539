//! A plugin's declarations of its tools, and the rules by which the host rejects them.

mod names;
mod reason;
mod review;
mod serialized;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::GROUP_KEYWORD;
use crate::{Annotations, InputSchema, OutputSchema, ToolDefinition, ToolName};

pub(crate) use reason::Reason;
pub use review::{Remark, Review, review};
pub use serialized::{DECLARATION_RULES, SerializedTool};

/// Maximum number of tools that one plugin may declare (`ARG-43`).
const TOOLS_MAX: usize = 128;
/// Longest description of a tool in bytes (`ARG-43`).
const DESCRIPTION_BYTES_MAX: usize = 4096;
/// Maximum total bytes of the definitions of one plugin (`ARG-43`).
const DEFINITIONS_BYTES_MAX: usize = 262_144;

/// Longest name of a group, in characters.
const GROUP_CHARS_MAX: usize = 64;
/// Longest part of a declaration quoted in a message, in characters.
const QUOTED_CHARS_MAX: usize = 400;

/// A tool as its plugin declares it, not validated yet.
///
/// The engine stores declarations on disk beside the compiled plugin, so that listing tools runs no
/// guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// Name within the plugin.
    pub name: String,
    /// Short display name.
    #[serde(default)]
    pub title: Option<String>,
    /// Description of the tool, for the model.
    pub description: String,
    /// JSON Schema of the arguments, unparsed because the rules apply to the JSON text itself
    /// (`ARG-38`, `ARG-42`).
    pub input_schema: String,
    /// JSON Schema of the result.
    #[serde(default)]
    pub output_schema: Option<String>,
    /// Hints about the effects of a call.
    #[serde(default)]
    pub annotations: Annotations,
    /// Group of the tool. Components that declare their tools state it as the keyword `x-group` at
    /// the top level of the input schema instead.
    #[serde(default)]
    pub group: Option<String>,
}

/// Error returned when a declaration, and with it the plugin, is rejected at load (`ARG-38`,
/// `ARG-42`, `ARG-43`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeclarationError {
    /// The declaration of one tool is invalid (`ARG-39`).
    #[error(
        "Tool '{}': invalid declaration at '{}': {}.",
        quoted(.tool),
        quoted(.pointer),
        quoted(.reason)
    )]
    Tool {
        /// Name of the tool as declared.
        tool: String,
        /// JSON Pointer into the input schema; empty for the declaration as a whole.
        pointer: String,
        /// Reason, as part of a sentence.
        reason: String,
    },
    /// The plugin declares more tools than a client should have to read.
    #[error("the plugin declares {count} tools, at most {TOOLS_MAX} are allowed")]
    TooManyTools {
        /// Number of tools declared.
        count: usize,
    },
    /// The definitions of the plugin are too long together.
    #[error(
        "the definitions of the plugin have {bytes} bytes, at most {DEFINITIONS_BYTES_MAX} are \
         allowed"
    )]
    TooLarge {
        /// Their total size in bytes.
        bytes: usize,
    },
}

/// Escapes and shortens a string that the plugin's author has chosen to one readable line of a
/// message.
fn quoted(text: &str) -> String {
    let mut line = String::new();
    for character in text.chars().take(QUOTED_CHARS_MAX) {
        if character.is_control() {
            line.extend(character.escape_unicode());
        } else {
            line.push(character);
        }
    }
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        line.push('…');
    }
    line
}

impl DeclarationError {
    pub(crate) fn at(tool: &str, pointer: &str, reason: &Reason) -> Self {
        Self::Tool {
            tool: tool.to_owned(),
            pointer: pointer.to_owned(),
            reason: reason.to_string(),
        }
    }

    fn of_tool(self, name: &str) -> Self {
        match self {
            Self::Tool { pointer, reason, .. } => {
                Self::Tool { tool: name.to_owned(), pointer, reason }
            }
            other => other,
        }
    }
}

impl Declaration {
    /// Returns a declaration with the three fields that every tool has. The others are empty.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: Annotations::default(),
            group: None,
        }
    }

    /// Compiles the declaration into a definition that decodes arguments.
    ///
    /// # Errors
    /// The first rule of `ARG-38`, `ARG-42` or `ARG-43` that the declaration breaks.
    pub fn compile(&self) -> Result<ToolDefinition, DeclarationError> {
        let name = tool_name(&self.name)?;
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            let reason = Reason::DescriptionTooLong { bytes_max: DESCRIPTION_BYTES_MAX };
            return Err(DeclarationError::at(&self.name, "", &reason));
        }
        let input = InputSchema::compile(&self.name, &self.input_schema)?;
        let output = match &self.output_schema {
            Some(declared) => Some(Arc::new(OutputSchema::compile(&self.name, declared)?)),
            None => None,
        };
        let group = self.group()?;
        Ok(ToolDefinition {
            name,
            title: self.title.clone(),
            description: self.description.clone(),
            input: Arc::new(input),
            output,
            annotations: self.annotations,
            group,
        })
    }

    /// Returns the group of the tool, from the declaration or its input schema.
    fn group(&self) -> Result<Option<String>, DeclarationError> {
        let group = match &self.group {
            Some(group) => Some(Value::from(group.as_str())),
            // An invalid schema is reported by its own rules.
            None => serde_json::from_str::<Value>(&self.input_schema).ok().and_then(|schema| {
                schema.get(GROUP_KEYWORD).filter(|group| !group.is_null()).cloned()
            }),
        };
        let Some(group) = group else { return Ok(None) };
        match group.as_str().filter(|group| is_group(group)) {
            Some(group) => Ok(Some(group.to_owned())),
            None => {
                Err(DeclarationError::at(&self.name, &format!("/{GROUP_KEYWORD}"), &Reason::Group))
            }
        }
    }

    /// Returns all errors for which [`Declaration::compile`] rejects the tool.
    fn refusals(&self) -> Vec<DeclarationError> {
        let mut refusals = Vec::from_iter(tool_name(&self.name).err());
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            let reason = Reason::DescriptionTooLong { bytes_max: DESCRIPTION_BYTES_MAX };
            refusals.push(DeclarationError::at(&self.name, "", &reason));
        }
        // An invalid name is already reported above and says nothing about the schema.
        let input = InputSchema::compile_or_explain("tool", &self.input_schema).err();
        let output = self.output_schema.as_ref();
        let output =
            output.and_then(|declared| OutputSchema::compile_or_explain("tool", declared).err());
        let all = input.into_iter().chain(output).flatten();
        refusals.extend(all.map(|error| error.of_tool(&self.name)));
        refusals
    }

    /// Returns the total size of the declaration's strings in bytes.
    fn bytes(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.name.len()
            + optional(&self.title)
            + self.description.len()
            + self.input_schema.len()
            + optional(&self.output_schema)
    }
}

/// Compiles all tools of one plugin, or none of them (`ARG-43`).
///
/// # Errors
/// Too many tools, too many bytes, two names that count as equal, or the first invalid declaration.
pub fn check_declarations(
    declarations: &[Declaration],
) -> Result<Vec<ToolDefinition>, DeclarationError> {
    if declarations.len() > TOOLS_MAX {
        return Err(DeclarationError::TooManyTools { count: declarations.len() });
    }
    let bytes = declarations.iter().map(Declaration::bytes).sum();
    if bytes > DEFINITIONS_BYTES_MAX {
        return Err(DeclarationError::TooLarge { bytes });
    }
    for declaration in declarations {
        tool_name(&declaration.name)?;
    }
    names::check_distinct(declarations.iter().map(|declaration| declaration.name.as_str()))?;
    declarations.iter().map(Declaration::compile).collect()
}

/// Returns all errors for which [`check_declarations`] rejects a plugin, tool by tool.
fn refusals(declarations: &[Declaration]) -> Vec<DeclarationError> {
    let mut refusals = Vec::new();
    if declarations.len() > TOOLS_MAX {
        refusals.push(DeclarationError::TooManyTools { count: declarations.len() });
    }
    let bytes = declarations.iter().map(Declaration::bytes).sum();
    if bytes > DEFINITIONS_BYTES_MAX {
        refusals.push(DeclarationError::TooLarge { bytes });
    }
    refusals.extend(names::taken(declarations.iter().map(|declaration| declaration.name.as_str())));
    // Tools beyond the maximum are not explained.
    for declaration in declarations.iter().take(TOOLS_MAX) {
        refusals.extend(declaration.refusals());
    }
    refusals
}

/// Returns whether a group has a valid name.
fn is_group(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=GROUP_CHARS_MAX).contains(&name.len()) && name.chars().all(fits)
}

/// Checks a tool's name (`ARG-38`).
pub(crate) fn tool_name(name: &str) -> Result<ToolName, DeclarationError> {
    ToolName::new(name).map_err(|error| DeclarationError::at(name, "", &Reason::Name(error)))
}

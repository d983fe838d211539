//! Declarations of tools in the language of the program.

pub(crate) mod python;
pub(crate) mod typescript;

use cofferdam_tool::ToolDefinition;

use crate::Language;
use crate::types::{ConvertedSchema, Property, Type, convert, pascal_case};

/// Maximum characters of a description of a tool or a property.
const DESCRIPTION_CHARS_MAX: usize = 400;

/// A tool as types.
pub(crate) struct TypedTool<'t> {
    /// Identifier in the program.
    pub(crate) id: &'t str,
    pub(crate) definition: &'t ToolDefinition,
    pub(crate) input: ConvertedSchema,
    pub(crate) output: Option<ConvertedSchema>,
    /// Type of the results that were seen, if none is declared.
    pub(crate) observed: Option<&'t Type>,
}

/// Returns the declaration of a tool, as source text of the language.
pub(crate) fn declaration(
    language: Language,
    id: &str,
    definition: &ToolDefinition,
    observed: Option<&Type>,
) -> String {
    let prefix = pascal_case(id);
    let output = definition.output.as_ref();
    let tool = TypedTool {
        id,
        definition,
        input: convert(definition.input.published(), &prefix),
        output: output.map(|schema| convert(schema.published(), &format!("{prefix}Result"))),
        observed: observed.filter(|_| output.is_none()),
    };
    match language {
        Language::JavaScript => typescript::declaration(&tool),
        Language::Python => python::declaration(&tool),
    }
}

/// Returns a description in one line, shortened.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Returns the comment of a property: its description, and what its type does not express.
fn comment(property: &Property) -> Option<String> {
    let description = property.description.as_deref().map(one_line);
    let parts = description.into_iter().chain(property.hints.iter().map(|hint| one_line(hint)));
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the properties of an argument object, if it is a plain object type.
fn arguments(input: &Type) -> Option<&[Property]> {
    match input {
        Type::Object(object) if object.rest.is_none() || object.properties.is_empty() => {
            Some(&object.properties)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;

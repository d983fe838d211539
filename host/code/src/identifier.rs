//! Names of tools as identifiers of a program.

use std::collections::HashMap;

use cofferdam_tool::ToolName;

use crate::{CodeError, Language};

/// Names that a property of `tools` cannot have in JavaScript: those that every object has, and
/// `then`, which would make `tools` look like a promise.
const JAVASCRIPT_TAKEN: [&str; 11] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "prototype",
    "then",
    "toJSON",
    "toLocaleString",
    "toString",
    "valueOf",
    "__proto__",
];

const PYTHON_KEYWORDS: [&str; 38] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "case", "class",
    "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
    "import", "in", "is", "lambda", "match", "nonlocal", "not", "or", "pass", "raise", "return",
    "try", "type", "while", "with", "yield",
];

/// Returns whether a name is a keyword of Python, so that it cannot name an attribute or argument.
pub(crate) fn is_python_keyword(name: &str) -> bool {
    // Soft keywords can be names.
    PYTHON_KEYWORDS.contains(&name) && !matches!(name, "case" | "match" | "type")
}

/// Returns the identifiers of tools, in their order: `-` and `.` become `_`, and a name that the
/// language reserves or that starts with a digit gets a `_` at its end or start.
///
/// # Errors
/// [`CodeError::SameIdentifier`] if two tools would get the same one.
pub(crate) fn identifiers<'n>(
    language: Language,
    names: impl Iterator<Item = &'n ToolName>,
) -> Result<Vec<String>, CodeError> {
    let mut owners: HashMap<String, &ToolName> = HashMap::new();
    let mut identifiers = Vec::new();
    for name in names {
        let identifier = identifier(language, name.as_str());
        if let Some(other) = owners.insert(identifier.clone(), name) {
            return Err(CodeError::SameIdentifier {
                first: other.clone(),
                second: name.clone(),
                identifier,
            });
        }
        identifiers.push(identifier);
    }
    Ok(identifiers)
}

fn identifier(language: Language, name: &str) -> String {
    let replaced = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let mut identifier: String = name.chars().map(replaced).collect();
    if identifier.starts_with(|c: char| c.is_ascii_digit()) {
        identifier.insert(0, '_');
    }
    let is_taken = match language {
        Language::JavaScript => JAVASCRIPT_TAKEN.contains(&identifier.as_str()),
        // Names with two underscores belong to Python's data model.
        Language::Python => is_python_keyword(&identifier) || identifier.starts_with("__"),
    };
    if is_taken && identifier.starts_with("__") {
        return identifier.trim_start_matches('_').to_owned() + "_";
    }
    if is_taken { identifier + "_" } else { identifier }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(language: Language, names: &[&str]) -> Result<Vec<String>, CodeError> {
        let names: Vec<_> = names.iter().map(|name| ToolName::new(*name).unwrap()).collect();
        identifiers(language, names.iter())
    }

    #[test]
    fn names_become_identifiers() {
        let given = ["word_count", "get-user", "a.b", "2fa", "constructor", "class", "__proto__"];
        assert_eq!(
            names(Language::JavaScript, &given).unwrap(),
            ["word_count", "get_user", "a_b", "_2fa", "constructor_", "class", "proto___"]
        );
        assert_eq!(
            names(Language::Python, &given).unwrap(),
            ["word_count", "get_user", "a_b", "_2fa", "constructor", "class_", "proto___"]
        );
    }

    #[test]
    fn two_tools_cannot_share_an_identifier() {
        let error = names(Language::Python, &["get-user", "get.user"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the tools 'get-user' and 'get.user' would both be `tools.get_user` in a program; \
             rename one of them"
        );
    }
}

//! Failures of programs, as a model reads them.

use cofferdam_sdk::ToolFailure;
use serde_json::{Map, Value};

use crate::source::Position;

/// Why a program failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Name of the error's type.
    pub type_name: String,
    /// Description.
    pub message: String,
    /// Where it happened.
    pub position: Option<Position>,
    /// Name of the tool that failed.
    pub tool: Option<String>,
    /// Kind of the tool's error.
    pub code: Option<String>,
    /// Advice.
    pub suggestion: Option<String>,
    /// Whether the message already tells where the problems are.
    is_complete: bool,
}

impl Failure {
    /// Creates a failure without a position.
    #[must_use]
    pub fn new(type_name: &str, message: impl Into<String>) -> Self {
        Self {
            type_name: type_name.to_owned(),
            message: message.into(),
            position: None,
            tool: None,
            code: None,
            suggestion: None,
            is_complete: false,
        }
    }

    /// Creates a failure of the parser.
    #[must_use]
    pub fn syntax(message: &str, position: Position) -> Self {
        Self { position: Some(position), ..Self::new("SyntaxError", message) }
    }

    /// Creates the failure of a program that has problems. Nothing of it has run.
    #[must_use]
    pub fn not_run<'a>(problems: impl Iterator<Item = (&'a str, Position)>) -> Self {
        let mut first = None;
        let mut lines = Vec::new();
        for (message, position) in problems {
            lines.push(format!("{message} {}", described(&position)));
            first.get_or_insert(position);
        }
        if let ([line], Some(position)) = (lines.as_mut_slice(), &first) {
            line.push_str(&quoted(position));
        }
        Self {
            position: first,
            is_complete: true,
            ..Self::new("CheckError", format!("not run: {}", lines.join("\n")))
        }
    }

    /// Returns the text for the model.
    #[must_use]
    pub fn text(&self) -> String {
        if self.is_complete {
            return self.message.clone();
        }
        let mut text = format!("{}: {}", self.type_name, self.message);
        if let Some(position) = &self.position {
            // After the first line, so that the position is part of it.
            let end = text.find('\n').unwrap_or(text.len());
            text.insert_str(end, &format!(" {}", described(position)));
            text.push_str(&quoted(position));
        }
        if let Some(suggestion) = &self.suggestion {
            text.push('\n');
            text.push_str(suggestion);
        }
        text
    }

    /// Returns the failure of the tool.
    #[must_use]
    pub fn into_tool_failure(self, logs: &str) -> ToolFailure {
        let mut error = Map::new();
        error.insert("type".to_owned(), self.type_name.as_str().into());
        error.insert("message".to_owned(), self.message.as_str().into());
        if let Some(position) = &self.position {
            error.insert("line".to_owned(), position.line.into());
            error.insert("column".to_owned(), position.column.into());
            error.insert("source".to_owned(), position.source.as_str().into());
        }
        let more = [("tool", &self.tool), ("code", &self.code), ("suggestion", &self.suggestion)];
        for (name, value) in more {
            if let Some(value) = value {
                error.insert(name.to_owned(), value.as_str().into());
            }
        }
        let mut value = Map::new();
        value.insert("error".to_owned(), Value::Object(error));
        if !logs.is_empty() {
            value.insert("logs".to_owned(), logs.into());
        }
        ToolFailure::new(self.text()).permanent().value(Value::Object(value))
    }
}

fn described(position: &Position) -> String {
    format!("(line {}, column {})", position.line, position.column)
}

fn quoted(position: &Position) -> String {
    format!("\n  {} | {}", position.line, position.source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_complete() {
        let position = Position { line: 3, column: 12, source: "const a = b.x.y".to_owned() };
        let failure = Failure {
            position: Some(position),
            ..Failure::new("TypeError", "cannot read property 'x' of undefined")
        };
        assert_eq!(
            failure.text(),
            "TypeError: cannot read property 'x' of undefined (line 3, column 12)\n  3 | const a = b.x.y"
        );
    }
}

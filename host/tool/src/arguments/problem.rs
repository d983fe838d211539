//! Problems with arguments, worded so that a model can act on them (`ARG-31`, `ARG-33`).

use std::fmt;

use super::path::Path;
use crate::schema::AllowedValues;

/// A problem with arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Path of the value (`ARG-32`); empty for the JSON or the object as a whole.
    pub path: String,
    /// Kind of problem.
    pub code: ProblemCode,
    /// Sentence for the model.
    pub message: String,
    /// Further sentences for the model that describe acceptable values. Shown after the message.
    pub hint: Option<String>,
}

/// Codes of `ARG-31`, in the alphabetical order of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProblemCode {
    /// The value violates a keyword of the schema.
    Constraint,
    /// The value is not one of the members.
    Enum,
    /// The value is of another kind.
    Kind,
    /// The JSON is too long or too deeply nested, or takes too much work.
    Limit,
    /// The input is not a JSON object.
    Malformed,
    /// The number is out of range.
    Range,
    /// A required argument is missing.
    Required,
    /// An argument is not declared, and undeclared ones are forbidden.
    Unexpected,
}

impl ProblemCode {
    /// Returns the name of the code in `ARG-31`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Constraint => "constraint",
            Self::Enum => "enum",
            Self::Kind => "kind",
            Self::Limit => "limit",
            Self::Malformed => "malformed",
            Self::Range => "range",
            Self::Required => "required",
            Self::Unexpected => "unexpected",
        }
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// All problems with the arguments of one call. Displays the messages, each followed by its hint,
/// joined by single spaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidArguments {
    problems: Vec<Problem>,
}

impl InvalidArguments {
    /// Sorts the problems (`ARG-31`). Of several for one path the first one found stays, because
    /// later ones would describe a value that is already wrong (`ARG-34`).
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|left, right| left.path.cmp(&right.path));
        problems.dedup_by(|later, earlier| later.path == earlier.path);
        Self { problems }
    }

    /// Returns the problems, sorted by path.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(&problem.message)?;
            if let Some(hint) = &problem.hint {
                write!(f, " {hint}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for InvalidArguments {}

/// Kind of a JSON value, in the words of `ARG-33`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundKind {
    Null,
    Boolean,
    /// A number; true if it is an integer literal.
    Number(bool),
    String,
    Array,
    Object,
}

impl FoundKind {
    fn words(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number(_) => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }

    pub(super) fn of(value: &serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) => Self::Number(!number.is_f64()),
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

fn problem(path: String, code: ProblemCode, message: String) -> Problem {
    Problem { path, code, message, hint: None }
}

fn whole(code: ProblemCode, message: String) -> InvalidArguments {
    InvalidArguments { problems: vec![problem(String::new(), code, message)] }
}

pub(super) fn malformed(tool: &str) -> InvalidArguments {
    whole(ProblemCode::Malformed, format!("Arguments for '{tool}' are not a JSON object."))
}

pub(super) fn too_large(tool: &str, bytes_max: usize) -> InvalidArguments {
    whole(ProblemCode::Limit, format!("Arguments for '{tool}' are larger than {bytes_max} bytes."))
}

pub(super) fn too_deep(tool: &str, levels_max: usize) -> InvalidArguments {
    whole(
        ProblemCode::Limit,
        format!("Arguments for '{tool}' are nested deeper than {levels_max} levels."),
    )
}

/// Reports a decoding that takes too much work. `docs/rules/arguments.md` does not define this
/// message, because it does not consider schemas whose alternatives explode.
pub(super) fn too_much_work(tool: &str) -> InvalidArguments {
    whole(ProblemCode::Limit, format!("Arguments for '{tool}' take too much work to check."))
}

pub(super) fn required(at: &Path<'_>, tool: &str) -> Problem {
    let path = at.to_string();
    let message = format!("Required argument '{path}' was not supplied to '{tool}'.");
    problem(path, ProblemCode::Required, message)
}

pub(super) fn kind(at: &Path<'_>, expected: &[&str], found: FoundKind) -> Problem {
    let path = at.to_string();
    let message =
        format!("Argument '{path}' must be {}, got {}.", expected.join(" or "), found.words());
    problem(path, ProblemCode::Kind, message)
}

pub(super) fn range(at: &Path<'_>, expected: &[&str]) -> Problem {
    let path = at.to_string();
    let message = format!("Argument '{path}' is out of range for {}.", expected.join(" or "));
    problem(path, ProblemCode::Range, message)
}

pub(super) fn not_a_member(at: &Path<'_>, members: &AllowedValues) -> Problem {
    let path = at.to_string();
    let members: Vec<String> = members.values.iter().map(ToString::to_string).collect();
    let message = format!("Argument '{path}' must be one of {}.", members.join(", "));
    problem(path, ProblemCode::Enum, message)
}

pub(super) fn unexpected(at: &Path<'_>, tool: &str, nearest: Option<&str>) -> Problem {
    let path = at.to_string();
    let mut message = format!("Unexpected argument '{path}' for '{tool}'.");
    if let Some(nearest) = nearest {
        message.push_str(&format!(" Did you mean '{nearest}'?"));
    }
    problem(path, ProblemCode::Unexpected, message)
}

pub(super) fn constraint(at: &Path<'_>, keyword: &str) -> Problem {
    let path = at.to_string();
    let message = format!("Argument '{path}' violates '{keyword}'.");
    problem(path, ProblemCode::Constraint, message)
}

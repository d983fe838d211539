//! Structured answers: decodes the text of a reply by a response format (`LOOP-65`).

use std::fmt;

use cofferdam_tool::arguments::{DecodeOptions, ProblemCode};
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};

use crate::ResponseFormat;

/// Mark at both ends of a block of code.
const FENCE: &str = "```";

/// Answer that does not have the form that a run asks for (`LOOP-66`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidAnswer {
    /// Name of the response format.
    pub format: String,
    /// Kind of the error.
    pub kind: InvalidAnswerKind,
    /// Text of the reply, as the model wrote it.
    pub text: String,
    /// Sentences that describe the differences from the format; empty unless the kind is
    /// [`InvalidAnswerKind::Mismatch`].
    pub problems: Vec<String>,
}

/// Kind of an [`InvalidAnswer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidAnswerKind {
    /// The model refused to answer, or its provider withheld the answer.
    Refusal,
    /// The reply reached the maximum number of tokens.
    TokenLimit,
    /// The text is not JSON or not valid by the schema, also after the repair round.
    Mismatch,
    /// The run ended before the model answered, for example with approval requests.
    Missing,
}

impl InvalidAnswer {
    pub(crate) fn new(format: &ResponseFormat, kind: InvalidAnswerKind, text: String) -> Self {
        Self { format: format.name().to_owned(), kind, text, problems: Vec::new() }
    }

    pub(crate) fn mismatch(format: &ResponseFormat, text: String, problems: Vec<String>) -> Self {
        Self { problems, ..Self::new(format, InvalidAnswerKind::Mismatch, text) }
    }
}

impl fmt::Display for InvalidAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = &self.format;
        match self.kind {
            InvalidAnswerKind::Refusal => {
                write!(f, "expected an answer in the form `{format}`, but the model refused")
            }
            InvalidAnswerKind::TokenLimit => write!(
                f,
                "the reply reached the maximum number of tokens before its answer in the form \
                 `{format}` was complete; raise the maximum"
            ),
            InvalidAnswerKind::Mismatch => write!(
                f,
                "the model's answer does not have the form `{format}`: {}",
                self.problems.join(" ")
            ),
            InvalidAnswerKind::Missing => {
                write!(f, "the run ended before the model answered in the form `{format}`")
            }
        }
    }
}

impl std::error::Error for InvalidAnswer {}

/// Decodes the text of a reply, or describes the differences from the format.
pub(crate) fn decode(format: &ResponseFormat, text: &str) -> Result<Value, Vec<String>> {
    let json = without_fence(text.trim());
    if !json.starts_with('{') {
        return Err(misplaced(json));
    }
    let decoded =
        format.schema().decode(format.name(), Some(json.as_bytes()), &DecodeOptions::default());
    let problems = match decoded {
        Ok(answer) => return Ok(answer.into_value()),
        Err(invalid) => invalid,
    };
    let problems = problems.problems();
    if problems.iter().any(|problem| problem.code == ProblemCode::Malformed) {
        return Err(misplaced(json));
    }
    let sentence = |hint: &Option<String>, message: &str| match hint {
        Some(hint) => format!("{message} {hint}"),
        None => message.to_owned(),
    };
    Err(problems.iter().map(|problem| sentence(&problem.hint, &problem.message)).collect())
}

/// Returns the content of a text that consists of one block of code.
fn without_fence(text: &str) -> &str {
    let block = text.strip_prefix(FENCE).and_then(|block| block.strip_suffix(FENCE));
    match block.and_then(|block| block.split_once('\n')) {
        Some((language, json))
            if matches!(language.trim().to_ascii_lowercase().as_str(), "" | "json") =>
        {
            json.trim()
        }
        _ => text,
    }
}

/// Describes text that is not one JSON object.
fn misplaced(text: &str) -> Vec<String> {
    if text.is_empty() {
        return vec!["The reply is empty.".to_owned()];
    }
    let Some((before, json)) = text.find('{').and_then(|start| text.split_at_checked(start)) else {
        return vec!["The reply is not a JSON object.".to_owned()];
    };
    let mut objects = Deserializer::from_str(json).into_iter::<IgnoredAny>();
    if let Some(Err(error)) = objects.next() {
        return vec![format!("The reply is not a JSON object: {error}.")];
    }
    let after = json.get(objects.byte_offset()..).unwrap_or_default();
    let sides = [("before", before), ("after", after)].into_iter();
    let sides = sides.filter(|(_, text)| !text.trim().is_empty());
    sides.map(|(side, _)| format!("There is text {side} the JSON object.")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn format() -> ResponseFormat {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer", "minimum": 0},
                "mood": {"enum": ["Good", "bad"]},
                "list": {"type": "array"},
            },
            "required": ["name"],
        });
        ResponseFormat::new("person", &schema.to_string()).unwrap()
    }

    fn check(text: &str, expected: Result<Value, &str>) {
        let decoded = decode(&format(), text).map_err(|problems| problems.join(" "));
        assert_eq!(decoded, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn answers_are_decoded_like_arguments() {
        check(r#"{"name":"A","age":7}"#, Ok(json!({"name": "A", "age": 7})));
        check(r#"{"name":"A","age":"7"}"#, Ok(json!({"name": "A", "age": 7})));
        check(r#"{"name":"A","mood":"GOOD"}"#, Ok(json!({"name": "A", "mood": "Good"})));
        // Strict modes make models write null for optional members.
        check(r#"{"name":"A","age":null,"mood":null}"#, Ok(json!({"name": "A"})));
        check(
            r#"{"age":-1}"#,
            Err("Argument 'age' violates 'minimum'. \
                 Required argument 'name' was not supplied to 'person'."),
        );
    }

    #[test]
    fn a_block_of_code_is_accepted_and_other_text_is_not() {
        for text in
            ["```json\n{\"name\":\"A\"}\n```", "```\n{\"name\":\"A\"}```", " \n{\"name\":\"A\"}\n"]
        {
            check(text, Ok(json!({"name": "A"})));
        }
        check("Sure: {\"name\":\"A\"}", Err("There is text before the JSON object."));
        check("{\"name\":\"A\"}\nDone.", Err("There is text after the JSON object."));
        check(
            "Here:\n```json\n{\"name\":\"A\"}\n```",
            Err("There is text before the JSON object. There is text after the JSON object."),
        );
        check("{\"name\":\"A\"}{}", Err("There is text after the JSON object."));
        check("null", Err("The reply is not a JSON object."));
        check("[1]", Err("The reply is not a JSON object."));
        check("", Err("The reply is empty."));
        check("```json\n```", Err("The reply is empty."));
        check(
            "{\"name\":",
            Err("The reply is not a JSON object: EOF while parsing a value at line 1 column 8."),
        );
    }

    #[test]
    fn deep_and_long_answers_are_bounded() {
        let deep =
            format!(r#"{{"name":"A","list":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        check(&deep, Err("Arguments for 'person' are nested deeper than 128 levels."));
        // Neither does text around it exhaust the stack.
        let error = decode(&format(), &format!("x {deep}")).unwrap_err();
        assert_eq!(error, ["There is text before the JSON object."]);
        let long = |bytes| format!(r#"{{"name":"{}"}}"#, "a".repeat(bytes));
        let largest = long((1 << 20) - 11);
        assert_eq!((largest.len(), decode(&format(), &largest).is_ok()), (1 << 20, true));
        check(&long(1 << 20), Err("Arguments for 'person' are larger than 1048576 bytes."));
    }
}

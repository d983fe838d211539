//! Conversion of a guest's question to the parameters of the MCP request, and of the MCP result to
//! an answer for the guest.
//!
//! A question is fully checked. Of an answer, only the outline is checked: the tool receives it as
//! a JSON string and must check it against the schema.

use cofferdam_tool::ask::QuestionKind;
use cofferdam_tool::output::parse_json;
use serde_json::{Map, Value, json};

use super::{ANSWERS_BYTES_MAX, QUESTION_BYTES_MAX};
use crate::guest::cofferdam::plugin::client::{Answer, Error, Request, Root};

/// Converts a request to the form of MCP.
pub(super) fn parameters(request: Request) -> Result<Map<String, Value>, Error> {
    let parameters = match request {
        Request::Form(form) => {
            check_length(form.message.len().saturating_add(form.schema.len()))?;
            let schema = object(&form.schema, "the schema of a form")?;
            json!({"mode": "form", "message": form.message, "requestedSchema": schema})
        }
        Request::Sample(text) => {
            check_length(text.len())?;
            Value::Object(object(&text, "a question to the model")?)
        }
        Request::Roots => json!({}),
    };
    match parameters {
        Value::Object(parameters) => Ok(parameters),
        _ => Err(Error::Invalid("a question is an object".to_owned())),
    }
}

fn check_length(bytes: usize) -> Result<(), Error> {
    if bytes <= QUESTION_BYTES_MAX {
        return Ok(());
    }
    Err(Error::Limit(format!(
        "a question has at most {QUESTION_BYTES_MAX} bytes; this one has {bytes}"
    )))
}

fn object(text: &str, what: &str) -> Result<Map<String, Value>, Error> {
    match parse_json(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Error::Invalid(format!("{what} is a JSON object"))),
        Err(error) => Err(Error::Invalid(format!("{what} is not JSON: {error}"))),
    }
}

/// Converts the answers to questions of these kinds.
pub(super) fn answers(kinds: &[QuestionKind], values: Vec<Value>) -> Result<Vec<Answer>, Error> {
    if values.len() != kinds.len() {
        return Err(Error::Failed("the client did not answer every question".to_owned()));
    }
    let answers = kinds.iter().zip(values).map(|(kind, value)| answer(*kind, value));
    let answers = answers.collect::<Option<Vec<_>>>();
    let answers =
        answers.ok_or_else(|| Error::Failed("the client's answer is not valid MCP".to_owned()))?;
    if answers.iter().map(bytes).fold(0, usize::saturating_add) > ANSWERS_BYTES_MAX {
        return Err(Error::Limit(format!("the answers have more than {ANSWERS_BYTES_MAX} bytes")));
    }
    Ok(answers)
}

fn answer(kind: QuestionKind, value: Value) -> Option<Answer> {
    let Value::Object(mut members) = value else { return None };
    match kind {
        QuestionKind::Elicitation => match members.get("action")?.as_str()? {
            "accept" => match members.remove("content").unwrap_or(Value::Null) {
                Value::Null => Some(Answer::Accepted("{}".to_owned())),
                content @ Value::Object(_) => Some(Answer::Accepted(content.to_string())),
                _ => None,
            },
            "decline" => Some(Answer::Declined),
            "cancel" => Some(Answer::Cancelled),
            _ => None,
        },
        QuestionKind::Sampling => Some(Answer::Message(Value::Object(members).to_string())),
        QuestionKind::Roots => {
            let Value::Array(roots) = members.remove("roots")? else { return None };
            roots.iter().map(root).collect::<Option<_>>().map(Answer::Roots)
        }
    }
}

fn root(value: &Value) -> Option<Root> {
    let uri = value.get("uri")?.as_str()?.to_owned();
    Some(Root { uri, name: value.get("name").and_then(Value::as_str).map(str::to_owned) })
}

/// Returns the number of bytes that an answer takes in the guest.
fn bytes(answer: &Answer) -> usize {
    match answer {
        Answer::Accepted(text) | Answer::Message(text) => text.len(),
        Answer::Declined | Answer::Cancelled => 0,
        Answer::Roots(roots) => roots
            .iter()
            .map(|root| {
                size_of::<Root>() + root.uri.len() + root.name.as_ref().map_or(0, String::len)
            })
            .fold(0, usize::saturating_add),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::cofferdam::plugin::client::Form;

    fn form(schema: &str) -> Request {
        Request::Form(Form { message: "Who?".to_owned(), schema: schema.to_owned() })
    }

    #[test]
    fn questions_become_parameters_of_mcp() {
        let said = |request| Value::Object(parameters(request).unwrap());
        assert_eq!(
            said(form(r#"{"type":"object"}"#)),
            json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object"}})
        );
        assert_eq!(said(Request::Sample(r#"{"maxTokens":5}"#.to_owned())), json!({"maxTokens": 5}));
        assert_eq!(said(Request::Roots), json!({}));
    }

    #[test]
    fn what_is_no_question_is_refused() {
        assert!(matches!(parameters(form("[]")), Err(Error::Invalid(_))));
        assert!(matches!(parameters(form("{")), Err(Error::Invalid(_))));
        assert!(matches!(parameters(Request::Sample("1".to_owned())), Err(Error::Invalid(_))));
        let long = |bytes: usize| Request::Sample(format!("{{{}}}", " ".repeat(bytes - 2)));
        assert!(parameters(long(QUESTION_BYTES_MAX)).is_ok());
        assert!(matches!(parameters(long(QUESTION_BYTES_MAX + 1)), Err(Error::Limit(_))));
    }

    #[test]
    fn answers_are_read_by_the_kind_of_their_question() {
        use QuestionKind::{Elicitation, Roots, Sampling};
        let kinds = [Elicitation, Elicitation, Elicitation, Sampling, Roots];
        let values = vec![
            json!({"action": "accept", "content": {"name": "A"}}),
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
            json!({"role": "assistant"}),
            json!({"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]}),
        ];
        let text = format!("{:?}", answers(&kinds, values).unwrap());
        for part in [
            r#"Accepted("{\"name\":\"A\"}")"#,
            "Declined",
            "Cancelled",
            r#"Message("{\"role\""#,
            "file:///b",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn answers_that_are_none_are_failures_of_the_client() {
        let kind = QuestionKind::Elicitation;
        for value in [
            json!(1),
            json!({}),
            json!({"action": "shrug"}),
            json!({"action": "accept", "content": 1}),
        ] {
            assert!(matches!(answers(&[kind], vec![value]), Err(Error::Failed(_))));
        }
        assert!(matches!(answers(&[kind], vec![]), Err(Error::Failed(_))));
        assert!(matches!(
            answers(&[QuestionKind::Roots], vec![json!({"roots": [{}]})]),
            Err(Error::Failed(_))
        ));
    }

    #[test]
    fn answers_have_a_length_together() {
        let kinds = [QuestionKind::Sampling; 2];
        let text = |bytes: usize| json!({"a": "x".repeat(bytes - 8)});
        let half = ANSWERS_BYTES_MAX / 2;
        assert!(answers(&kinds, vec![text(half), text(half)]).is_ok());
        assert!(matches!(answers(&kinds, vec![text(half), text(half + 1)]), Err(Error::Limit(_))));
    }
}

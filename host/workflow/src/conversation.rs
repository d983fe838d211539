//! Conversations in messages between executors.

use cofferdam_agent::{BoxError, Message, MessageContent, Response, Role};
use serde_json::Value;

use super::message::{MessageType, Payload};

/// Key of a message's `extra` that holds the id of the executor that wrote it.
const AUTHOR: &str = "author_name";

/// Returns the message types that an executor of conversations takes.
pub(super) fn accepted_types() -> Vec<MessageType> {
    let message = MessageType::named("message");
    vec![
        MessageType::Text,
        message.clone(),
        MessageType::list(message),
        MessageType::list(MessageType::Text),
        MessageType::list(MessageType::messages()),
    ]
}

/// Parses a payload as messages: strings become user messages, and nested lists are flattened.
pub(super) fn read(payload: &Payload) -> Result<Vec<Message>, BoxError> {
    let mut messages = Vec::new();
    read_value(&payload.value, &mut messages, 2)?;
    Ok(messages)
}

fn read_value(value: &Value, messages: &mut Vec<Message>, depth: u32) -> Result<(), BoxError> {
    match value {
        Value::String(text) => messages.push(Message::user(text)),
        Value::Array(list) if depth > 0 => {
            list.iter()
                .try_for_each(|value| read_value(value, messages, depth.saturating_sub(1)))?;
        }
        other => messages.push(serde_json::from_value(other.clone())?),
    }
    Ok(())
}

/// Returns the answer of an agent: its last message with content, without calls. The answer is
/// empty if the agent said nothing.
pub(super) fn answer(response: &Response, author: &str) -> Message {
    let said = response.messages.iter().rev().filter(|message| message.role == Role::Assistant);
    let contents =
        said.map(|message| message.contents.iter().filter(is_said).cloned().collect::<Vec<_>>());
    let contents = contents.into_iter().find(|contents| !contents.is_empty()).unwrap_or_default();
    by(Message::new(Role::Assistant, contents), author)
}

fn is_said(content: &&MessageContent) -> bool {
    match content {
        MessageContent::Text(text) => !text.text.is_empty(),
        MessageContent::Data(_) | MessageContent::Uri(_) => true,
        _ => false,
    }
}

/// Sets the author of a message.
pub(super) fn by(mut message: Message, author: &str) -> Message {
    message.extra.insert(AUTHOR.to_owned(), author.into());
    message
}

/// Returns the id of the executor that wrote a message, if an executor did.
pub(super) fn author(message: &Message) -> Option<&str> {
    message.extra.get(AUTHOR).and_then(Value::as_str)
}

/// Returns a conversation from the point of view of one agent: messages of other agents become user
/// messages. A model takes assistant messages for its own, and some APIs reject a conversation that
/// ends with one.
pub(super) fn as_heard_by(
    messages: &[Message],
    listener: &str,
    names_speakers: bool,
) -> Vec<Message> {
    let heard = messages.iter().map(|message| match author(message) {
        Some(speaker) if speaker != listener => {
            let mut heard = message.clone();
            heard.role = Role::User;
            if names_speakers {
                heard.contents.insert(0, MessageContent::text(format!("{speaker}: ")));
            }
            heard
        }
        _ => message.clone(),
    });
    heard.collect()
}

/// Returns a conversation as a string, for a prompt.
pub(super) fn transcript(messages: &[Message]) -> String {
    let lines = messages.iter().map(|message| {
        let speaker = author(message).unwrap_or(match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
            Role::Tool => "tool",
        });
        format!("{speaker}: {}", message.text())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_is_taken_becomes_messages() {
        let text = |payload: Value| -> Vec<String> {
            read(&Payload::json(payload)).unwrap().iter().map(Message::text).collect()
        };
        assert_eq!(text(json!("a")), ["a"]);
        assert_eq!(text(json!(["a", "b"])), ["a", "b"]);
        let message = json!({"role": "assistant", "contents": [{"type": "text", "text": "c"}]});
        assert_eq!(text(json!([[message], [message, message]])), ["c", "c", "c"]);
        assert!(read(&Payload::json(json!([[["too deep"]]]))).is_err());
        assert!(read(&Payload::json(json!(5))).is_err());
    }

    #[test]
    fn an_answer_is_what_was_said_last_without_calls() {
        let calls = Message::new(
            Role::Assistant,
            vec![MessageContent::text("I look."), MessageContent::call("1", "f", "{}")],
        );
        let silent = Message::new(Role::Assistant, vec![MessageContent::call("2", "g", "{}")]);
        let response =
            Response { messages: vec![Arc::new(calls), Arc::new(silent)], ..Response::default() };
        let answer = answer(&response, "a");
        assert_eq!(
            (answer.text().as_str(), author(&answer), answer.contents.len()),
            ("I look.", Some("a"), 1)
        );
    }

    #[test]
    fn others_are_heard_and_not_remembered_as_ones_own_words() {
        let said = [
            Message::user("hi"),
            by(Message::assistant("x"), "a"),
            by(Message::assistant("y"), "b"),
        ];
        let heard = as_heard_by(&said, "b", true);
        let roles: Vec<_> = heard.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::User, Role::Assistant]);
        assert_eq!(
            (heard[1].text().as_str(), transcript(&said).as_str()),
            ("a: x", "user: hi\na: x\nb: y")
        );
    }
}

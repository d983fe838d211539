//! Form of a conversation that the model sees.

use std::sync::Arc;

use crate::{ApprovalAnswer, Message, MessageContent, Pairing, Role};

/// New messages of a caller, with the answers to approval requests separated.
pub(super) struct NewMessages {
    /// Messages without the answers.
    pub(super) messages: Vec<Arc<Message>>,
    /// Answers of the user.
    pub(super) answers: Vec<ApprovalAnswer>,
}

impl NewMessages {
    /// Separates the answers from the messages. Messages that contain nothing else are dropped
    /// (`LOOP-37`).
    pub(super) fn new(messages: Vec<Arc<Message>>) -> Self {
        let mut input = Self { messages: Vec::new(), answers: Vec::new() };
        for message in messages {
            if !message
                .contents
                .iter()
                .any(|content| matches!(content, MessageContent::ApprovalAnswer(_)))
            {
                input.messages.push(message);
                continue;
            }
            let mut message = Arc::unwrap_or_clone(message);
            for content in std::mem::take(&mut message.contents) {
                match content {
                    MessageContent::ApprovalAnswer(answer) => input.answers.push(answer),
                    other => message.contents.push(other),
                }
            }
            if !message.contents.is_empty() {
                input.messages.push(Arc::new(message));
            }
        }
        input
    }
}

/// Returns the messages in a form that every provider accepts: the result of each call follows it
/// directly, and approvals are left out. Also left out are abandoned batches (`LOOP-44`),
/// unanswered calls, and results without a call, unless the service keeps the conversation and
/// therefore the call (`LOOP-4`).
pub(super) fn arranged(messages: &[Arc<Message>], is_stored_by_service: bool) -> Vec<Arc<Message>> {
    if messages.iter().all(|message| is_plain(message)) {
        return messages.to_vec();
    }
    let pairing = Pairing::of(messages);
    let mut arranged = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        if is_plain(message) {
            arranged.push(Arc::clone(message));
            continue;
        }
        if is_abandoned(messages, index, &pairing) {
            continue;
        }
        let mut shown = message.as_ref().clone();
        shown.contents.clear();
        let mut results = Vec::new();
        for (content_index, content) in message.contents.iter().enumerate() {
            let at = (index, content_index);
            match content {
                MessageContent::FunctionCall(_) if !pairing.is_of_service(at) => {
                    let Some(result) = pairing.result(messages, at) else { continue };
                    results.push(MessageContent::FunctionResult(result.clone()));
                    shown.contents.push(content.clone());
                }
                MessageContent::FunctionResult(_) if !pairing.stays(at, is_stored_by_service) => {}
                MessageContent::ApprovalRequest(_) | MessageContent::ApprovalAnswer(_) => {}
                _ => shown.contents.push(content.clone()),
            }
        }
        if !shown.contents.is_empty() {
            arranged.push(Arc::new(shown.clone()));
        }
        if !results.is_empty() {
            // The results belong to the same provider as their calls.
            let mut message = Message::new(Role::Tool, results);
            message.additional_properties = shown.additional_properties;
            arranged.push(Arc::new(message));
        }
    }
    arranged
}

/// Returns whether a message is shown unchanged, wherever it is.
fn is_plain(message: &Message) -> bool {
    message.contents.iter().all(|content| {
        matches!(
            content,
            MessageContent::Text(_)
                | MessageContent::Data(_)
                | MessageContent::Uri(_)
                | MessageContent::Reasoning(_)
        )
    }) && !message.contents.is_empty()
}

/// Returns whether a message requests approvals but none of its calls was ever decided or run.
fn is_abandoned(messages: &[Arc<Message>], index: usize, pairing: &Pairing) -> bool {
    let contents = messages.get(index).into_iter().flat_map(|message| &message.contents);
    let mut asks = false;
    let call_ids = contents.filter_map(|content| match content {
        MessageContent::ApprovalRequest(request) => {
            asks = true;
            Some(&request.function_call.call_id)
        }
        // Calls that needed no approval may have run at once (`LOOP-55`).
        MessageContent::FunctionCall(call) => Some(&call.call_id),
        _ => None,
    });
    let is_answered =
        call_ids.filter(|call_id| pairing.is_answered(messages, index, call_id)).count() > 0;
    asks && !is_answered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApprovalRequest;

    fn calls(ids: &[&str]) -> Message {
        Message::new(
            Role::Assistant,
            ids.iter().map(|id| MessageContent::call(*id, "f", "{}")).collect(),
        )
    }

    fn results(ids: &[&str]) -> Message {
        Message::new(Role::Tool, ids.iter().map(|id| MessageContent::result(*id, *id)).collect())
    }

    fn request(id: &str) -> MessageContent {
        let function_call = calls(&[id]).calls().next().unwrap().clone();
        MessageContent::ApprovalRequest(ApprovalRequest {
            id: "r".to_owned(),
            function_call,
            ..ApprovalRequest::default()
        })
    }

    fn shown(messages: Vec<Message>) -> Vec<String> {
        shown_to(messages, false)
    }

    fn shown_to(messages: Vec<Message>, is_stored_by_service: bool) -> Vec<String> {
        let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
        let line = |message: &Arc<Message>| {
            let ids = message.calls().map(|call| call.call_id.clone());
            let ids: Vec<_> =
                ids.chain(message.results().map(|result| result.call_id.clone())).collect();
            format!("{:?} {}{}", message.role, message.text(), ids.join(","))
        };
        arranged(&messages, is_stored_by_service).iter().map(line).collect()
    }

    #[test]
    fn results_come_right_behind_their_calls() {
        let messages = vec![
            Message::user("q"),
            calls(&["1", "2"]),
            Message::user("late"),
            results(&["2"]),
            results(&["1"]),
        ];
        assert_eq!(shown(messages), ["User q", "Assistant 1,2", "Tool 1,2", "User late"]);
    }

    #[test]
    fn an_id_that_is_used_again_keeps_its_own_result() {
        let messages = vec![calls(&["1"]), results(&["1"]), calls(&["1"]), results(&["1"])];
        assert_eq!(shown(messages), ["Assistant 1", "Tool 1", "Assistant 1", "Tool 1"]);
    }

    #[test]
    fn a_result_is_never_that_of_an_older_call_with_the_same_id() {
        // The first call was abandoned while it waited for approval; the second one ran.
        let asked = |text: &str| {
            let mut asked = calls(&["1"]);
            asked.contents.insert(0, MessageContent::text(text));
            asked.contents.push(request("1"));
            asked
        };
        let abandoned =
            || vec![Message::user("q"), asked("first "), Message::user("again"), asked("second ")];
        let mut made = abandoned();
        made.extend([results(&["1"]), Message::assistant("done")]);
        let expected = ["User q", "User again", "Assistant second 1", "Tool 1", "Assistant done"];
        assert_eq!(shown(made), expected);
        assert_eq!(shown(abandoned()), ["User q", "User again"]);
        // A result never belongs to a later call.
        assert_eq!(shown(vec![results(&["1"]), calls(&["1"])]), Vec::<String>::new());
        // One reply that uses an id twice, and a service's call between calls of the same id.
        let mut of_service = calls(&["1"]);
        of_service.contents.push(MessageContent::result("1", "s"));
        let messages = vec![
            calls(&["1", "1"]),
            results(&["1", "1"]),
            of_service,
            calls(&["1"]),
            results(&["1"]),
        ];
        let expected = ["Assistant 1,1", "Tool 1,1", "Assistant 1,1", "Assistant 1", "Tool 1"];
        assert_eq!(shown(messages), expected);
    }

    #[test]
    fn unanswered_calls_are_not_shown() {
        let mut unresolved = calls(&["1"]);
        unresolved.contents.insert(0, MessageContent::text("let me "));
        unresolved.contents.push(request("1"));
        let messages = vec![
            Message::user("q"),
            unresolved,
            calls(&["2"]),
            results(&["3"]),
            Message::user("r"),
        ];
        assert_eq!(shown(messages), ["User q", "User r"]);
    }

    #[test]
    fn a_message_without_contents_is_not_shown() {
        let empty = Message::new(Role::System, Vec::new());
        assert_eq!(
            shown(vec![Message::user("q"), empty, Message::user("r")]),
            ["User q", "User r"]
        );
    }

    #[test]
    fn calls_of_the_service_are_not_changed() {
        let mut message = calls(&["1"]);
        message.contents.push(MessageContent::result("1", "r"));
        assert_eq!(shown(vec![message.clone()]), ["Assistant 1,1"]);
    }

    #[test]
    fn a_result_without_its_call_is_for_a_service_that_has_the_call() {
        let messages = || vec![results(&["1"]), Message::user("q")];
        assert_eq!(shown(messages()), ["User q"]);
        assert_eq!(shown_to(messages(), true), ["Tool 1", "User q"]);
    }
}

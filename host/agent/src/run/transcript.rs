//! What of a conversation a model is shown.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::{ApprovalAnswer, Content, FunctionResult, Message, Role};

/// The new messages of a caller, apart from what a person said about approvals.
pub(super) struct Input {
    /// Everything else.
    pub(super) messages: Vec<Arc<Message>>,
    /// What a person said.
    pub(super) answers: Vec<ApprovalAnswer>,
}

impl Input {
    /// Takes the answers out of messages. A message that holds nothing else is gone (`LOOP-37`).
    pub(super) fn new(messages: Vec<Arc<Message>>) -> Self {
        let mut input = Self { messages: Vec::new(), answers: Vec::new() };
        for message in messages {
            if !message.contents.iter().any(|content| matches!(content, Content::ApprovalAnswer(_))) {
                input.messages.push(message);
                continue;
            }
            let mut message = Arc::unwrap_or_clone(message);
            for content in std::mem::take(&mut message.contents) {
                match content {
                    Content::ApprovalAnswer(answer) => input.answers.push(answer),
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

/// The messages in the form that every provider takes: each call has its result right behind it, and there is nothing about
/// approvals. A batch that was abandoned is not shown (`LOOP-44`), nor is a call that nobody has answered. A result without its
/// call is shown only where the service keeps the conversation, and with it the call (`LOOP-4`).
pub(super) fn arranged(messages: &[Arc<Message>], is_kept_by_service: bool) -> Vec<Arc<Message>> {
    if messages.iter().all(|message| is_plain(message)) {
        return messages.to_vec();
    }
    let mut results = Results::of(messages, is_kept_by_service);
    let mut arranged = Vec::with_capacity(messages.len());
    for message in messages {
        if is_plain(message) {
            arranged.push(Arc::clone(message));
            continue;
        }
        if is_abandoned(message, &results) {
            continue;
        }
        let (shown, answers) = results.shown(message);
        if !shown.contents.is_empty() {
            arranged.push(Arc::new(shown));
        }
        if !answers.is_empty() {
            arranged.push(Arc::new(Message::new(Role::Tool, answers)));
        }
    }
    arranged
}

/// Whether a message is shown as it is, wherever it stands.
fn is_plain(message: &Message) -> bool {
    message
        .contents
        .iter()
        .all(|content| matches!(content, Content::Text(_) | Content::Data(_) | Content::Reasoning(_)))
        && !message.contents.is_empty()
}

/// Results by the id of their call, in order: a model may use an id again.
struct Results {
    by_call: HashMap<String, Vec<FunctionResult>>,
    /// Calls that have their result in the same message: the service has made them (`LOOP-6`).
    of_service: HashSet<String>,
    /// Results whose call the service has.
    of_kept_calls: HashSet<String>,
}

impl Results {
    fn of(messages: &[Arc<Message>], is_kept_by_service: bool) -> Self {
        let (by_call, of_service) = (HashMap::new(), HashSet::new());
        let mut results = Self { by_call, of_service, of_kept_calls: HashSet::new() };
        if is_kept_by_service {
            let calls = messages.iter().flat_map(|message| message.calls());
            let called: HashSet<_> = calls.map(|call| &call.call_id).collect();
            let ids = messages.iter().flat_map(|message| message.results()).map(|result| &result.call_id);
            results.of_kept_calls = ids.filter(|id| !called.contains(id)).cloned().collect();
        }
        for message in messages {
            let called: HashSet<_> = message.calls().map(|call| &call.call_id).collect();
            for result in message.results() {
                if called.contains(&result.call_id) {
                    results.of_service.insert(result.call_id.clone());
                } else {
                    results.by_call.entry(result.call_id.clone()).or_default().push(result.clone());
                }
            }
        }
        for of_one in results.by_call.values_mut() {
            // Taken from the end.
            of_one.reverse();
        }
        results
    }

    /// Whether a result is not shown where it stands: it is behind its call, or nowhere.
    fn is_shown_elsewhere(&self, call_id: &str) -> bool {
        !self.of_service.contains(call_id) && !self.of_kept_calls.contains(call_id)
    }

    fn has(&self, call_id: &str) -> bool {
        self.by_call.get(call_id).is_some_and(|results| !results.is_empty())
    }

    /// What is shown of a message, and the results that come right behind it.
    fn shown(&mut self, message: &Message) -> (Message, Vec<Content>) {
        let mut shown = message.clone();
        shown.contents.clear();
        let mut answers = Vec::new();
        for content in &message.contents {
            match content {
                Content::FunctionCall(call) if !self.of_service.contains(&call.call_id) => {
                    let Some(result) = self.by_call.get_mut(&call.call_id).and_then(Vec::pop) else {
                        continue;
                    };
                    answers.push(Content::FunctionResult(result));
                    shown.contents.push(content.clone());
                }
                Content::FunctionResult(result) if self.is_shown_elsewhere(&result.call_id) => {}
                Content::ApprovalRequest(_) | Content::ApprovalAnswer(_) => {}
                _ => shown.contents.push(content.clone()),
            }
        }
        (shown, answers)
    }
}

/// Whether a message asks for approvals and none of the calls it asks about was ever decided.
fn is_abandoned(message: &Message, results: &Results) -> bool {
    let mut asked = message.contents.iter().filter_map(|content| match content {
        Content::ApprovalRequest(request) => Some(&request.function_call.call_id),
        _ => None,
    });
    let Some(first) = asked.next() else { return false };
    !std::iter::once(first).chain(asked).any(|call_id| results.has(call_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApprovalRequest;

    fn calls(ids: &[&str]) -> Message {
        Message::new(Role::Assistant, ids.iter().map(|id| Content::call(*id, "f", "{}")).collect())
    }

    fn results(ids: &[&str]) -> Message {
        Message::new(Role::Tool, ids.iter().map(|id| Content::result(*id, *id)).collect())
    }

    fn request(id: &str) -> Content {
        let function_call = calls(&[id]).calls().next().unwrap().clone();
        Content::ApprovalRequest(ApprovalRequest {
            id: "r".to_owned(),
            function_call,
            ..ApprovalRequest::default()
        })
    }

    fn shown(messages: Vec<Message>) -> Vec<String> {
        shown_to(messages, false)
    }

    fn shown_to(messages: Vec<Message>, is_kept_by_service: bool) -> Vec<String> {
        let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
        let line = |message: &Arc<Message>| {
            let ids = message.calls().map(|call| call.call_id.clone());
            let ids: Vec<_> = ids.chain(message.results().map(|result| result.call_id.clone())).collect();
            format!("{:?} {}{}", message.role, message.text(), ids.join(","))
        };
        arranged(&messages, is_kept_by_service).iter().map(line).collect()
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
    fn what_nobody_answered_is_not_shown() {
        let mut unresolved = calls(&["1"]);
        unresolved.contents.insert(0, Content::text("let me "));
        unresolved.contents.push(request("1"));
        let messages =
            vec![Message::user("q"), unresolved, calls(&["2"]), results(&["3"]), Message::user("r")];
        assert_eq!(shown(messages), ["User q", "User r"]);
    }

    #[test]
    fn what_the_service_called_itself_stays_as_it_is() {
        let mut message = calls(&["1"]);
        message.contents.push(Content::result("1", "r"));
        assert_eq!(shown(vec![message.clone()]), ["Assistant 1,1"]);
    }

    #[test]
    fn a_result_without_its_call_is_for_a_service_that_has_the_call() {
        let messages = || vec![results(&["1"]), Message::user("q")];
        assert_eq!(shown(messages()), ["User q"]);
        assert_eq!(shown_to(messages(), true), ["Tool 1", "User q"]);
    }
}

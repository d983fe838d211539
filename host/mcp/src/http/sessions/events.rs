//! Events of one stream, kept for a client that comes back for them.
//!
//! An event is kept as JSON, whose size is known: a parsed message takes many times as much memory.

use std::collections::VecDeque;

use rmcp::model::{
    CustomNotification, CustomRequest, CustomResult, ErrorData, RequestId, ServerJsonRpcMessage,
    ServerNotification, ServerRequest, ServerResult,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum number of events of a stream. The oldest are dropped first.
const EVENTS_MAX: usize = 256;
/// Maximum size of the events of a stream, in bytes of JSON. The last event is kept in any case.
const BYTES_MAX: usize = 1 << 20;

/// Events in the order in which they were sent, numbered from 1.
#[derive(Default)]
pub(super) struct Events {
    events: VecDeque<StoredEvent>,
    /// Number of events that were dropped.
    dropped: u64,
    bytes: usize,
}

struct StoredEvent {
    json: Box<str>,
    /// Message that no reader has taken yet. Only the last event of a stream has it.
    unread: Option<Box<ServerJsonRpcMessage>>,
}

impl Events {
    /// Adds an event. Its message is kept in parsed form for a reader that is waiting for it.
    pub(super) fn push(&mut self, message: ServerJsonRpcMessage, has_reader: bool) {
        let json = match serde_json::to_string(&message) {
            Ok(json) => json.into_boxed_str(),
            Err(error) => return tracing::error!(%error, "a message is not JSON"),
        };
        if let Some(last) = self.events.back_mut() {
            last.unread = None;
        }
        self.bytes = self.bytes.saturating_add(json.len());
        self.events.push_back(StoredEvent { json, unread: has_reader.then(|| Box::new(message)) });
        while self.events.len() > EVENTS_MAX || (self.bytes > BYTES_MAX && self.events.len() > 1) {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.json.len());
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// Returns the first event that is left from a number on, with its number.
    pub(super) fn read(&mut self, number: u64) -> Option<(u64, ServerJsonRpcMessage)> {
        let number = number.max(self.dropped.saturating_add(1));
        let index = usize::try_from(number.saturating_sub(self.dropped).saturating_sub(1)).ok()?;
        let event = self.events.get_mut(index)?;
        let message = match event.unread.take() {
            Some(message) => *message,
            None => parse(&event.json)?,
        };
        Some((number, message))
    }

    /// Returns the number of the last event, or 0 if there was none.
    pub(super) fn last(&self) -> u64 {
        self.dropped.saturating_add(u64::try_from(self.events.len()).unwrap_or(u64::MAX))
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Parses a message so that it is serialized as it was, but for missing parameters: the SDK writes
/// `null` for them, which is not valid.
fn parse(json: &str) -> Option<ServerJsonRpcMessage> {
    #[derive(Deserialize)]
    struct MessageParts {
        id: Option<RequestId>,
        method: Option<String>,
        params: Option<Value>,
        result: Option<Value>,
        error: Option<ErrorData>,
    }
    let MessageParts { id, method, params, result, error } = serde_json::from_str(json)
        .inspect_err(|error| tracing::error!(%error, "a kept message cannot be read"))
        .ok()?;
    let params = Some(params.unwrap_or_else(|| json!({})));
    Some(match (method, id, error) {
        (Some(method), Some(id), _) => {
            let request = CustomRequest::new(method, params);
            ServerJsonRpcMessage::request(ServerRequest::CustomRequest(request), id)
        }
        (Some(method), None, _) => {
            let notification = CustomNotification::new(method, params);
            ServerJsonRpcMessage::notification(ServerNotification::CustomNotification(notification))
        }
        (None, id, Some(error)) => ServerJsonRpcMessage::error(error, id),
        (None, id, None) => {
            let result = CustomResult::new(result.unwrap_or_default());
            ServerJsonRpcMessage::response(ServerResult::CustomResult(result), id?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(number: usize, bytes: usize) -> ServerJsonRpcMessage {
        let params = json!({"number": number, "text": "x".repeat(bytes)});
        let notification = CustomNotification::new("note", Some(params));
        ServerJsonRpcMessage::notification(ServerNotification::CustomNotification(notification))
    }

    #[test]
    fn the_oldest_events_are_dropped() {
        let mut events = Events::default();
        for number in 0..EVENTS_MAX * 2 {
            events.push(note(number, 0), true);
        }
        assert_eq!((events.events.len(), events.last()), (EVENTS_MAX, 512));
        assert_eq!(events.read(1).map(|(number, _)| number), Some(257));
        assert!(events.read(512).is_some() && events.read(513).is_none());
        for number in 0..4 {
            events.push(note(number, BYTES_MAX / 2), false);
        }
        assert_eq!(events.events.len(), 1);
        events.push(note(0, BYTES_MAX * 2), false);
        assert_eq!((events.events.len(), events.last()), (1, 517));
    }

    #[test]
    fn a_kept_event_is_what_was_sent() {
        for json in [
            r#"{"jsonrpc":"2.0","id":"a","result":{"content":[],"x":[1.5,{"z":1,"a":null}]}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"x","data":{"y":[]}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}"#,
        ] {
            let mut events = Events::default();
            events.push(parse(json).unwrap(), true);
            for _ in 0..2 {
                let (number, message) = events.read(0).unwrap();
                assert_eq!((number, serde_json::to_string(&message).unwrap()), (1, json.into()));
            }
        }
    }
}

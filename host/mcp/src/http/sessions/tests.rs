use std::pin::Pin;
use std::time::Duration;

use futures_util::{FutureExt as _, Stream, StreamExt as _};
use http::Method;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport as _;
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager as _,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

type Received = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send>>;

fn of_client(message: Value) -> ClientJsonRpcMessage {
    serde_json::from_value(message).unwrap()
}

fn call(id: u64) -> ClientJsonRpcMessage {
    let meta = json!({"progressToken": id});
    let params = json!({"name": "t", "arguments": {}, "_meta": meta});
    of_client(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// Open session of the principal `ann`.
struct Opened {
    sessions: Sessions,
    id: SessionId,
    transport: SessionTransport,
}

impl Opened {
    async fn new() -> Self {
        let sessions = Sessions::new(None);
        let (id, transport) = ann(sessions.create_session()).await.unwrap();
        Self { sessions, id, transport }
    }

    async fn call(&self, id: u64) -> Received {
        Box::pin(ann(self.sessions.create_stream(&self.id, call(id))).await.unwrap())
    }

    async fn listen(&self) -> Received {
        Box::pin(ann(self.sessions.create_standalone_stream(&self.id)).await.unwrap())
    }

    async fn resume(&self, last: &str) -> Option<Received> {
        ann(self.sessions.resume(&self.id, last.to_owned()))
            .await
            .ok()
            .map(|stream| Box::pin(stream) as _)
    }

    /// Sends a message of the handler.
    fn send(&mut self, message: Value) {
        let message: ServerJsonRpcMessage = serde_json::from_value(message).unwrap();
        self.transport.send(message).now_or_never().unwrap().unwrap();
    }

    fn note(&mut self, number: u64) {
        let params = json!({"level": "info", "data": number});
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
    }

    fn answer(&mut self, id: u64) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}));
    }
}

async fn ann<T>(future: impl Future<Output = T>) -> T {
    Principal::new("ann", None).answer(future).await
}

/// Returns the id of the next event, with its message; `None` if there is none yet.
fn next(stream: &mut Received) -> Option<(String, Value)> {
    let event = stream.next().now_or_never()?.unwrap();
    let message = event.message.map(|message| serde_json::to_value(&*message).unwrap());
    Some((event.event_id.unwrap(), message.unwrap_or_default()))
}

fn is_ended(stream: &mut Received) -> bool {
    matches!(stream.next().now_or_never(), Some(None))
}

#[tokio::test]
async fn calls_do_not_wait_for_a_client_that_does_not_read() {
    let mut session = Opened::new().await;
    let mut unread = session.listen().await;
    (0..1000).for_each(|number| session.note(number));
    let mut stream = session.call(1).await;
    session.answer(1);
    assert_eq!(next(&mut stream).unwrap().1, Value::Null);
    assert_eq!(next(&mut stream).unwrap().1["id"], 1);
    assert!(is_ended(&mut stream));
    // The oldest events were dropped.
    assert_eq!(next(&mut unread).unwrap().0, "0");
    let (id, note) = next(&mut unread).unwrap();
    assert_eq!((id.as_str(), &note["params"]["data"]), ("745", &json!(744)));
}

#[tokio::test]
async fn a_client_gets_the_rest_of_a_stream_that_broke() {
    let mut session = Opened::new().await;
    let mut stream = session.call(1).await;
    let (begin, _) = next(&mut stream).unwrap();
    let progress = json!({"progressToken": 1, "progress": 1.0});
    let progress =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress});
    session.send(progress.clone());
    let (first, message) = next(&mut stream).unwrap();
    assert_eq!(message, progress);
    drop(stream);
    session.answer(1);
    for (last, count) in [(&first, 1), (&begin, 2), (&first, 1)] {
        let mut rest = session.resume(last).await.unwrap();
        let events: Vec<_> = std::iter::from_fn(|| match rest.next().now_or_never()? {
            Some(event) => Some(event.message.unwrap()),
            None => None,
        })
        .collect();
        assert_eq!(events.len(), count);
        assert!(matches!(&**events.last().unwrap(), ServerJsonRpcMessage::Response(_)));
        assert!(is_ended(&mut rest));
    }
    assert!(session.resume("1/99").await.is_none() && session.resume("x").await.is_none());
    for id in 2..100 {
        drop(session.call(id).await);
        session.transport.receive().await.unwrap();
        session.answer(id);
    }
    assert!(session.resume(&first).await.is_none(), "too many calls have ended since");
    assert!(session.resume("0/197").await.is_some() || session.resume("0/195").await.is_some());
}

#[tokio::test]
async fn a_new_stream_repeats_nothing() {
    let mut session = Opened::new().await;
    let mut first = session.listen().await;
    session.note(1);
    assert_eq!(next(&mut first).unwrap().0, "0");
    assert_eq!(next(&mut first).unwrap().0, "1");
    drop(first);
    let mut second = session.listen().await;
    assert_eq!(next(&mut second).unwrap(), ("1".to_owned(), Value::Null));
    assert_eq!(next(&mut second), None);
    // The newest stream gets the events. The other one goes on after it.
    let mut third = session.listen().await;
    session.note(2);
    assert_eq!(next(&mut second), None);
    assert_eq!(next(&mut third).unwrap().1, Value::Null);
    assert_eq!(next(&mut third).unwrap().0, "2");
    drop(third);
    session.note(3);
    assert_eq!(next(&mut second).unwrap().0, "3");
    let mut resumed = session.resume("1").await.unwrap();
    assert_eq!(next(&mut resumed).unwrap().0, "2");
}

#[tokio::test]
async fn the_end_of_a_session_cancels_its_calls() {
    let mut session = Opened::new().await;
    let mut stream = session.call(1).await;
    session.transport.receive().await.unwrap();
    let bob = Principal::new("bob", None);
    bob.answer(session.sessions.close_session(&session.id)).await.unwrap();
    assert!(!bob.answer(session.sessions.has_session(&session.id)).await.unwrap());
    let checked = session.sessions.check(&session.id, "bob", &Method::DELETE).await;
    assert_eq!(checked, Err(SessionRefusal::Unknown));
    assert!(ann(session.sessions.has_session(&session.id)).await.unwrap());
    ann(session.sessions.close_session(&session.id)).await.unwrap();
    assert!(!ann(session.sessions.has_session(&session.id)).await.unwrap());
    let cancelled = serde_json::to_value(session.transport.receive().await.unwrap()).unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], 1);
    assert!(session.transport.receive().await.is_none() && is_ended(&mut stream));
}

#[tokio::test]
async fn the_id_of_a_running_call_is_refused() {
    let mut session = Opened::new().await;
    let mut first = session.call(1).await;
    let refused = session.call(1).await.next().await.unwrap().message.unwrap();
    assert!(matches!(&*refused, ServerJsonRpcMessage::Error(_)));
    // A canceled call has no answer.
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    ann(session.sessions.accept_message(&session.id, of_client(cancel))).await.unwrap();
    assert!(next(&mut first).is_some() && is_ended(&mut first));
    session.answer(1);
    drop(session.call(1).await);
}

#[tokio::test(start_paused = true)]
async fn a_session_in_use_does_not_expire() {
    let mut session = Opened::new().await;
    let stream = session.listen().await;
    let hour = Duration::from_hours(1);
    assert!(tokio::time::timeout(hour, session.transport.receive()).await.is_err());
    drop(stream);
    drop(session.call(1).await);
    session.transport.receive().await.unwrap();
    assert!(tokio::time::timeout(hour, session.transport.receive()).await.is_err());
    session.answer(1);
    let answered = Instant::now();
    assert!(session.transport.receive().await.is_none());
    assert_eq!(answered.elapsed().as_secs(), 300);
    assert!(!ann(session.sessions.has_session(&session.id)).await.unwrap());
}

#[tokio::test]
async fn sessions_are_limited_in_number() {
    let sessions = Sessions::new(None);
    let mut open = Vec::new();
    for _ in 0..PER_PRINCIPAL_MAX {
        open.push(ann(sessions.create_session()).await.unwrap());
    }
    assert!(matches!(ann(sessions.create_session()).await, Err(SessionError::TooMany)));
    let bob = Principal::new("bob", None);
    assert!(bob.answer(sessions.create_session()).await.is_ok());
    ann(sessions.close_session(&open[0].0)).await.unwrap();
    assert!(ann(sessions.create_session()).await.is_ok());
}

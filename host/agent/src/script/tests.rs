use std::time::Instant;

use futures_util::TryStreamExt as _;

use super::*;
use crate::{Message, ReplyBuilder, Role, TokenUsage};

const SCRIPT: &str = r#"
{"text":"I will add them.","calls":[{"tool":"add","arguments":{ "a":1, "b" : 2.0 }},{"tool":"now"}],"usage":{"input":5,"output":2}}

{"calls":[{"tool":"add","arguments_text":"{\"a\": 1,","id":"mine"}]}
{"text":"Three, naïvely."}
{"error":{"kind":"overloaded","message":"come back later","retry_after_ms":1500}}
{}
"#;

fn script() -> ScriptedClient {
    ScriptedClient::read("demo", SCRIPT.as_bytes()).unwrap()
}

#[tokio::test]
async fn a_script_is_played_line_by_line() {
    let client = script();
    let first = client.reply(ChatRequest::default()).await.unwrap();
    let contents = vec![
        MessageContent::text("I will add them."),
        MessageContent::call("call-1", "add", r#"{ "a":1, "b" : 2.0 }"#),
        MessageContent::call("call-2", "now", ""),
    ];
    assert_eq!(first.messages, [Message::new(Role::Assistant, contents)]);
    assert_eq!(
        first.usage,
        Some(TokenUsage { input: 5, output: 2, total: 7, ..TokenUsage::default() })
    );
    let request = ChatRequest {
        messages: first.messages.into_iter().map(Arc::new).collect(),
        ..ChatRequest::default()
    };
    let second = client.reply(request).await.unwrap();
    assert_eq!(second.messages[0].contents, [MessageContent::call("mine", "add", "{\"a\": 1,")]);
    assert_eq!(
        client.reply(ChatRequest::default()).await.unwrap().messages[0].text(),
        "Three, naïvely."
    );
    let error = client.reply(ChatRequest::default()).await.unwrap_err();
    assert_eq!(
        (error.kind, error.to_string().as_str()),
        (ChatErrorKind::Overloaded, "come back later")
    );
    assert_eq!(error.retry_after, Some(Duration::from_millis(1500)));
    assert_eq!(client.replies_left(), 1);
    assert_eq!(client.reply(ChatRequest::default()).await.unwrap().messages, []);
}

#[tokio::test]
async fn the_pieces_of_a_reply_are_the_reply() {
    let (whole, streamed) = (script(), script());
    for _ in 0..3 {
        let reply = whole.reply(ChatRequest::default()).await.unwrap();
        let pieces: Vec<_> =
            streamed.stream(ChatRequest::default()).await.unwrap().try_collect().await.unwrap();
        assert!(pieces.len() > 2, "{pieces:?}");
        let mut builder = ReplyBuilder::default();
        pieces.into_iter().for_each(|piece| builder.add(piece));
        assert_eq!(builder.build(), reply);
    }
    let texts = Message::new(
        Role::Assistant,
        vec![MessageContent::text("a b"), MessageContent::text("c"), MessageContent::text("")],
    );
    let reply = Reply { messages: vec![texts], ..Reply::default() };
    let mut builder = ReplyBuilder::default();
    pieces::of(reply.clone()).into_iter().for_each(|piece| builder.add(piece));
    assert_eq!(builder.build(), reply);
}

#[tokio::test]
async fn calls_of_one_conversation_have_different_ids() {
    let calling = || Reply {
        messages: vec![Message::new(Role::Assistant, vec![MessageContent::call("", "f", "{}")])],
        ..Reply::default()
    };
    let client = ScriptedClient::new([calling(), calling()]).recording();
    let mut messages = vec![Arc::new(Message::user("hi"))];
    for id in ["call-1", "call-2"] {
        let request = ChatRequest { messages: messages.clone(), ..ChatRequest::default() };
        let reply = client.reply(request).await.unwrap();
        assert_eq!(reply.messages[0].calls().next().unwrap().call_id, id);
        messages.extend(reply.messages.into_iter().map(Arc::new));
    }
    assert_eq!(
        client.requests().iter().map(|request| request.messages.len()).collect::<Vec<_>>(),
        [1, 2]
    );
}

#[tokio::test]
async fn ids_of_calls_are_not_repeated_after_a_compaction() {
    let call = |id| Message::new(Role::Assistant, vec![MessageContent::call(id, "f", "{}")]);
    let client = ScriptedClient::new([Reply { messages: vec![call("")], ..Reply::default() }]);
    // The calls 1 to 6 are no longer in the conversation.
    let messages = vec![Arc::new(call("call-7")), Arc::new(call("other"))];
    let reply = client.reply(ChatRequest { messages, ..ChatRequest::default() }).await.unwrap();
    assert_eq!(reply.messages[0].calls().next().unwrap().call_id, "call-8");
}

#[tokio::test]
async fn a_script_that_is_over_says_so_or_is_silent() {
    let client = ScriptedClient::new([Reply::text("bye")]);
    let silent = client.then(AfterScript::Silence);
    for client in [&client, &silent] {
        assert_eq!(client.reply(ChatRequest::default()).await.unwrap(), Reply::text("bye"));
    }
    let error = client.reply(ChatRequest::default()).await.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::ScriptEnded);
    assert_eq!(
        error.to_string(),
        "the script script is over: all 1 of its replies have been given"
    );
    assert_eq!(silent.reply(ChatRequest::default()).await.unwrap(), Reply::default());
}

#[tokio::test]
async fn waiting_ends_when_the_caller_gives_up() {
    let long = Duration::from_secs(600);
    let slow = |delay, pause| ScriptedReply { delay, pause, ..Reply::text("a b c").into() };
    for client in [slow(long, Duration::ZERO), slow(Duration::ZERO, long)] {
        let client = ScriptedClient::new([client]);
        let request = ChatRequest::default();
        let (cancellation, started) = (request.cancellation.clone(), Instant::now());
        let streamed = async { client.stream(request).await?.try_collect::<Vec<_>>().await };
        let (streamed, ()) = tokio::join!(streamed, async { cancellation.cancel() });
        assert_eq!(streamed.unwrap_err().kind, ChatErrorKind::Cancelled);
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn a_line_that_is_no_reply_is_named() {
    let read =
        |text: &str| ScriptedClient::read("s.jsonl", text.as_bytes()).unwrap_err().to_string();
    let error = read("{\"text\":\"a\"}\n\n{\"txt\":\"b\"}\n");
    assert!(
        error.starts_with("s.jsonl:3: not a reply of a scripted model: unknown field `txt`"),
        "{error}"
    );
    assert!(read("{\"calls\":[{}]}").contains("missing field `tool`"));
    assert!(read("{\"error\":{\"kind\":\"odd\"}}").contains("unknown variant `odd`"));
    for array in ["[]", r#"["x"]"#, "[1]"] {
        assert!(read(array).ends_with("expected a JSON object"), "{array}");
    }
    let not_text = ScriptedClient::read("s.jsonl", &b"\xff\xfe"[..]).unwrap_err();
    assert!(matches!(not_text, ScriptError::Unreadable { .. }), "{not_text}");
}

#[test]
fn a_script_without_end_is_refused_before_it_fills_the_memory() {
    let error = ScriptedClient::read("zeros", std::io::repeat(b' ')).unwrap_err();
    assert!(matches!(error, ScriptError::TooLarge { .. }), "{error}");
}

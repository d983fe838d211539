//! Tests of reading replies, including those of sloppy servers.

use cofferdam_agent::{ChatErrorKind, FinishReason, MessageContent};
use serde_json::{Value, json};

use super::*;

async fn calls(provider: Provider, text: &str) -> Vec<(String, String, String)> {
    of(&reply_to_events(provider, text).await.unwrap())
}

fn of(reply: &Reply) -> Vec<(String, String, String)> {
    let calls = reply.messages.iter().flat_map(|message| message.calls());
    calls.map(|call| (call.call_id.clone(), call.name.clone(), call.arguments.clone())).collect()
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

#[tokio::test]
async fn whole_and_streamed_replies_are_the_same() {
    for provider in Provider::ALL {
        let expected = conversations::expected(provider);
        assert_eq!(
            reply_to(provider, &conversations::whole(provider)).await.unwrap(),
            expected,
            "{provider}"
        );
        let text = conversations::in_events(provider);
        assert_eq!(reply_to_events(provider, &text).await.unwrap(), expected, "{provider}");
    }
}

#[tokio::test]
async fn a_server_that_streams_always_or_never_is_understood() {
    for provider in Provider::ALL {
        let expected = conversations::expected(provider);
        let server = Server::start(vec![ok(&conversations::whole(provider))]).await;
        assert_eq!(streamed(&server.client(provider), user("hi")).await.unwrap(), expected);
        let server = Server::start(vec![events(&conversations::in_events(provider))]).await;
        assert_eq!(server.client(provider).reply(user("hi")).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn text_is_handed_on_as_it_comes() {
    let first = data(&[json!({"choices": [{"delta": {"content": "now"}}]})]);
    let mut answer = events(&first);
    answer.push(Step::Hang);
    let server = Server::start(vec![answer]).await;
    let mut updates = server.client(Provider::OpenAiChat).stream(user("hi")).await.unwrap();
    let update = updates.next().await.unwrap().unwrap();
    assert_eq!(update.deltas, [cofferdam_agent::Delta::Text("now".to_owned())]);
}

fn tool_deltas(deltas: &[Value]) -> String {
    let chunks: Vec<_> =
        deltas.iter().map(|calls| json!({"choices": [{"delta": {"tool_calls": calls}}]})).collect();
    data(&chunks) + &data(&[json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})])
}

#[tokio::test]
async fn calls_of_sloppy_servers_are_distinguished() {
    let chat = Provider::OpenAiChat;
    // No index, each call whole in its own piece.
    let text = tool_deltas(&[
        json!([{"id": "a", "function": {"name": "f", "arguments": "{}"}}]),
        json!([{"id": "b", "function": {"name": "f", "arguments": "{}"}}]),
    ]);
    assert_eq!(calls(chat, &text).await, [call("a", "f", "{}"), call("b", "f", "{}")]);
    // No index, in pieces that repeat id and name.
    let text = tool_deltas(&[
        json!([{"id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}]),
        json!([{"id": "a", "function": {"name": "f", "arguments": "1}"}}]),
        json!([{"function": {"arguments": " "}}]),
    ]);
    assert_eq!(calls(chat, &text).await, [call("a", "f", "{\"x\":1} ")]);
    // The same index for all calls.
    let text = tool_deltas(&[
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]),
        json!([{"index": 0, "id": "b", "function": {"name": "g", "arguments": ""}}]),
        json!([{"index": 0, "function": {"arguments": "{}"}}]),
    ]);
    assert_eq!(calls(chat, &text).await, [call("a", "f", "{}"), call("b", "g", "{}")]);
    // Arguments as an object or missing, and a name that arrives late.
    let text = tool_deltas(&[
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"n": 1.0}}}]),
        json!([{"index": 1, "id": "b", "function": {"arguments": null}}]),
        json!([{"index": 1, "function": {"name": "g"}}]),
    ]);
    assert_eq!(calls(chat, &text).await, [call("a", "f", "{\"n\":1.0}"), call("b", "g", "")]);
}

#[tokio::test]
async fn calls_without_ids_get_some_that_no_other_call_has() {
    let text = tool_deltas(&[
        json!([{"function": {"name": "f", "arguments": "{\"x\":"}}, {"function": {"name": "f", "arguments": "{}"}}]),
        json!([{"id": "old", "function": {"name": "g", "arguments": "{}"}}]),
    ]);
    let server = Server::start(vec![events(&text)]).await;
    let before = Message::new(
        cofferdam_agent::Role::Assistant,
        vec![MessageContent::call("old", "g", "{}")],
    );
    let after = Message::new(cofferdam_agent::Role::Tool, vec![MessageContent::result("old", "1")]);
    let asked = request(vec![Message::user("hi"), before, after]);
    let reply = streamed(&server.client(Provider::OpenAiChat), asked).await.unwrap();
    let calls = of(&reply);
    let ids: std::collections::HashSet<_> = calls.iter().map(|(id, _, _)| id.as_str()).collect();
    assert_eq!((calls.len(), ids.len()), (3, 3), "{calls:?}");
    assert!(!ids.contains("old") && !ids.contains(""), "{calls:?}");
}

#[tokio::test]
async fn a_stream_needs_no_mark_at_its_end_when_the_model_has_said_that_it_is_done() {
    let done = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]});
    let text = data(std::slice::from_ref(&done));
    assert_eq!(reply_to_events(Provider::OpenAiChat, &text).await.unwrap().messages[0].text(), "x");
    // Without the empty line after the last event.
    let reply = reply_to_events(Provider::OpenAiChat, text.trim_end()).await.unwrap();
    assert_eq!(reply.finish, Some(FinishReason::Stop));
    // With an end marker, and without a finish reason.
    let text = data(&[json!({"choices": [{"delta": {"content": "x"}}]})]) + "data: [DONE]\n\n";
    assert_eq!(reply_to_events(Provider::OpenAiChat, &text).await.unwrap().messages[0].text(), "x");
    let text = conversations::in_events(Provider::Anthropic);
    let text =
        text.strip_suffix("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n").unwrap();
    let reply = reply_to_events(Provider::Anthropic, text).await.unwrap();
    assert_eq!(reply, conversations::expected(Provider::Anthropic));
}

#[tokio::test]
async fn a_server_that_is_done_and_does_not_hang_up_is_not_waited_for() {
    let done = data(&[json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]})]);
    for end in [Step::Hang, Step::Send(Vec::new())] {
        let server = Server::start(vec![[events(&done), vec![end]].concat()]).await;
        let mut settings = server.settings(Provider::OpenAiChat);
        settings.timeouts.pause = Duration::from_millis(200);
        let reply = streamed(&ProviderClient::new(settings).unwrap(), user("hi")).await.unwrap();
        assert_eq!(reply.messages[0].text(), "x");
    }
}

#[tokio::test]
async fn usage_that_comes_with_every_piece_is_not_added_up() {
    // A budget must not depend on a total that is less than its parts.
    let piece = |text: &str, tokens: u64, reason: Value| {
        let usage = json!({"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 0});
        json!({"choices": [{"delta": {"content": text}, "finish_reason": reason}], "usage": usage})
    };
    let text = data(&[piece("a", 1, Value::Null), piece("b", 2, "length".into())]);
    let reply = reply_to_events(Provider::OpenAiChat, &text).await.unwrap();
    assert_eq!(reply.usage.map(|usage| (usage.input, usage.output, usage.total)), Some((7, 2, 9)));
    assert_eq!(reply.finish, Some(FinishReason::Length));
}

#[tokio::test]
async fn a_text_in_parts_is_a_text() {
    let message = json!({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]});
    let reply =
        reply_to(Provider::OpenAiChat, &json!({"choices": [{"message": message}]})).await.unwrap();
    assert_eq!(reply.messages[0].text(), "ab");
}

#[tokio::test]
async fn numbers_of_an_input_are_preserved_as_written() {
    let body = r#"{"content":[{"type":"tool_use","id":"a","name":"f","input":{"n":12345678901234567890123, "e":1e999}}]}"#;
    let server = Server::start(vec![json_answer(200, "", body)]).await;
    let reply = server.client(Provider::Anthropic).reply(user("hi")).await.unwrap();
    assert_eq!(of(&reply)[0].2, r#"{"n":12345678901234567890123, "e":1e999}"#);
}

#[tokio::test]
async fn a_response_that_comes_in_one_event_is_read() {
    let response = conversations::whole(Provider::OpenAiResponses);
    let text = named(&[json!({"type": "response.completed", "response": response})]);
    let reply = reply_to_events(Provider::OpenAiResponses, &text).await.unwrap();
    assert_eq!(reply, conversations::expected(Provider::OpenAiResponses));
}

#[tokio::test]
async fn sources_that_a_response_cites_are_stored_with_the_text() {
    let cite = |start: u64| json!({"type": "url_citation", "url": "https://a.example", "start_index": start, "end_index": start + 1});
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [cite(0)]});
    let item = json!({"type": "message", "content": [part("h\u{e9}!"), part("b")]});
    let response = json!({"status": "completed", "output": [item.clone()]});
    let text = |delta: &str| json!({"type": "response.output_text.delta", "output_index": 0, "delta": delta});
    let stream = named(&[
        text("h\u{e9}"),
        text("!b"),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response.clone()}),
    ]);
    let provider = Provider::OpenAiResponses;
    for reply in [reply_to(provider, &response).await, reply_to_events(provider, &stream).await] {
        let contents = reply.unwrap().messages.remove(0).contents;
        let [MessageContent::Text(text)] = contents.as_slice() else { panic!("{contents:?}") };
        assert_eq!(text.text, "h\u{e9}!b");
        assert_eq!(text.extra["annotations"], json!([cite(0), cite(3)]));
    }
}

#[tokio::test]
async fn a_conversation_that_the_service_keeps_goes_on_by_its_id() {
    let answers = vec![
        ok(&conversations::whole(Provider::OpenAiResponses)),
        events(&conversations::in_events(Provider::OpenAiResponses)),
    ];
    let server = Server::start(answers).await;
    let mut settings = server.settings(Provider::OpenAiResponses);
    settings.store = true;
    let client = ProviderClient::new(settings).unwrap();
    assert!(client.keeps_conversation());
    let reply = client.reply(user("hi")).await.unwrap();
    assert_eq!(reply.conversation_id.as_deref(), Some("resp_1"));
    let next = ChatRequest { conversation_id: reply.conversation_id, ..user("more") };
    let reply = streamed(&client, next).await.unwrap();
    assert_eq!(reply.conversation_id.as_deref(), Some("resp_1"));
    let body = server.last_body();
    assert_eq!((&body["previous_response_id"], &body["store"]), (&json!("resp_1"), &json!(true)));
    assert_eq!(body["include"], Value::Null);
    for provider in [Provider::OpenAiChat, Provider::Anthropic] {
        let asked = ChatRequest { conversation_id: Some("x".to_owned()), ..user("more") };
        let error = server.client(provider).reply(asked).await.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::Configuration);
    }
}

#[tokio::test]
async fn a_refusal_is_text_with_its_own_finish_reason() {
    let message = json!({"role": "assistant", "content": null, "refusal": "No."});
    let chat = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
    let chunks = [
        json!({"choices": [{"delta": {"refusal": "N"}}]}),
        json!({"choices": [{"delta": {"refusal": "o."}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
    ];
    let part = json!({"type": "refusal", "refusal": "No."});
    let item = json!({"type": "message", "role": "assistant", "content": [part]});
    let response = json!({"id": "r", "status": "completed", "output": [item]});
    let of_responses = [
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "No."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response}),
    ];
    let messages = json!({"type": "message", "role": "assistant", "stop_reason": "refusal",
        "content": [{"type": "text", "text": "No."}]});
    let replies = [
        reply_to(Provider::OpenAiChat, &chat).await,
        reply_to_events(Provider::OpenAiChat, &data(&chunks)).await,
        reply_to(Provider::OpenAiResponses, &response).await,
        reply_to_events(Provider::OpenAiResponses, &named(&of_responses)).await,
        reply_to(Provider::Anthropic, &messages).await,
    ];
    for reply in replies {
        let reply = reply.unwrap();
        assert_eq!(
            (reply.messages[0].text().as_str(), &reply.finish),
            ("No.", &Some(FinishReason::Refusal))
        );
    }
}

//! Tests of Gemini behind the address that is compatible with Chat Completions: every call is
//! signed, and the signature has to go back.

use cofferdam_agent::{MessageContent, Role};
use serde_json::json;

use super::*;

const API: Provider = Provider::OpenAiChat;

fn signature(text: &str) -> Value {
    json!({"google": {"thought_signature": text}})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "echo", "arguments": arguments}})
}

fn signed(id: &str, arguments: &str) -> Value {
    let mut call = call(id, arguments);
    call["extra_content"] = signature(id);
    call
}

fn whole(calls: &Value) -> Answer {
    ok(&json!({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}))
}

fn in_events(deltas: &[Value]) -> Answer {
    let chunk = |calls: &Value| json!({"choices": [{"delta": {"tool_calls": calls}}]});
    let mut chunks: Vec<_> = deltas.iter().map(chunk).collect();
    chunks.push(json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}));
    events(&data(&chunks))
}

/// Returns the calls that a server gets back after it has sent a reply.
async fn sent_back(answer: Answer) -> Value {
    let server = Server::start(vec![answer]).await;
    let client = server.client(API);
    let reply = streamed(&client, user("hi")).await.unwrap();
    let record = serde_json::to_string(&reply.messages).unwrap();
    let restored: Vec<Message> = serde_json::from_str(&record).unwrap();
    let results =
        restored[0].calls().map(|call| MessageContent::result(&call.call_id, "1")).collect();
    let messages = [restored, vec![Message::new(Role::Tool, results)]].concat();
    client.reply(request(messages)).await.unwrap();
    server.last_body()["messages"][0]["tool_calls"].clone()
}

#[tokio::test]
async fn signatures_of_calls_go_back_with_them() {
    let calls = json!([signed("a", "{}"), call("b", "{}"), signed("c", "{}")]);
    assert_eq!(sent_back(whole(&calls)).await, calls);
    // A delta for each call, and none has an index.
    let deltas: Vec<_> = calls.as_array().unwrap().iter().map(|call| json!([call])).collect();
    assert_eq!(sent_back(in_events(&deltas)).await, calls);
    assert_eq!(sent_back(in_events(std::slice::from_ref(&calls))).await, calls);
    // A signature that arrives after the beginning of its call.
    let late =
        json!([{"id": "a", "function": {"arguments": "}"}, "extra_content": signature("a")}]);
    let deltas = [json!([call("a", "{")]), json!([call("b", "{}")]), late];
    assert_eq!(sent_back(in_events(&deltas)).await, json!([signed("a", "{}"), call("b", "{}")]));
}

#[tokio::test]
async fn pieces_without_index_and_id_belong_to_the_calls_in_their_order() {
    let more = |text: &str| json!({"function": {"arguments": text}});
    let deltas = [json!([call("a", "{\"x\":"), call("b", "{")]), json!([more("1}"), more("}")])];
    let expected = json!([call("a", "{\"x\":1}"), call("b", "{}")]);
    assert_eq!(sent_back(in_events(&deltas)).await, expected);
}

#[tokio::test]
async fn signatures_stay_with_the_host_that_sent_them() {
    let server = Server::start(vec![whole(&json!([signed("a", "{}")]))]).await;
    let reply = server.client(API).reply(user("hi")).await.unwrap();
    let result = Message::new(Role::Tool, vec![MessageContent::result("a", "1")]);
    let messages = [reply.messages, vec![result]].concat();
    for provider in Provider::ALL {
        let other = Server::start(vec![ok(&conversations::whole(provider))]).await;
        let base = other.url.replace("127.0.0.1", "localhost");
        let settings = other.settings(provider).with_base_url(base);
        let client = ProviderClient::new(settings).unwrap();
        client.reply(request(messages.clone())).await.unwrap();
        assert!(!other.last_body().to_string().contains("extra_content"), "{provider}");
    }
}

#[tokio::test]
async fn an_error_in_a_list_is_read() {
    let error =
        json!([{"error": {"code": 400, "message": "no signature", "status": "INVALID_ARGUMENT"}}]);
    for answer in [json_answer(400, "", &error.to_string()), ok(&error), events(&data(&[error]))] {
        let server = Server::start(vec![answer]).await;
        let error = streamed(&server.client(API), user("hi")).await.unwrap_err();
        assert_eq!(error.kind, cofferdam_agent::ChatErrorKind::Rejected, "{error}");
        assert!(error.message.ends_with(": no signature"), "{error}");
    }
}

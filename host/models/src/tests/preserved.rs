//! Tests of what newer models of Anthropic check: a replayed reply, and everything before it, is
//! the same as when the reply was made.

use cofferdam_agent::{ChatOptions, LOAD_TOOL, MessageContent, Role};
use serde_json::json;

use super::*;

const API: Provider = Provider::Anthropic;

/// Returns the blocks of a reply with everything that a client could lose.
fn blocks() -> Value {
    json!([
        {"type": "thinking", "thinking": "", "signature": "c2ln", "new_field": {"a": [1]}},
        {"type": "text", "text": "Let me "},
        {"type": "text", "text": "see.", "citations": [{"type": "char_location", "cited_text": "x"}, {"type": "page_location"}]},
        {"type": "server_tool_use", "id": "srv", "name": "search", "input": {"q": "x", "a": 1}},
        {"type": "search_result_of_tomorrow", "tool_use_id": "srv", "content": [{"n": null}]},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "tool_use", "id": "a", "name": "echo", "input": {"z": 1, "a": [2]},
            "caller": {"type": "direct"}},
        {"type": "tool_use", "id": "b", "name": "echo", "input": [1]},
        {"type": "thinking", "thinking": "So.", "signature": "c28="},
        {"type": "text", "text": "Done."},
    ])
}

fn whole(blocks: &Value) -> Answer {
    ok(
        &json!({"type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn"}),
    )
}

/// Returns the blocks as events, each in the pieces that the API sends.
fn in_events(blocks: &Value) -> Answer {
    let mut list = vec![json!({"type": "message_start", "message": {"content": []}})];
    for (index, block) in blocks.as_array().unwrap().iter().enumerate() {
        let delta =
            |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let mut start = block.clone();
        let mut deltas = Vec::new();
        match block["type"].as_str().unwrap() {
            "thinking" => {
                (start["thinking"], start["signature"]) = (json!(""), json!(""));
                let thought = &block["thinking"];
                if thought != "" {
                    deltas.push(delta(json!({"type": "thinking_delta", "thinking": thought})));
                }
                let signature = &block["signature"];
                deltas.push(delta(json!({"type": "signature_delta", "signature": signature})));
            }
            "text" => {
                start["text"] = json!("");
                for citation in block["citations"].as_array().into_iter().flatten() {
                    let cited = json!({"type": "citations_delta", "citation": citation});
                    deltas.push(delta(cited));
                }
                start.as_object_mut().unwrap().remove("citations");
                deltas.push(delta(json!({"type": "text_delta", "text": block["text"]})));
            }
            "tool_use" | "server_tool_use" => {
                start["input"] = json!({});
                let input = block["input"].to_string();
                let (left, right) = input.split_at(2);
                for piece in [left, right] {
                    deltas.push(delta(json!({"type": "input_json_delta", "partial_json": piece})));
                }
            }
            _ => {}
        }
        list.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        list.extend(deltas);
        list.push(json!({"type": "content_block_stop", "index": index}));
    }
    list.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}));
    list.push(json!({"type": "message_stop"}));
    events(&named(&list))
}

fn results() -> Message {
    let results = ["a", "b"].map(|id| MessageContent::result(id, "1"));
    Message::new(Role::Tool, results.to_vec())
}

#[tokio::test]
async fn a_reply_goes_back_as_it_arrived() {
    for answer in [whole(&blocks()), in_events(&blocks())] {
        let server = Server::start(vec![answer]).await;
        let client = server.client(API);
        let reply = streamed(&client, user("hi")).await.unwrap();
        assert_eq!(reply.messages[0].text(), "Let me see.Done.");
        // Through its record, in which a session keeps it.
        let record = serde_json::to_string(&reply.messages).unwrap();
        let restored: Vec<Message> = serde_json::from_str(&record).unwrap();
        let messages = [vec![Message::user("hi")], restored, vec![results()]].concat();
        client.reply(request(messages)).await.unwrap();
        let sent = server.last_body()["messages"][1]["content"].to_string();
        // Compared as strings, because the order of fields is a part of what is checked.
        assert_eq!(sent, blocks().to_string());
    }
}

#[tokio::test]
async fn blocks_of_one_api_do_not_go_to_another() {
    let server = Server::start(vec![whole(&blocks())]).await;
    let reply = server.client(API).reply(user("hi")).await.unwrap();
    for provider in [Provider::OpenAiChat, Provider::OpenAiResponses] {
        let server = Server::start(vec![ok(&conversations::whole(provider))]).await;
        let messages =
            [vec![Message::user("hi")], reply.messages.clone(), vec![results()]].concat();
        server.client(provider).reply(request(messages)).await.unwrap();
        let body = server.last_body().to_string();
        for lost in ["c2ln", "srv", "tomorrow", "new_field", "api", "wire_fields", "cited_text"] {
            assert!(!body.contains(lost), "{lost} in {body}");
        }
    }
}

/// Returns a conversation that grows by each of these parts, and the bodies of its requests.
async fn bodies(client: &ProviderClient, server: &Server, parts: Vec<Vec<Message>>) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut bodies = Vec::new();
    for part in parts {
        messages.extend(part);
        let mut request = request(messages.clone());
        request.options.instructions = Some("First.".to_owned());
        messages.extend(client.reply(request).await.unwrap().messages);
        bodies.push(server.last_body());
    }
    bodies
}

fn growing() -> Vec<Vec<Message>> {
    vec![
        vec![Message::system("Second."), Message::user("hi"), Message::system("Third.")],
        vec![Message::system("Now be brief."), results()],
        vec![Message::system("Be kind."), Message::user("and?"), Message::system("Be quick.")],
        vec![Message::user("last")],
    ]
}

#[tokio::test]
async fn nothing_before_a_reply_changes_while_a_conversation_grows() {
    let server = Server::start(vec![whole(&blocks())]).await;
    let bodies = bodies(&server.client(API), &server, growing()).await;
    for pair in bodies.windows(2) {
        assert_eq!(pair[0]["system"], pair[1]["system"]);
        let [before, after] = [0, 1].map(|at| pair[at]["messages"].as_array().unwrap());
        assert_eq!(before[..], after[..before.len()]);
    }
    let last = bodies.last().unwrap();
    assert_eq!(last["system"], "First.\n\nSecond.\n\nThird.");
    let text =
        |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let messages = last["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|turn| turn["role"].as_str().unwrap()).collect();
    let expected =
        ["user", "assistant", "user", "system", "assistant", "user", "system", "assistant", "user"];
    assert_eq!(roles, expected);
    assert_eq!(messages[2]["content"][0]["type"], "tool_result");
    assert_eq!(messages[3], text("system", "Now be brief."));
    assert_eq!(messages[5], text("user", "and?"));
    let both =
        [json!({"type": "text", "text": "Be kind."}), json!({"type": "text", "text": "Be quick."})];
    assert_eq!(messages[6]["content"], json!(both));
}

#[tokio::test]
async fn a_model_without_system_messages_gets_them_from_the_user() {
    let error = json!({"type": "invalid_request_error", "message": "role 'system' is not supported on this model"});
    let refusal = json_answer(400, "", &json!({"type": "error", "error": error}).to_string());
    let fine = whole(&blocks());
    // The first request has no late system message, and the second one is refused.
    let server = Server::start(vec![fine.clone(), refusal, fine]).await;
    let bodies = bodies(&server.client(API), &server, growing()).await;
    assert_eq!(server.seen().len(), 5);
    let messages = bodies.last().unwrap()["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|turn| turn["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user", "assistant", "user"]);
    let content = messages[2]["content"].as_array().unwrap();
    assert_eq!(content[1]["type"], "tool_result");
    let system = "<system-message>\nNow be brief.\n</system-message>";
    assert_eq!(content[2], json!({"type": "text", "text": system}));
}

#[tokio::test]
async fn functions_that_are_no_longer_advertised_stay_listed() {
    let tools: Arc<[_]> = [tool("echo", &json!({"type": "object"}))].into();
    for provider in Provider::ALL {
        let server = Server::start(vec![ok(&conversations::whole(provider))]).await;
        let client = server.client(provider);
        client.reply(ChatRequest { tools: Arc::clone(&tools), ..user("hi") }).await.unwrap();
        let listed = server.last_body()["tools"].clone();
        let options = ChatOptions::default();
        let asked = ChatRequest { withheld_tools: Arc::clone(&tools), options, ..user("hi") };
        client.reply(asked).await.unwrap();
        let body = server.last_body();
        let (tools, choice) = match provider {
            Provider::Anthropic => (listed, json!({"type": "none"})),
            _ => (Value::Null, Value::Null),
        };
        assert_eq!((&body["tools"], &body["tool_choice"]), (&tools, &choice), "{provider}");
    }
}

/// Returns a request for which the model has loaded functions, whose result reads `loaded`.
fn after_loading(loaded: &str) -> ChatRequest {
    let call = MessageContent::call("c1", LOAD_TOOL, r#"{"names":["echo"]}"#);
    let all = vec![
        Message::user("hi"),
        Message::new(Role::Assistant, vec![call]),
        Message::new(Role::Tool, vec![MessageContent::result("c1", loaded)]),
    ];
    let tools = [LOAD_TOOL, "echo", "other"].map(|name| tool(name, &json!({"type": "object"})));
    ChatRequest { tools: tools.into(), loaded_tools: 2, ..request(all) }
}

#[tokio::test]
async fn loaded_functions_are_deferred_behind_the_result_that_lists_them() {
    let loaded = r#"{"loaded":["echo","gone"],"unknown":[]}"#;
    let server = Server::start(vec![whole(&blocks())]).await;
    let mut settings = server.settings(API);
    settings.caching = PromptCaching::Auto;
    let client = ProviderClient::new(settings).unwrap();
    client.reply(after_loading(loaded)).await.unwrap();
    let body = server.last_body();
    let deferred: Vec<_> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (tool["name"].clone(), tool["defer_loading"].clone()))
        .collect();
    // No result lists `other`, as after a compaction.
    let expected = [(LOAD_TOOL, Value::Null), ("echo", json!(true)), ("other", Value::Null)];
    assert_eq!(deferred, expected.map(|(name, deferred)| (json!(name), deferred)));
    let has_mark = |at: usize| body["tools"][at].get("cache_control").is_some();
    assert_eq!([has_mark(0), has_mark(1), has_mark(2)], [false, false, true]);
    let result = &body["messages"][2]["content"][0];
    let reference = json!([{"type": "tool_reference", "tool_name": "echo"}]);
    assert_eq!((&result["type"], &result["content"]), (&json!("tool_result"), &reference));
    // Results that middleware has changed refer to nothing.
    client.reply(after_loading("hidden")).await.unwrap();
    let body = server.last_body();
    assert!(!body["tools"].to_string().contains("defer_loading"));
    assert_eq!(body["messages"][2]["content"][0]["content"], "hidden");
    // Other APIs have no such form.
    let server = Server::start(vec![ok(&conversations::whole(Provider::OpenAiChat))]).await;
    server.client(Provider::OpenAiChat).reply(after_loading(loaded)).await.unwrap();
    assert!(!server.last_body().to_string().contains("defer_loading"));
}

#[tokio::test]
async fn a_model_that_cannot_defer_functions_gets_them_like_all_others() {
    let by_field = json!({"type": "invalid_request_error",
        "message": "tools.1.custom.defer_loading: Extra inputs are not permitted"});
    let by_code = json!({"type": "invalid_request_error", "message": "no",
        "details": {"error_code": "tool_reference_unresolved"}});
    for error in [by_field, by_code] {
        let refusal = json_answer(400, "", &json!({"type": "error", "error": error}).to_string());
        let server = Server::start(vec![refusal, whole(&blocks())]).await;
        let client = server.client(API);
        for _ in 0..2 {
            client.reply(after_loading(r#"{"loaded":["echo"]}"#)).await.unwrap();
        }
        let bodies = server.seen().into_iter().map(|seen| seen.body.to_string());
        let is_deferred: Vec<_> = bodies.map(|body| body.contains("defer_loading")).collect();
        assert_eq!(is_deferred, [true, false, false]);
        let result = server.last_body()["messages"][2]["content"][0]["content"].clone();
        assert_eq!(result, r#"{"loaded":["echo"]}"#);
    }
}

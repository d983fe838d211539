//! Tests of programs that the provider runs.

use cofferdam_agent::{ChatErrorKind, MessageContent, Role};
use serde_json::json;

use super::*;

/// Returns a client that lets the provider run programs.
fn client(server: &Server, provider: Provider) -> ProviderClient {
    let mut settings = server.settings(provider);
    settings.hosted_programs = true;
    ProviderClient::new(settings).unwrap()
}

fn with_tools(messages: Vec<Message>) -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    ChatRequest { tools: [tool("add", &schema)].into(), ..request(messages) }
}

/// Returns the messages of a reply through their record, in which a session keeps them.
fn recorded(reply: &Reply) -> Vec<Message> {
    serde_json::from_str(&serde_json::to_string(&reply.messages).unwrap()).unwrap()
}

fn results(ids: &[&str]) -> Message {
    Message::new(Role::Tool, ids.iter().map(|id| MessageContent::result(*id, "3")).collect())
}

/// Returns the items of a reply of OpenAI with a program that calls a function twice.
fn program() -> Value {
    let caller = json!({"type": "program", "caller_id": "prog_1"});
    let call = |id: &str| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "add",
            "arguments": "{\"n\":1}", "status": "completed", "caller": caller})
    };
    json!([
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "c2Vj"},
        {"type": "program", "id": "p", "call_id": "prog_1", "code": "text(1)", "fingerprint": "fp"},
        call("a"),
        call("b"),
    ])
}

fn response(output: &Value) -> Answer {
    ok(&json!({"id": "r", "status": "completed", "output": output}))
}

fn in_events(output: &Value) -> Answer {
    let mut list = Vec::new();
    for (index, item) in output.as_array().unwrap().iter().enumerate() {
        let mut begun = item.clone();
        if item["type"] == "function_call" {
            begun["arguments"] = json!("");
        }
        list.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
        );
        list.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    list.push(json!({"type": "response.completed", "response": {"status": "completed", "output": output}}));
    events(&named(&list))
}

#[tokio::test]
async fn a_program_of_openai_gets_its_results() {
    for answer in [response(&program()), in_events(&program())] {
        let output = json!([{"type": "program_output", "id": "o", "call_id": "prog_1", "result": "6",
            "status": "completed"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "6"}]}]);
        let server = Server::start(vec![answer, response(&output), response(&json!([]))]).await;
        let client = client(&server, Provider::OpenAiResponses);
        let first = vec![Message::user("hi")];
        let reply = streamed(&client, with_tools(first.clone())).await.unwrap();
        let tools = &server.last_body()["tools"];
        assert_eq!(tools[0], json!({"type": "programmatic_tool_calling"}));
        assert_eq!(tools[1]["allowed_callers"], json!(["direct", "programmatic"]));
        assert_eq!(reply.messages[0].calls().count(), 2);

        let second = [first, recorded(&reply), vec![results(&["a", "b"])]].concat();
        let reply = client.reply(with_tools(second.clone())).await.unwrap();
        let input = server.last_body()["input"].as_array().unwrap().clone();
        let kinds: Vec<_> = input.iter().map(|item| item["type"].as_str().unwrap()).collect();
        let expected = [
            "message",
            "reasoning",
            "program",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output",
        ];
        assert_eq!(kinds, expected);
        assert_eq!(input[2], program()[1]);
        for item in &input[3..] {
            assert_eq!(item["caller"], program()[2]["caller"], "{item}");
        }

        let third = [second.clone(), recorded(&reply), vec![Message::user("more")]].concat();
        client.reply(with_tools(third)).await.unwrap();
        assert_eq!(server.last_body()["input"][7], output[0]);

        // Without the program, and with another setting, the calls are those of the model.
        let calls = second[1].clone().without_reasoning();
        let compacted = vec![second[0].clone(), calls, second[2].clone()];
        client.reply(with_tools(compacted)).await.unwrap();
        assert!(!server.last_body()["input"].to_string().contains("caller"));
        server.client(Provider::OpenAiResponses).reply(with_tools(second)).await.unwrap();
        let body = server.last_body().to_string();
        assert!(!body.contains("prog_1") && !body.contains("programmatic"), "{body}");
    }
}

/// Returns the blocks of a reply of Anthropic with a program that calls a function.
fn cell() -> Value {
    json!([
        {"type": "server_tool_use", "id": "srv", "name": "code_execution", "input": {"code": "x"}},
        {"type": "tool_use", "id": "a", "name": "add", "input": {"n": 1},
            "caller": {"type": "code_execution_20260120", "tool_id": "srv"}},
    ])
}

fn message(blocks: &Value) -> Answer {
    ok(&json!({"type": "message", "role": "assistant", "content": blocks,
        "container": {"id": "box", "expires_at": "2026-01-01T00:00:00Z"}, "stop_reason": "tool_use"}))
}

fn message_in_events(blocks: &Value) -> Answer {
    let mut list = vec![json!({"type": "message_start", "message": {"content": []}})];
    for (index, block) in blocks.as_array().unwrap().iter().enumerate() {
        list.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        list.push(json!({"type": "content_block_stop", "index": index}));
    }
    list.push(json!({"type": "message_delta",
        "delta": {"stop_reason": "tool_use", "container": {"id": "box"}}}));
    list.push(json!({"type": "message_stop"}));
    events(&named(&list))
}

#[tokio::test]
async fn a_program_of_anthropic_continues_in_its_container() {
    for answer in [message(&cell()), message_in_events(&cell())] {
        let end = json!([
            {"type": "code_execution_tool_result", "tool_use_id": "srv", "content": {"stdout": "3"}},
            {"type": "text", "text": "3"},
        ]);
        let server = Server::start(vec![answer, message(&end)]).await;
        let client = client(&server, Provider::Anthropic);
        let first = vec![Message::user("hi")];
        let reply = streamed(&client, with_tools(first.clone())).await.unwrap();
        let body = server.last_body();
        let execution = json!({"type": "code_execution_20260120", "name": "code_execution"});
        assert_eq!(body["tools"][0], execution);
        assert_eq!(
            body["tools"][1]["allowed_callers"],
            json!(["direct", "code_execution_20260120"])
        );
        assert_eq!(body["container"], Value::Null);

        let second = [first, recorded(&reply), vec![results(&["a"])]].concat();
        let reply = client.reply(with_tools(second.clone())).await.unwrap();
        let body = server.last_body();
        assert_eq!(body["container"], "box");
        assert_eq!(body["messages"][1]["content"], cell());

        let third = [second.clone(), recorded(&reply), vec![Message::user("more")]].concat();
        client.reply(with_tools(third)).await.unwrap();
        let body = server.last_body();
        assert_eq!(body["container"], Value::Null, "the program has ended");
        assert_eq!(body["messages"][3]["content"], end);

        let calls = second[1].clone().without_reasoning();
        let compacted = vec![second[0].clone(), calls, second[2].clone()];
        client.reply(with_tools(compacted)).await.unwrap();
        let call = &server.last_body()["messages"][1]["content"][0];
        assert_eq!(call["type"], "tool_use");
        assert_eq!(call["caller"], Value::Null);
    }
}

#[tokio::test]
async fn programs_cannot_call_functions_that_anthropic_checks_strictly() {
    let server = Server::start(vec![message(&json!([]))]).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}},
        "required": ["n"], "additionalProperties": false});
    let mut asked = ChatRequest { tools: [tool("add", &schema)].into(), ..user("hi") };
    asked.options.strict_schemas = true;
    client(&server, Provider::Anthropic).reply(asked).await.unwrap();
    let function = &server.last_body()["tools"][1];
    assert_eq!((&function["strict"], &function["allowed_callers"]), (&json!(true), &Value::Null));
    // Without functions there is nothing that a program could call.
    client(&server, Provider::Anthropic).reply(user("hi")).await.unwrap();
    assert_eq!(server.last_body()["tools"], Value::Null);
}

#[tokio::test]
async fn interfaces_without_programs_refuse_the_setting() {
    let server = Server::start(vec![]).await;
    let mut chat = server.settings(Provider::OpenAiChat);
    chat.hosted_programs = true;
    let mut stored = server.settings(Provider::OpenAiResponses);
    (stored.hosted_programs, stored.store) = (true, true);
    for settings in [chat, stored] {
        let error = ProviderClient::new(settings).unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::Configuration);
    }
}

//! Tests of requests.

use cofferdam_agent::{
    ChatErrorKind, ChatOptions, Data, FunctionResult, MessageContent, Reasoning, Role, ToolMode,
};
use cofferdam_tool::DecodeOptions;
use serde_json::{Map, json};

use super::*;

/// Returns the body that a server received for a request.
async fn sent(provider: Provider, request: ChatRequest) -> Value {
    sent_with(provider, request, |_| ()).await
}

pub(super) async fn sent_with(
    provider: Provider,
    request: ChatRequest,
    set: impl Fn(&mut ProviderSettings),
) -> Value {
    let server = Server::start(vec![ok(&conversations::whole(provider))]).await;
    let mut settings = server.settings(provider);
    set(&mut settings);
    ProviderClient::new(settings).unwrap().reply(request).await.unwrap();
    server.last_body()
}

fn image() -> Data {
    Data { media_type: "image/png".to_owned(), data: "aQ==".to_owned(), extra: Map::new() }
}

/// Returns a conversation with every kind of content that a provider may see.
fn conversation() -> ChatRequest {
    let result = |id: &str, text: &str| FunctionResult {
        call_id: id.to_owned(),
        result: text.to_owned(),
        ..FunctionResult::default()
    };
    let failed = FunctionResult { is_error: true, ..result("b", "Error: no") };
    let shown = FunctionResult { items: vec![image()], ..result("a", "a picture") };
    let zip = Data { media_type: "application/zip".to_owned(), ..image() };
    let mut request = request(vec![
        Message::system("Second."),
        Message::new(
            Role::User,
            vec![
                MessageContent::text("look"),
                MessageContent::Data(image()),
                MessageContent::Data(zip),
            ],
        ),
        Message::new(
            Role::Assistant,
            vec![
                MessageContent::text("Both."),
                MessageContent::call("a", "files.read", "{\"p\":1}"),
                MessageContent::call("b", "plain", "{oops"),
                MessageContent::call("c", "plain", ""),
            ],
        ),
        Message::new(
            Role::Tool,
            vec![MessageContent::FunctionResult(shown), MessageContent::FunctionResult(failed)],
        ),
        Message::new(Role::Tool, vec![MessageContent::result("c", "")]),
        Message::user("and?"),
        Message::new(Role::Assistant, vec![]),
        Message::user("well?"),
    ]);
    request.options.instructions = Some("First.".to_owned());
    request
}

#[tokio::test]
async fn a_conversation_for_chat_completions() {
    let body = sent(Provider::OpenAiChat, conversation()).await;
    let url = "data:image/png;base64,aQ==";
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let expected = json!({"model": "m", "messages": [
        {"role": "system", "content": "First."},
        {"role": "system", "content": "Second."},
        {"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": "[data of the type application/zip that cannot be shown \
                here]"},
        ]},
        {"role": "assistant", "content": "Both.", "tool_calls": [
            call("a", "files_read", "{\"p\":1}"), call("b", "plain", "{oops"), call("c", "plain", "{}"),
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "a picture"},
        {"role": "tool", "tool_call_id": "b", "content": "Error: no"},
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "user", "content": [
            {"type": "text", "text": "Part of the result of the call a:"},
            {"type": "image_url", "image_url": {"url": url}},
        ]},
        {"role": "user", "content": "and?"},
        {"role": "user", "content": "well?"},
    ]});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_conversation_for_responses() {
    let body = sent(Provider::OpenAiResponses, conversation()).await;
    let image =
        json!({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aQ=="});
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
    let output = |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let said =
        |role: &str, parts: Value| json!({"type": "message", "role": role, "content": parts});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let expected = json!({
        "model": "m", "instructions": "First.", "store": false, "include": ["reasoning.encrypted_content"],
        "input": [
            said("system", json!([text("Second.")])),
            said("user", json!([text("look"), image, text("[data of the type application/zip that \
                cannot be shown here]")])),
            said("assistant", json!("Both.")),
            call("a", "files_read", "{\"p\":1}"), call("b", "plain", "{oops"), call("c", "plain", "{}"),
            output("a", json!([text("a picture"), image])), output("b", json!("Error: no")), output("c", json!("")),
            said("user", json!([text("and?")])),
            said("user", json!([text("well?")])),
        ],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_conversation_for_messages() {
    let body = sent(Provider::Anthropic, conversation()).await;
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aQ=="}});
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let text = |text: &str| json!({"type": "text", "text": text});
    let expected = json!({
        "model": "m", "max_tokens": 16000, "system": "First.\n\nSecond.",
        "messages": [
            {"role": "user", "content": [text("look"), image, text("[data of the type \
                application/zip that cannot be shown here]")]},
            {"role": "assistant", "content": [
                text("Both."),
                call("a", "files_read", json!({"p": 1})),
                call("b", "plain", json!({"INVALID_JSON": "{oops"})),
                call("c", "plain", json!({})),
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [text("a picture"), image]},
                {"type": "tool_result", "tool_use_id": "b", "content": "Error: no", "is_error": true},
                {"type": "tool_result", "tool_use_id": "c"},
                text("and?"),
                text("well?"),
            ]},
        ],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn reasoning_goes_back_as_it_came_to_whom_it_came_from() {
    for from in Provider::ALL {
        let reply = conversations::expected(from).messages;
        for to in Provider::ALL {
            let messages = [vec![Message::user("hi")], reply.clone()].concat();
            let body = sent(to, request(messages)).await.to_string();
            let Some(MessageContent::Reasoning(reasoning)) = reply[0].contents.first() else {
                panic!("no reasoning")
            };
            let parts = reasoning.opaque.as_ref().and_then(Value::as_array).into_iter().flatten();
            let mut parts = parts.map(Value::to_string).peekable();
            assert_eq!(parts.peek().is_some(), from != Provider::OpenAiChat);
            for part in parts {
                assert_eq!(body.contains(&part), from == to, "{from} to {to}: {part} in {body}");
            }
            assert!(!body.contains("Hm.") || from == to, "{body}");
        }
    }
    // Reasoning that nothing follows is left out.
    for provider in [Provider::OpenAiResponses, Provider::Anthropic] {
        let mut cut_off = conversations::expected(provider).messages;
        cut_off[0].contents.truncate(1);
        let body = sent(provider, request([cut_off, vec![Message::user("hi")]].concat())).await;
        assert!(!body.to_string().contains("Hm."), "{body}");
    }
}

fn options() -> ChatOptions {
    ChatOptions {
        tool_choice: Some(ToolMode::Required(Some("files.read".to_owned()))),
        allow_parallel_calls: Some(false),
        max_output_tokens: Some(7),
        temperature: Some(0.5),
        additional: Map::from_iter([
            ("model".to_owned(), json!("other")),
            ("tools".to_owned(), json!([])),
            ("stream".to_owned(), json!(false)),
            ("seed".to_owned(), json!(1)),
        ]),
        ..ChatOptions::default()
    }
}

fn with_tools(options: ChatOptions) -> ChatRequest {
    let schema =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    ChatRequest { tools: [tool("files.read", &schema)].into(), options, ..user("hi") }
}

#[tokio::test]
async fn tools_and_options_are_written_as_each_interface_wants_them() {
    let schema =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let function =
        json!({"name": "files_read", "description": "does files.read", "parameters": schema});
    let body = sent(Provider::OpenAiChat, with_tools(options())).await;
    assert_eq!(body["tools"], json!([{"type": "function", "function": function}]));
    assert_eq!(
        body["tool_choice"],
        json!({"type": "function", "function": {"name": "files_read"}})
    );
    assert_eq!((&body["parallel_tool_calls"], &body["max_tokens"]), (&json!(false), &json!(7)));
    let body = sent(Provider::OpenAiResponses, with_tools(options())).await;
    let mut expected = function;
    expected["type"] = json!("function");
    expected["strict"] = json!(false);
    assert_eq!(body["tools"], json!([expected]));
    assert_eq!(body["tool_choice"], json!({"type": "function", "name": "files_read"}));
    assert_eq!(
        (&body["parallel_tool_calls"], &body["max_output_tokens"]),
        (&json!(false), &json!(7))
    );
    let body = sent(Provider::Anthropic, with_tools(options())).await;
    assert_eq!(
        body["tools"],
        json!([{"name": "files_read", "description": "does files.read", "input_schema": schema}])
    );
    assert_eq!(
        body["tool_choice"],
        json!({"type": "tool", "name": "files_read", "disable_parallel_tool_use": true})
    );
    assert_eq!(body["max_tokens"], json!(7));
    for provider in Provider::ALL {
        let body = sent(provider, with_tools(options())).await;
        assert_eq!((&body["model"], &body["seed"]), (&json!("m"), &json!(1)));
        // Without tools there is nothing to choose from.
        let body = sent(provider, ChatRequest { tools: [].into(), ..with_tools(options()) }).await;
        assert_eq!(
            (&body["tool_choice"], &body["parallel_tool_calls"]),
            (&Value::Null, &Value::Null)
        );
    }
}

#[tokio::test]
async fn every_mode_of_choice_has_its_form() {
    for (mode, openai, anthropic) in [
        (Some(ToolMode::Auto), json!("auto"), json!({"type": "auto"})),
        (Some(ToolMode::None), json!("none"), json!({"type": "none"})),
        (Some(ToolMode::Required(None)), json!("required"), json!({"type": "any"})),
        (None, Value::Null, Value::Null),
    ] {
        let asked =
            || with_tools(ChatOptions { tool_choice: mode.clone(), ..ChatOptions::default() });
        assert_eq!(sent(Provider::OpenAiChat, asked()).await["tool_choice"], openai);
        assert_eq!(sent(Provider::OpenAiResponses, asked()).await["tool_choice"], openai);
        assert_eq!(sent(Provider::Anthropic, asked()).await["tool_choice"], anthropic);
    }
    let asked =
        with_tools(ChatOptions { allow_parallel_calls: Some(false), ..ChatOptions::default() });
    let expected = json!({"type": "auto", "disable_parallel_tool_use": true});
    assert_eq!(sent(Provider::Anthropic, asked).await["tool_choice"], expected);
}

#[tokio::test]
async fn a_stream_is_asked_for_with_its_usage() {
    for provider in Provider::ALL {
        let server = Server::start(vec![events(&conversations::in_events(provider))]).await;
        streamed(&server.client(provider), with_tools(options())).await.unwrap();
        let body = server.last_body();
        assert_eq!(body["stream"], json!(true));
        let usage = if provider == Provider::OpenAiChat {
            json!({"include_usage": true})
        } else {
            Value::Null
        };
        assert_eq!(body["stream_options"], usage);
    }
}

#[tokio::test]
async fn names_that_a_provider_refuses_come_back_as_they_were() {
    let long = "x".repeat(128);
    let tools = ["echo", "e.cho", &long].map(|name| tool(name, &json!({"type": "object"})));
    for provider in Provider::ALL {
        let answer = conversations::whole(provider).to_string().replace("\"echo\"", "\"e_cho\"");
        let server = Server::start(vec![json_answer(200, "", &answer)]).await;
        let asked = ChatRequest { tools: tools.clone().into(), ..user("hi") };
        let reply = server.client(provider).reply(asked).await.unwrap();
        assert_eq!(reply.messages[0].calls().next().unwrap().name, "e.cho");
        let body = server.last_body().to_string().replace(&format!("does {long}"), "");
        assert!(!body.contains(&"x".repeat(65)), "{body}");
    }
}

/// `ARG-6`: arguments that strict mode forces a model to send mean the same as omitted ones.
#[tokio::test]
async fn strict_schemas_give_the_same_arguments() {
    let declared = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer", "default": 10, "minimum": 1},
            "note": {"type": "string"},
            "at": {"type": "object", "properties": {"line": {"type": "integer"}, "column": {"type": "integer"}}, "required": ["line"]},
        },
        "required": ["path"],
    });
    let map = json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {"type": "string"}}}, "required": ["m"]});
    let tools: Arc<[_]> = [tool("read", &declared), tool("map", &map)].into();
    let options = ChatOptions { strict_schemas: true, ..ChatOptions::default() };
    for provider in Provider::ALL {
        let asked =
            ChatRequest { tools: Arc::clone(&tools), options: options.clone(), ..user("hi") };
        let body = sent(provider, asked).await;
        let part = |index: usize| match provider {
            Provider::OpenAiChat => body["tools"][index]["function"].clone(),
            _ => body["tools"][index].clone(),
        };
        let schema = |index: usize| match provider {
            Provider::Anthropic => part(index)["input_schema"].clone(),
            _ => part(index)["parameters"].clone(),
        };
        assert_eq!(part(0)["strict"], json!(true), "{provider}");
        assert_eq!(schema(0)["additionalProperties"], json!(false), "{provider}");
        // An object with arbitrary keys cannot be strict.
        assert_ne!(part(1)["strict"], json!(true), "{provider}");
        // Compares all required arguments, null where they have no value, with omitting them.
        let required = schema(0)["required"].as_array().unwrap().clone();
        let mut filled = Map::new();
        for name in required.iter().map(|name| name.as_str().unwrap()) {
            filled.insert(name.to_owned(), if name == "path" { json!("a") } else { Value::Null });
        }
        assert_eq!(
            filled.len(),
            if provider == Provider::Anthropic { 1 } else { 4 },
            "{provider}: {required:?}"
        );
        let decode = |text: &str| {
            tools[0]
                .input
                .decode("read", Some(text.as_bytes()), &DecodeOptions::default())
                .unwrap()
                .to_json()
        };
        assert_eq!(decode(&Value::Object(filled).to_string()), decode("{\"path\":\"a\"}"));
    }
}

#[tokio::test]
async fn an_id_that_is_used_twice_goes_out_as_two_ids() {
    let call = |id: &str| Message::new(Role::Assistant, vec![MessageContent::call(id, "f", "{}")]);
    let result =
        |id: &str, text: &str| Message::new(Role::Tool, vec![MessageContent::result(id, text)]);
    let messages = vec![
        call("c"),
        result("c", "first"),
        call("c_2"),
        result("c_2", "other"),
        call("c"),
        result("c", "second"),
    ];
    let body = sent(Provider::OpenAiChat, request(messages)).await;
    let messages = body["messages"].as_array().unwrap();
    let ids = messages.iter().map(|message| match &message["tool_calls"][0]["id"] {
        Value::Null => {
            format!(
                "{} {}",
                message["tool_call_id"].as_str().unwrap(),
                message["content"].as_str().unwrap()
            )
        }
        id => id.as_str().unwrap().to_owned(),
    });
    assert_eq!(ids.collect::<Vec<_>>(), ["c", "c first", "c_2", "c_2 other", "c_3", "c_3 second"]);
}

#[tokio::test]
async fn ids_that_a_provider_refuses_are_replaced_in_pairs() {
    let id = "functions.read:0 ".repeat(5);
    let messages = vec![
        Message::user("hi"),
        Message::new(Role::Assistant, vec![MessageContent::call(&id, "f", "{}")]),
        Message::new(Role::Tool, vec![MessageContent::result(&id, "1")]),
    ];
    let body = sent(Provider::Anthropic, request(messages)).await;
    let (call, result) = (
        &body["messages"][1]["content"][0]["id"],
        &body["messages"][2]["content"][0]["tool_use_id"],
    );
    assert_eq!(call, result);
    assert!(
        call.as_str().unwrap().chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        "{call}"
    );
}

#[tokio::test]
async fn sampling_parameters_are_sent_if_the_settings_say_so() {
    for provider in Provider::ALL {
        let asked = || with_tools(options());
        let body = sent(provider, asked()).await;
        let expected = if provider == Provider::Anthropic { Value::Null } else { json!(0.5) };
        assert_eq!(body["temperature"], expected, "{provider}");
        for sampling in [true, false] {
            let body = sent_with(provider, asked(), |settings| settings.sampling = sampling).await;
            let expected = if sampling { json!(0.5) } else { Value::Null };
            assert_eq!(body["temperature"], expected, "{provider}");
        }
    }
}

#[tokio::test]
async fn headers_and_paths_are_those_of_the_interface() {
    for (provider, path, key) in [
        (
            Provider::OpenAiChat,
            "POST /v1/chat/completions ",
            format!("authorization: Bearer {KEY}"),
        ),
        (Provider::OpenAiResponses, "POST /v1/responses ", format!("authorization: Bearer {KEY}")),
        (Provider::Anthropic, "POST /v1/messages ", format!("x-api-key: {KEY}")),
    ] {
        for suffix in ["/v1", "/v1/"] {
            let server = Server::start(vec![ok(&conversations::whole(provider))]).await;
            let base = server.url.replace("/v1", suffix);
            let mut settings = server.settings(provider).with_base_url(base);
            for (name, value) in [
                ("x-title", "mine"),
                ("content-type", "text/plain"),
                ("authorization", "Basic eA=="),
            ] {
                settings = settings.with_header(name, &SecretText::new(value)).unwrap();
            }
            ProviderClient::new(settings).unwrap().reply(user("hi")).await.unwrap();
            let head = server.seen()[0].head.clone();
            assert!(head.starts_with(path), "{head}");
            for line in [
                key.as_str(),
                "x-title: mine",
                "content-type: application/json",
                "accept: application/json",
            ] {
                assert_eq!(
                    head.lines().filter(|have| *have == line).count(),
                    1,
                    "{line} in {head}"
                );
            }
            assert_eq!(head.matches("authorization: ").count(), 1, "{head}");
            assert_eq!(
                head.contains("anthropic-version: 2023-06-01"),
                provider == Provider::Anthropic
            );
        }
    }
    // A base URL without a version, with a query that a gateway requires.
    let server = Server::start(vec![ok(&conversations::whole(Provider::Anthropic))]).await;
    let base = format!("{}?zone=a", server.url.trim_end_matches("/v1"));
    let client =
        ProviderClient::new(server.settings(Provider::Anthropic).with_base_url(base)).unwrap();
    client.reply(user("hi")).await.unwrap();
    assert!(
        server.seen()[0].head.starts_with("POST /v1/messages?zone=a "),
        "{}",
        server.seen()[0].head
    );
}

#[tokio::test]
async fn a_header_that_is_none_is_refused_without_its_value() {
    let settings = ProviderSettings::new(Provider::OpenAiChat, "m");
    for (name, value) in [("bad name", KEY), ("fine", "sk-\n")] {
        let error = settings.clone().with_header(name, &SecretText::new(value)).unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::Configuration);
        assert!(!format!("{error:?}").contains("sk-"), "{error:?}");
    }
}

#[tokio::test]
async fn a_request_has_no_reasoning_of_unknown_origin() {
    let thought = Reasoning { text: "Hm.".to_owned(), ..Reasoning::default() };
    for provider in Provider::ALL {
        let reply = Message::new(
            Role::Assistant,
            vec![MessageContent::Reasoning(thought.clone()), MessageContent::text("a")],
        );
        let body = sent_with(provider, request(vec![Message::user("hi"), reply]), |settings| {
            settings.store = true
        })
        .await;
        assert!(!body.to_string().contains("Hm."), "{body}");
    }
}

#[tokio::test]
async fn results_come_first_whatever_was_said_before_them() {
    let messages = vec![
        Message::new(Role::Assistant, vec![MessageContent::call("a", "f", "{}")]),
        Message::user("by the way"),
        Message::new(Role::Tool, vec![MessageContent::result("a", "1")]),
    ];
    let body =
        sent(Provider::Anthropic, request([vec![Message::user("hi")], messages].concat())).await;
    let kinds: Vec<_> = body["messages"][2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(kinds, ["tool_result", "text"]);
}

//! Tests of the options of a request: each in the form of its API, or an error.

use cofferdam_agent::{ChatErrorKind, ChatOptions, Effort, ResponseFormat};
use serde_json::{Map, json};

use super::requests::sent_with;
use super::*;

async fn body(provider: Provider, options: ChatOptions) -> Value {
    sent_with(provider, ChatRequest { options, ..user("hi") }, |settings| settings.sampling = true)
        .await
}

/// Returns the error of a request that is not sent.
async fn error(provider: Provider, options: ChatOptions) -> ChatError {
    let server = Server::start(vec![ok(&conversations::whole(provider))]).await;
    let client = server.client(provider);
    let asked = || ChatRequest { options: options.clone(), ..user("hi") };
    let error = client.reply(asked()).await.unwrap_err();
    assert_eq!(streamed(&client, asked()).await.unwrap_err(), error);
    assert!(server.seen().is_empty());
    error
}

#[tokio::test]
async fn each_option_has_its_form() {
    let common =
        || ChatOptions { top_p: Some(0.25), effort: Some(Effort::Xhigh), ..ChatOptions::default() };
    let chat = ChatOptions { stop: vec!["END".to_owned()], seed: Some(7), ..common() };
    let sent = body(Provider::OpenAiChat, chat).await;
    for (key, value) in [
        ("top_p", json!(0.25)),
        ("reasoning_effort", json!("xhigh")),
        ("stop", json!(["END"])),
        ("seed", json!(7)),
    ] {
        assert_eq!(sent[key], value, "{key}");
    }
    let sent = body(Provider::OpenAiResponses, common()).await;
    assert_eq!((&sent["top_p"], &sent["reasoning"]), (&json!(0.25), &json!({"effort": "xhigh"})));
    let messages = ChatOptions { stop: vec!["END".to_owned()], ..common() };
    let sent = body(Provider::Anthropic, messages).await;
    assert_eq!(
        (&sent["top_p"], &sent["output_config"], &sent["stop_sequences"]),
        (&json!(0.25), &json!({"effort": "xhigh"}), &json!(["END"]))
    );
    for provider in Provider::ALL {
        let model = Some("another".to_owned());
        let sent = body(provider, ChatOptions { model, ..ChatOptions::default() }).await;
        assert_eq!(sent["model"], "another");
    }
    // Nothing is sent that was not asked for.
    for provider in Provider::ALL {
        let sent = body(provider, ChatOptions::default()).await;
        for key in
            ["top_p", "stop", "seed", "reasoning", "output_config", "response_format", "text"]
        {
            assert_eq!(sent[key], Value::Null, "{provider} {key}");
        }
    }
}

#[tokio::test]
async fn an_option_that_an_api_does_not_have_is_an_error() {
    let stop = || ChatOptions { stop: vec!["x".to_owned()], ..ChatOptions::default() };
    let seed = || ChatOptions { seed: Some(1), ..ChatOptions::default() };
    let effort = |effort| ChatOptions { effort: Some(effort), ..ChatOptions::default() };
    for (provider, options, named) in [
        (Provider::OpenAiResponses, stop(), "responses` has no option `stop`"),
        (Provider::OpenAiResponses, seed(), "responses` has no option `seed`"),
        (Provider::Anthropic, seed(), "anthropic` has no option `seed`"),
        (Provider::Anthropic, effort(Effort::None), "anthropic` has no effort `none`"),
        (Provider::Anthropic, effort(Effort::Minimal), "anthropic` has no effort `minimal`"),
    ] {
        let error = error(provider, options).await;
        assert_eq!(error.kind, ChatErrorKind::Configuration);
        assert!(error.message.contains(named), "{error}");
    }
}

fn format(schema: &Value) -> ChatOptions {
    let format = ResponseFormat::new("person", &schema.to_string()).unwrap();
    let response_format = Some(format.with_description("A person."));
    ChatOptions { response_format, ..ChatOptions::default() }
}

#[tokio::test]
async fn a_response_format_is_written_in_the_dialect_of_its_api() {
    let declared = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "minimum": 0},
        },
        "required": ["name"],
    });
    let check = |written: &Value| {
        let names = (&written["name"], &written["description"], &written["strict"]);
        assert_eq!(names, (&json!("person"), &json!("A person."), &json!(true)));
        assert_eq!(written["schema"]["required"], json!(["name", "age"]));
        assert_eq!(written["schema"]["additionalProperties"], json!(false));
    };
    let sent = body(Provider::OpenAiChat, format(&declared)).await;
    assert_eq!(sent["response_format"]["type"], "json_schema");
    check(&sent["response_format"]["json_schema"]);
    let sent = body(Provider::OpenAiResponses, format(&declared)).await;
    assert_eq!(sent["text"]["format"]["type"], "json_schema");
    check(&sent["text"]["format"]);
    let sent = body(Provider::Anthropic, format(&declared)).await;
    let written = &sent["output_config"]["format"];
    assert_eq!((&written["type"], &written["name"]), (&json!("json_schema"), &Value::Null));
    let schema = &written["schema"];
    assert_eq!(schema["required"], json!(["name"]));
    assert_eq!(schema["description"], "A person.");
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["properties"]["age"]["minimum"], Value::Null);
}

#[tokio::test]
async fn a_format_that_cannot_be_enforced_is_sent_without_strictness_or_described() {
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let declared = json!({"type": "object", "properties": {"m": map}, "required": ["m"]});
    let sent = body(Provider::OpenAiChat, format(&declared)).await;
    assert_eq!(sent["response_format"]["json_schema"]["strict"], json!(false));
    let sent = body(Provider::Anthropic, format(&declared)).await;
    assert_eq!(sent["output_config"], Value::Null);
    let described = "Answer with one JSON object, and with nothing before or after it. The object \
                     is: A person. It has to be valid by this JSON Schema:\n{\"type\":\"object\"";
    assert!(sent["system"].as_str().unwrap().starts_with(described), "{sent}");
}

#[tokio::test]
async fn additional_members_join_those_of_an_option() {
    let additional = Map::from_iter([
        ("reasoning".to_owned(), json!({"effort": "low", "summary": "auto"})),
        ("text".to_owned(), json!({"verbosity": "low"})),
    ]);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let options = ChatOptions { effort: Some(Effort::High), additional, ..format(&schema) };
    let sent = body(Provider::OpenAiResponses, options).await;
    assert_eq!(sent["reasoning"], json!({"effort": "high", "summary": "auto"}));
    assert_eq!(sent["text"]["verbosity"], "low");
    assert_eq!(sent["text"]["format"]["name"], "person");
}

//! Tests of requests that a provider refuses because of a part that they can do without.

use cofferdam_agent::{ChatErrorKind, ChatOptions, ResponseFormat, ToolMode};
use serde_json::json;

use super::*;

/// Refusal of Anthropic's current models.
const NO_FORCE: &str = "tool_choice: type \"tool\" and \"any\" are not supported for this model.";

fn refusal(message: &str) -> Answer {
    let error = json!({"type": "invalid_request_error", "message": message});
    json_answer(400, "", &json!({"type": "error", "error": error}).to_string())
}

fn fine(provider: Provider) -> Answer {
    ok(&conversations::whole(provider))
}

fn forced(mode: ToolMode) -> ChatRequest {
    let options = ChatOptions { tool_choice: Some(mode), ..ChatOptions::default() };
    ChatRequest { tools: [tool("echo", &json!({"type": "object"}))].into(), options, ..user("hi") }
}

/// Returns the tool choices that a server received.
fn choices(server: &Server) -> Vec<Value> {
    server.seen().iter().map(|seen| seen.body["tool_choice"].clone()).collect()
}

#[tokio::test]
async fn a_model_that_does_not_reason_is_not_asked_for_its_reasoning_twice() {
    let refusal = json!({"error": {"message": "Encrypted content is not supported with this \
        model.", "param": "include"}});
    let fine = ok(&conversations::whole(Provider::OpenAiResponses));
    let server = Server::start(vec![json_answer(400, "", &refusal.to_string()), fine]).await;
    let client = server.client(Provider::OpenAiResponses);
    client.reply(user("hi")).await.unwrap();
    client.reply(user("hi")).await.unwrap();
    let asked: Vec<_> =
        server.seen().iter().map(|seen| seen.body.get("include").is_some()).collect();
    assert_eq!(asked, [true, false, false]);
}

#[tokio::test]
async fn a_model_that_refuses_to_be_forced_gets_auto_and_is_not_forced_again() {
    for provider in Provider::ALL {
        let answers = vec![
            refusal(NO_FORCE),
            fine(provider),
            events(&conversations::in_events(provider)),
            fine(provider),
        ];
        let server = Server::start(answers).await;
        let client = server.client(provider);
        let named = ToolMode::Required(Some("echo".to_owned()));
        let reply = client.reply(forced(named.clone())).await.unwrap();
        assert_eq!(reply, conversations::expected(provider));
        streamed(&client, forced(ToolMode::Required(None))).await.unwrap();
        client.reply(forced(ToolMode::None)).await.unwrap();
        let is_anthropic = provider == Provider::Anthropic;
        let form = |kind: &str| if is_anthropic { json!({"type": kind}) } else { json!(kind) };
        let seen = choices(&server);
        assert_eq!(seen[1..], [form("auto"), form("auto"), form("none")], "{provider}");
        assert_ne!(seen[0], form("auto"), "{provider}");
    }
}

#[tokio::test]
async fn a_streamed_request_that_forces_a_call_is_adapted_too() {
    for provider in Provider::ALL {
        let answers = vec![refusal(NO_FORCE), events(&conversations::in_events(provider))];
        let server = Server::start(answers).await;
        let asked = forced(ToolMode::Required(None));
        let reply = streamed(&server.client(provider), asked).await.unwrap();
        assert_eq!(reply, conversations::expected(provider), "{provider}");
        assert_eq!(server.seen().len(), 2, "{provider}");
    }
}

#[tokio::test]
async fn a_refusal_for_another_reason_is_an_error() {
    for (asked, answer) in [
        (forced(ToolMode::Required(None)), refusal("max_tokens: too large")),
        (forced(ToolMode::Auto), refusal(NO_FORCE)),
        // A function that is not listed is a mistake of the caller.
        (forced(ToolMode::Required(Some("other".to_owned()))), refusal(NO_FORCE)),
        (forced(ToolMode::Required(None)), json_answer(401, "", NO_FORCE)),
    ] {
        let server = Server::start(vec![answer, fine(Provider::Anthropic)]).await;
        let error = server.client(Provider::Anthropic).reply(asked).await.unwrap_err();
        assert!(
            matches!(error.kind, ChatErrorKind::Rejected | ChatErrorKind::Unauthorized),
            "{error}"
        );
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_model_that_refuses_auto_as_well_is_asked_twice_and_forced_the_next_time() {
    let server = Server::start(vec![refusal(NO_FORCE), refusal(NO_FORCE), refusal("no")]).await;
    let client = server.client(Provider::Anthropic);
    for requests in [2, 3] {
        client.reply(forced(ToolMode::Required(None))).await.unwrap_err();
        assert_eq!(server.seen().len(), requests);
    }
    let kinds: Vec<_> = choices(&server).iter().map(|choice| choice["type"].clone()).collect();
    assert_eq!(kinds, ["any", "auto", "any"]);
}

#[tokio::test]
async fn a_server_without_response_formats_gets_the_schema_in_the_instructions() {
    for (provider, said, key) in [
        (Provider::OpenAiChat, "unknown field: response_format", "response_format"),
        (Provider::OpenAiResponses, "Unsupported parameter: 'text.format'.", "text"),
        (
            Provider::Anthropic,
            "output_config.format: Extra inputs are not permitted",
            "output_config",
        ),
    ] {
        let server = Server::start(vec![refusal(said), fine(provider)]).await;
        let client = server.client(provider);
        let format = ResponseFormat::new("f", r#"{"type":"object"}"#).unwrap();
        let options = ChatOptions {
            instructions: Some("Be brief.".to_owned()),
            response_format: Some(format),
            ..ChatOptions::default()
        };
        for _ in 0..2 {
            let asked = ChatRequest { options: options.clone(), ..user("hi") };
            client.reply(asked).await.unwrap();
        }
        let has_field: Vec<_> =
            server.seen().iter().map(|seen| seen.body.get(key).is_some()).collect();
        assert_eq!(has_field, [true, false, false], "{provider}");
        let has_schema =
            |seen: &Seen| seen.body.to_string().contains("Be brief.\\nAnswer with one");
        let described: Vec<_> = server.seen().iter().map(has_schema).collect();
        assert_eq!(described, [false, true, true], "{provider}");
    }
    // Without a format there is nothing to leave out.
    let server = Server::start(vec![refusal("unknown field: response_format")]).await;
    server.client(Provider::OpenAiChat).reply(user("hi")).await.unwrap_err();
    assert_eq!(server.seen().len(), 1);
}

//! Tests of what a request asks of the provider's prompt cache.

use cofferdam_agent::{ChatOptions, MessageContent, Role};
use serde_json::{Map, json};

use super::*;
use crate::prepared::PreparedRequest;
use crate::tools::ToolCache;

/// Returns a conversation with functions, instructions and a late system message.
fn conversation(options: ChatOptions) -> ChatRequest {
    let schema = json!({"type": "object"});
    let messages = vec![
        Message::user("hi"),
        Message::new(Role::Assistant, vec![MessageContent::call("a", "echo", "{}")]),
        Message::new(Role::Tool, vec![MessageContent::result("a", "1")]),
        Message::system("Now be brief."),
    ];
    let tools = [tool("echo", &schema), tool("other", &schema)].into();
    let instructions = Some("Rules.".to_owned());
    ChatRequest { tools, options: ChatOptions { instructions, ..options }, ..request(messages) }
}

async fn body(caching: PromptCaching, request: ChatRequest) -> Value {
    let server = Server::start(vec![ok(&conversations::whole(Provider::Anthropic))]).await;
    let mut settings = server.settings(Provider::Anthropic);
    settings.caching = caching;
    ProviderClient::new(settings).unwrap().reply(request).await.unwrap();
    server.last_body()
}

fn marks(body: &Value) -> usize {
    body.to_string().matches("cache_control").count()
}

#[tokio::test]
async fn functions_instructions_and_the_conversation_are_marked() {
    for (caching, mark) in [
        (PromptCaching::Auto, json!({"type": "ephemeral"})),
        (PromptCaching::Hour, json!({"type": "ephemeral", "ttl": "1h"})),
    ] {
        let body = body(caching, conversation(ChatOptions::default())).await;
        assert_eq!(body["tools"][1]["cache_control"], mark);
        let system = json!([{"type": "text", "text": "Rules.", "cache_control": mark}]);
        assert_eq!(body["system"], system);
        assert_eq!(body["messages"][2]["content"][0]["cache_control"], mark);
        assert_eq!(marks(&body), 3);
    }
    let body = body(PromptCaching::Auto, user("hi")).await;
    assert_eq!(marks(&body), 1);
}

#[tokio::test]
async fn caching_is_on_by_default_and_can_be_turned_off() {
    let settings = ProviderSettings::new(Provider::Anthropic, "m");
    assert_eq!(settings.caching, PromptCaching::Auto);
    assert_eq!(marks(&body(PromptCaching::Off, conversation(ChatOptions::default())).await), 0);
}

#[tokio::test]
async fn a_caller_who_sets_marks_gets_no_others() {
    let mark = json!({"type": "ephemeral"});
    for (key, value) in [
        ("cache_control", mark.clone()),
        ("mcp_servers", json!([{"tool": {"cache_control": mark}}])),
    ] {
        let additional = Map::from_iter([(key.to_owned(), value)]);
        let options = ChatOptions { additional, ..ChatOptions::default() };
        let body = body(PromptCaching::Auto, conversation(options)).await;
        assert_eq!(marks(&body), 1, "{body}");
    }
}

/// Returns the fields that a client sends to the provider itself.
fn fields(provider: Provider, request: &ChatRequest, caching: PromptCaching) -> Value {
    let mut settings = ProviderSettings::new(provider, "m");
    settings.caching = caching;
    let interface = crate::interface::ModelInterface::of(provider).unwrap();
    let tools = ToolCache::new(None)
        .written(interface.tool, provider.dialect(false), &request.tools, &[], None)
        .unwrap();
    let prepared = PreparedRequest::new(request, &settings, &tools, false);
    let body = prepared.body((interface.fields)(&prepared)).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn the_requests_of_a_session_have_one_key_which_is_not_its_id() {
    let asked = |id: &str| ChatRequest { session_id: Some(id.to_owned()), ..user("hi") };
    for provider in [Provider::OpenAiChat, Provider::OpenAiResponses] {
        let key = |request: &ChatRequest, caching| {
            fields(provider, request, caching)["prompt_cache_key"].clone()
        };
        let one = key(&asked("alice"), PromptCaching::Auto);
        assert_eq!(one.as_str().unwrap().len(), 40);
        assert_eq!(one, key(&asked("alice"), PromptCaching::Auto));
        assert_ne!(one, key(&asked("bob"), PromptCaching::Auto));
        assert_eq!(key(&asked("alice"), PromptCaching::Off), Value::Null);
        assert_eq!(key(&user("hi"), PromptCaching::Auto), Value::Null);
        let mut own = asked("alice");
        own.options.additional.insert("prompt_cache_key".to_owned(), json!("mine"));
        assert_eq!(key(&own, PromptCaching::Auto), "mine");
    }
}

#[tokio::test]
async fn only_openai_gets_a_key_over_chat_completions() {
    let server = Server::start(vec![ok(&conversations::whole(Provider::OpenAiChat))]).await;
    let mut settings = server.settings(Provider::OpenAiChat);
    settings.caching = PromptCaching::Auto;
    let asked = ChatRequest { session_id: Some("alice".to_owned()), ..user("hi") };
    ProviderClient::new(settings).unwrap().reply(asked).await.unwrap();
    assert_eq!(server.last_body()["prompt_cache_key"], Value::Null);
}

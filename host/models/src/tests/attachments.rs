//! Tests of files in messages.

use cofferdam_agent::{ChatErrorKind, Data, MessageContent, Role, UriContent};
use serde_json::{Map, json};

use super::requests::sent_with;
use super::*;

fn data(media_type: &str) -> MessageContent {
    let media_type = media_type.to_owned();
    MessageContent::Data(Data { media_type, data: "aQ==".to_owned(), extra: Map::new() })
}

fn uri(media_type: &str) -> MessageContent {
    let (uri, media_type) = ("https://a.example/f".to_owned(), media_type.to_owned());
    MessageContent::Uri(UriContent { uri, media_type, extra: Map::new() })
}

fn with(content: MessageContent) -> Message {
    Message::new(Role::User, vec![MessageContent::text("look"), content])
}

/// Returns the part that a provider gets for a content.
async fn part(provider: Provider, content: MessageContent) -> Value {
    let body = sent_with(provider, request(vec![with(content)]), |_| ()).await;
    let list = if provider == Provider::OpenAiResponses { "input" } else { "messages" };
    body[list][0]["content"][1].clone()
}

#[tokio::test]
async fn each_file_has_its_form() {
    let (chat, responses, messages) =
        (Provider::OpenAiChat, Provider::OpenAiResponses, Provider::Anthropic);
    let address = "https://a.example/f";
    let pdf = "data:application/pdf;base64,aQ==";
    let audio = |format: &str| json!({"type": "input_audio", "input_audio": {"data": "aQ==", "format": format}});
    for (provider, content, expected) in [
        (chat, uri("image/png"), json!({"type": "image_url", "image_url": {"url": address}})),
        (
            chat,
            data("application/pdf"),
            json!({"type": "file", "file": {"filename": "document.pdf", "file_data": pdf}}),
        ),
        (chat, data("audio/wav"), audio("wav")),
        (chat, data("audio/mpeg"), audio("mp3")),
        (
            responses,
            uri("image/png"),
            json!({"type": "input_image", "detail": "auto", "image_url": address}),
        ),
        (responses, uri("text/csv"), json!({"type": "input_file", "file_url": address})),
        (
            responses,
            data("application/pdf"),
            json!({"type": "input_file", "filename": "document.pdf", "file_data": pdf}),
        ),
        (
            messages,
            uri("image/png"),
            json!({"type": "image", "source": {"type": "url", "url": address}}),
        ),
        (
            messages,
            uri("application/pdf"),
            json!({"type": "document", "source": {"type": "url", "url": address}}),
        ),
        (
            messages,
            data("application/pdf"),
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aQ=="}}),
        ),
    ] {
        assert_eq!(part(provider, content).await, expected, "{provider}");
    }
}

#[tokio::test]
async fn a_file_that_an_api_cannot_show_is_an_error_while_it_is_new() {
    for (provider, content, said) in [
        (
            Provider::OpenAiChat,
            uri("application/pdf"),
            "a link to a file of the type `application/pdf`",
        ),
        (Provider::OpenAiChat, data("application/zip"), "data of the type `application/zip`"),
        (Provider::OpenAiResponses, data("audio/wav"), "data of the type `audio/wav`"),
        (Provider::Anthropic, data("audio/wav"), "data of the type `audio/wav`"),
        (Provider::Anthropic, uri("text/csv"), "a link to a file of the type `text/csv`"),
    ] {
        let server = Server::start(vec![ok(&conversations::whole(provider))]).await;
        let client = server.client(provider);
        let asked = request(vec![with(content.clone())]);
        let error = client.reply(asked).await.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::Configuration, "{provider}");
        assert!(error.message.contains(said), "{error}");
        assert!(server.seen().is_empty());
        // Another model may have answered it.
        let messages = vec![with(content), Message::assistant("ok"), Message::user("and?")];
        client.reply(request(messages)).await.unwrap();
        assert!(server.last_body().to_string().contains("that cannot be shown here]"));
    }
}

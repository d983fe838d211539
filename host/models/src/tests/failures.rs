//! Tests of failing servers: the error describes the failure, arrives in time, and contains no key.

use std::time::Instant;

use cofferdam_agent::ChatErrorKind::{
    self, Cancelled, Configuration, Connection, Malformed, Overloaded, Rejected, Timeout, TooLarge,
    Unauthorized,
};
use serde_json::json;

use super::*;

/// Longer than any test takes, and short enough to wait for.
const PROMPT: Duration = Duration::from_secs(20);

/// Returns the errors of a whole and a streamed request to a server that gives both the same
/// response.
async fn errors(
    provider: Provider,
    answer: Answer,
    set: impl Fn(&mut ProviderSettings),
) -> [ChatError; 2] {
    let server = Server::start(vec![answer]).await;
    let mut settings = server.settings(provider);
    settings.retries.retries_max = 0;
    set(&mut settings);
    let client = ProviderClient::new(settings).unwrap();
    let started = Instant::now();
    let errors = [
        client.reply(user("hi")).await.unwrap_err(),
        streamed(&client, user("hi")).await.unwrap_err(),
    ];
    assert!(started.elapsed() < PROMPT, "it took {:?}", started.elapsed());
    for error in &errors {
        assert!(!format!("{error} {error:?}").contains(KEY), "the key is in {error:?}");
    }
    errors
}

async fn check(answer: Answer, kind: ChatErrorKind, text: &str) {
    for provider in Provider::ALL {
        for error in errors(provider, answer.clone(), |_| ()).await {
            assert_eq!(error.kind, kind, "{provider}: {error:?}");
            assert!(error.message.contains(text), "{provider}: {error:?}");
        }
    }
}

fn error_body(text: &str) -> String {
    json!({"error": {"message": text, "type": "x"}}).to_string()
}

#[tokio::test]
async fn a_status_says_what_kind_of_failure_it_is_and_the_body_why() {
    let kinds = [
        (400, Rejected),
        (401, Unauthorized),
        (403, Unauthorized),
        (404, Rejected),
        (408, Timeout),
        (422, Rejected),
        (429, Overloaded),
        (500, ChatErrorKind::Server),
        (503, ChatErrorKind::Server),
        (529, Overloaded),
        (304, Configuration),
    ];
    for (status, kind) in kinds {
        let body = error_body("no such model `x`");
        let text = if status == 304 { "set the base URL" } else { "no such model `x`" };
        check(json_answer(status, "", &body), kind, text).await;
    }
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_not_shown() {
    let echoed = format!("bad \u{1b}[31mkey {KEY} (Bearer {KEY})");
    check(
        json_answer(401, "", &error_body(&echoed)),
        Unauthorized,
        "bad \\u{1b}[31mkey [secret key]",
    )
    .await;
    check(json_answer(500, "", &echoed), ChatErrorKind::Server, "[secret key]").await;
    let html = format!("<html>{KEY}</html>");
    check(json_answer(502, "", &html), ChatErrorKind::Server, "an HTML page").await;
    let reported = json!({"type": "error", "error": {"type": "overloaded_error", "message": KEY}});
    check(ok(&reported), Overloaded, "[secret key]").await;
    check(events(&named(&[reported])), Overloaded, "[secret key]").await;
    // Short keys and the values of headers are redacted too.
    let answer = json_answer(401, "", &error_body("got k3y! and another-secret"));
    let server = Server::start(vec![answer]).await;
    let settings = server.settings(Provider::OpenAiChat).with_key(SecretText::new("k3y!"));
    let settings =
        settings.with_header("x-gateway", &SecretText::new("Token another-secret")).unwrap();
    let error = ProviderClient::new(settings).unwrap().reply(user("hi")).await.unwrap_err();
    assert!(error.message.ends_with("got [secret key] and [secret x-gateway]"), "{error}");
}

#[tokio::test]
async fn neither_key_nor_address_is_in_what_is_printed_of_a_client() {
    let base = format!("https://example.com/{KEY}?key={KEY}");
    let settings = ProviderSettings::new(Provider::Anthropic, "m")
        .with_base_url(base)
        .with_key(SecretText::new(KEY));
    let settings =
        settings.with_header("authorization", &SecretText::new(format!("Bearer {KEY}"))).unwrap();
    let shown = format!("{settings:?} {:?}", ProviderClient::new(settings.clone()).unwrap());
    assert!(!shown.contains("sk-"), "{shown}");
    assert!(shown.contains("https://example.com"), "{shown}");
    for bad in [
        format!("https://user:{KEY}@example.com"),
        format!("http://{KEY}.example.com"),
        format!("x{KEY}"),
    ] {
        let error = ProviderClient::new(settings.clone().with_base_url(bad)).unwrap_err();
        assert_eq!(error.kind, Configuration);
        assert!(!format!("{error:?}").contains("sk-"), "{error:?}");
    }
    let error =
        ProviderClient::new(settings.with_key(SecretText::new(format!("{KEY}\n")))).unwrap_err();
    assert!(!format!("{error:?}").contains("sk-"), "{error:?}");
}

#[tokio::test]
async fn plain_http_goes_to_this_machine_alone_unless_it_is_allowed() {
    let client = |base: &str, allow: bool| {
        let mut settings = ProviderSettings::new(Provider::OpenAiChat, "m").with_base_url(base);
        settings.allow_plain_http = allow;
        ProviderClient::new(settings).map(|_| ())
    };
    for base in [
        "http://127.0.0.1:1/v1",
        "http://127.8.0.1",
        "http://[::1]:1",
        "http://localhost:1",
        "https://a.example",
    ] {
        assert_eq!(client(base, false), Ok(()), "{base}");
    }
    for base in [
        "http://a.example",
        "http://10.0.0.1",
        "http://localhost.a.example",
        "http://127.0.0.1.a.example",
    ] {
        assert_eq!(client(base, false).unwrap_err().kind, Configuration, "{base}");
        assert_eq!(client(base, true), Ok(()), "{base}");
    }
    assert_eq!(client("ftp://127.0.0.1", true).unwrap_err().kind, Configuration);
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_does_not_is_not() {
    let fine = |provider| ok(&conversations::whole(provider));
    let busy = |more: &str| json_answer(429, more, &error_body("slow down"));
    for provider in Provider::ALL {
        let broken = vec![];
        let cut_off = vec![
            Step::Send(head(200, "application/json", "content-length: 100\r\n")),
            Step::Send(b"{".into()),
        ];
        let answers = vec![busy("retry-after: 0\r\n"), json_answer(529, "", ""), broken, cut_off];
        let server = Server::start([answers, vec![fine(provider)]].concat()).await;
        let mut settings = server.settings(provider);
        settings.retries.retries_max = 4;
        let reply = ProviderClient::new(settings).unwrap().reply(user("hi")).await;
        assert_eq!(reply.unwrap(), conversations::expected(provider));
        assert_eq!(server.seen().len(), 5);
    }
    for (answer, tries) in [
        (json_answer(500, "", ""), 4),
        (json_answer(500, "x-should-retry: false\r\n", ""), 1),
        (json_answer(400, "", ""), 1),
        (busy("retry-after: 3600\r\n"), 1),
        (
            json_answer(
                429,
                "",
                &json!({"error": {"code": "insufficient_quota", "message": "pay"}}).to_string(),
            ),
            1,
        ),
        (json_answer(200, "", "[]"), 1),
    ] {
        let server = Server::start(vec![answer]).await;
        let client = server.client(Provider::OpenAiChat);
        let error = client.reply(user("hi")).await.unwrap_err();
        assert_eq!(server.seen().len(), tries, "{error}");
        assert_eq!(error.message.ends_with("(after 4 tries)"), tries == 4, "{error}");
        let asked = error.message.contains("slow down").then_some(Duration::from_secs(3600));
        assert_eq!(error.retry_after, asked);
        assert_eq!(error.message.contains("; asked to wait 3600 s"), asked.is_some(), "{error}");
    }
}

#[tokio::test]
async fn a_stream_is_begun_again_only_before_it_has_begun() {
    let provider = Provider::OpenAiChat;
    let fine = events(&conversations::in_events(provider));
    let cut = |bytes: &str| {
        let length = "content-length: 1000\r\n";
        vec![
            Step::Send(head(200, "text/event-stream", length)),
            Step::Send(bytes.as_bytes().to_vec()),
        ]
    };
    let server = Server::start(vec![cut(""), fine.clone()]).await;
    let reply = streamed(&server.client(provider), user("hi")).await.unwrap();
    assert_eq!((reply, server.seen().len()), (conversations::expected(provider), 2));
    let server =
        Server::start(vec![cut("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"), fine])
            .await;
    let mut updates = server.client(provider).stream(user("hi")).await.unwrap();
    assert!(updates.next().await.unwrap().is_ok());
    assert_eq!(updates.next().await.unwrap().unwrap_err().kind, Connection);
    assert!(updates.next().await.is_none(), "nothing follows an error");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_broken_connection() {
    let settings =
        ProviderSettings::new(Provider::OpenAiChat, "m").with_base_url("http://127.0.0.1:1/v1");
    let mut settings = settings.with_key(SecretText::new(KEY));
    settings.retries.pause = Duration::ZERO;
    let error = ProviderClient::new(settings).unwrap().reply(user("hi")).await.unwrap_err();
    assert_eq!(error.kind, Connection);
    assert!(error.message.starts_with("http://127.0.0.1:1 cannot be reached: "), "{error}");
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_in_time() {
    let beginning = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    let half_json =
        vec![Step::Send(head(200, "application/json", "")), Step::Send(b"{".to_vec()), Step::Hang];
    let half_stream = [events(beginning), vec![Step::Hang]].concat();
    let only_head = vec![Step::Send(head(200, "text/event-stream", "")), Step::Hang];
    for answer in [vec![Step::Hang], half_json, half_stream, only_head] {
        let short = |settings: &mut ProviderSettings| {
            settings.timeouts.first_byte = Duration::from_millis(300);
            settings.timeouts.pause = Duration::from_millis(300);
            settings.retries.retries_max = 3;
        };
        for error in errors(Provider::OpenAiChat, answer, short).await {
            assert_eq!(error.kind, Timeout, "{error}");
            assert!(error.message.ends_with("said nothing for 0.3 s"), "{error}");
        }
    }
    // A server that is never silent for long and never done.
    let mut drops = vec![Step::Send(head(200, "text/event-stream", ""))];
    drops.extend((0..1000).flat_map(|_| {
        [Step::Send(b": still here\n\n".to_vec()), Step::Wait(Duration::from_millis(20))]
    }));
    let in_all =
        |settings: &mut ProviderSettings| settings.timeouts.total = Duration::from_millis(500);
    for error in errors(Provider::OpenAiChat, drops, in_all).await {
        assert_eq!(error.kind, Timeout, "{error}");
        assert!(error.message.ends_with("gave no whole reply within 0.5 s"), "{error}");
    }
}

#[tokio::test]
async fn cancelling_ends_everything_at_once() {
    let beginning = data(&[json!({"choices": [{"delta": {"content": "x"}}]})]);
    let busy = json_answer(429, "retry-after: 20\r\n", "");
    for answer in [vec![Step::Hang], busy, [events(&beginning), vec![Step::Hang]].concat()] {
        let server = Server::start(vec![answer]).await;
        let client = server.client(Provider::OpenAiChat);
        for streams in [false, true] {
            let asked = user("hi");
            let cancellation = asked.cancellation.clone();
            let (seen, before) = (Arc::clone(&server.seen), server.seen().len());
            let cancelling = async {
                while seen.lock().unwrap().len() == before {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                cancellation.cancel();
            };
            let started = Instant::now();
            let asking = async {
                if streams { streamed(&client, asked).await } else { client.reply(asked).await }
            };
            let (reply, ()) = tokio::join!(asking, cancelling);
            assert_eq!(reply.unwrap_err().kind, Cancelled);
            assert!(started.elapsed() < Duration::from_secs(10));
        }
    }
    let asked = user("hi");
    asked.cancellation.cancel();
    let server = Server::start(vec![vec![Step::Hang]]).await;
    assert_eq!(server.client(Provider::Anthropic).reply(asked).await.unwrap_err().kind, Cancelled);
    assert!(server.seen().is_empty(), "nothing is sent for a canceled call");
}

#[tokio::test]
async fn a_reply_over_a_limit_is_dropped() {
    let announced = vec![
        Step::Send(head(200, "application/json", "content-length: 99999999999\r\n")),
        Step::Hang,
    ];
    check(announced, TooLarge, "the reply is larger").await;
    let small = |settings: &mut ProviderSettings| {
        settings.limits.reply_bytes_max = 10_000;
        settings.limits.event_bytes_max = 5_000;
        settings.limits.stream_bytes_max = 50_000;
        settings.limits.calls_max = 2;
        settings.limits.arguments_bytes_max = 2_000;
    };
    let chunk = |delta: Value| data(&[json!({"choices": [{"delta": delta}]})]);
    let call = |arguments: &str| json!({"function": {"name": "f", "arguments": arguments}});
    let whole = |message: Value| ok(&json!({"choices": [{"message": message}]}));
    let endless = vec![
        Step::Send(head(200, "application/json", "")),
        Step::Send(vec![b' '; 20_000]),
        Step::Hang,
    ];
    for (answer, text) in [
        (endless, "the reply is"),
        (events(&chunk(json!({"content": "x".repeat(5_000)}))), "an event of the stream is"),
        (events(&chunk(json!({"content": "x".repeat(4_000)})).repeat(4)), "the reply is"),
        (events(&": keep-alive\n\n".repeat(5_000)), "the reply is"),
        (
            events(&chunk(json!({"tool_calls": [call("1"), call("2"), call("3")]}))),
            "the number of function calls is",
        ),
        (
            whole(json!({"tool_calls": [call("1"), call("2"), call("3")]})),
            "the number of function calls is",
        ),
        (
            events(&chunk(json!({"tool_calls": [call(&"[".repeat(1_500))]})).repeat(2)),
            "the arguments of a function call are",
        ),
        (
            whole(json!({"tool_calls": [call(&"1".repeat(2_500))]})),
            "the arguments of a function call are",
        ),
    ] {
        for error in errors(Provider::OpenAiChat, answer, small).await {
            assert_eq!(error.kind, TooLarge, "{error}");
            assert!(
                error.message.ends_with(&format!("{text} larger than the limit")),
                "{error} for {text}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_no_reply_is_an_error() {
    for body in [
        "",
        "[]",
        "hello",
        "{\"choices\": [",
        "{}",
        "null",
        "{\"choices\": 1, \"output\": 2, \"content\": 3}",
    ] {
        check(json_answer(200, "", body), Malformed, "sent ").await;
    }
    check(json_answer(200, "", "<!doctype html>"), Malformed, "an HTML page instead of JSON").await;
    let html =
        vec![Step::Send(head(200, "text/html; charset=utf-8", "")), Step::Send(b"<html>".to_vec())];
    check(html, Malformed, "an HTML page instead of JSON").await;
    check(
        vec![Step::Send(head(200, "application/json", "")), Step::Send(vec![0xff, 0xfe])],
        Malformed,
        "not UTF-8",
    )
    .await;
    check(events("data: {\"choices\": [\n\n"), Malformed, "not a JSON object").await;
    check(events(""), Connection, "before the reply was complete").await;
    check(events("data: [DONE]\n\n"), Connection, "").await;
}

#[tokio::test]
async fn a_stream_that_is_cut_off_is_an_error_wherever_it_is_cut() {
    for provider in Provider::ALL {
        let text = conversations::in_events(provider);
        let boundaries = text.match_indices("\n\n").map(|(at, _)| at);
        for at in boundaries
            .flat_map(|at| [at.saturating_sub(7), at, at + 2])
            .filter(|at| text.is_char_boundary(*at))
        {
            let reply = reply_to_events(provider, text.get(..at).unwrap()).await;
            match reply {
                Err(error) => assert!(matches!(error.kind, Connection | Malformed), "{error}"),
                // Only the usage or the end marker is missing.
                Ok(reply) => {
                    assert_eq!(reply.messages, conversations::expected(provider).messages);
                    assert!(text.len() - at < 250, "{provider} cut at {at} of {}", text.len());
                }
            }
        }
    }
}

#[tokio::test]
async fn a_failure_in_the_midst_of_a_stream_ends_it() {
    let chat = data(&[json!({"choices": [{"delta": {"content": "x"}}]})])
        + &data(&[json!({"error": {"message": "gone", "code": 503}})]);
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "gone"}}});
    let messages = json!({"type": "error", "error": {"type": "api_error", "message": "gone"}});
    for (provider, text) in [
        (Provider::OpenAiChat, chat),
        (Provider::OpenAiResponses, named(&[failed])),
        (
            Provider::OpenAiResponses,
            named(&[json!({"type": "error", "code": "server_error", "message": "gone"})]),
        ),
        (Provider::Anthropic, named(&[messages])),
    ] {
        let error = reply_to_events(provider, &text).await.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::Server, "{error}");
        assert!(error.message.ends_with("reports an error: gone"), "{error}");
    }
    let body = json!({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "later"}, "output": []});
    assert_eq!(reply_to(Provider::OpenAiResponses, &body).await.unwrap_err().kind, Overloaded);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Server::start(vec![ok(&conversations::whole(Provider::OpenAiChat))]).await;
    let location = format!("location: {}/chat/completions\r\n", other.url);
    for status in [301, 302, 303, 307, 308] {
        check(json_answer(status, &location, ""), Configuration, "redirects to another address")
            .await;
    }
    assert!(other.seen().is_empty());
}

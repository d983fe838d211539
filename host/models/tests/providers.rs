//! Tests of the clients against third-party servers with the APIs of model providers: `aimock`,
//! which implements all three, and `openai-mock-api`, which implements Chat Completions as
//! carelessly as many servers do. `cargo xtask models` installs them and runs these tests; without
//! `COFFERDAM_MODELS` the tests report that they are skipped.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says on standard output when it is skipped"
)]

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use cofferdam_agent::{
    ChatClient as _, ChatError, ChatErrorKind, ChatOptions, ChatRequest, Data, FunctionResult,
    Message, MessageContent, Reply, ReplyBuilder, Role, ToolMode,
};
use cofferdam_models::{Provider, ProviderClient, ProviderSettings};
use cofferdam_tool::ToolDefinition;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::permission::SecretText;
use futures_util::StreamExt as _;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Maximum time that a server takes to start on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);
/// Key that both servers require.
const KEY: &str = "right-key";
const WRONG_KEY: &str = "wrong-key-0123456789";

/// Returns a port on which nothing listens. Systems do not choose ports below 32768 for connections
/// and listeners of other processes and tests, and each call returns another one.
fn unused_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        // Not by listening: a process that another test is starting would have the listener, too.
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return port;
        }
    }
}

/// A server that runs until it is dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts the server for all APIs, which sends pieces of a few characters; `None` if it is not
    /// installed.
    fn aimock() -> Option<Self> {
        let line = ["--strict", "--chunk-size", "4", "--log-level", "silent", "-f"];
        Self::start("@copilotkit/aimock/dist/cli.js", &line, "aimock.json", "-p")
    }

    /// Starts the careless server.
    fn careless() -> Option<Self> {
        Self::start("openai-mock-api/dist/cli.js", &["--config"], "openai-mock-api.yaml", "--port")
    }

    fn start(program: &str, line: &[&str], script: &str, port_flag: &str) -> Option<Self> {
        let Ok(folder) = std::env::var("COFFERDAM_MODELS") else {
            println!("skipped: COFFERDAM_MODELS names no folder; `cargo xtask models` makes one");
            return None;
        };
        let folder = PathBuf::from(folder);
        let node = std::fs::read_to_string(folder.join("node")).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models").join(script);
        let port = unused_port();
        let child = Command::new(node)
            .arg(folder.join("npm/node_modules").join(program))
            .args(line)
            .arg(script)
            .args([port_flag, &port.to_string()])
            .env("AIMOCK_API_KEYS", KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { child, port };
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert_eq!(server.child.try_wait().unwrap(), None, "{program} has ended");
            assert!(started.elapsed() < START_MAX, "{program} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    /// Returns settings for a test. Steps that a fixture runs once are run once per `test`.
    fn settings(&self, provider: Provider, test: &str) -> ProviderSettings {
        let version = if provider == Provider::Anthropic { "" } else { "/v1" };
        let base = format!("http://127.0.0.1:{}{version}", self.port);
        let settings =
            ProviderSettings::new(provider, "m").with_base_url(base).with_key(SecretText::new(KEY));
        let mut settings = settings.with_header("x-test-id", &SecretText::new(test)).unwrap();
        settings.retries.pause = Duration::from_millis(1);
        settings
    }

    fn client(&self, provider: Provider, test: &str) -> ProviderClient {
        ProviderClient::new(self.settings(provider, test)).unwrap()
    }

    /// Returns the last request that aimock received, as parsed by it.
    async fn last_request(&self) -> Value {
        let mut stream =
            tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.unwrap();
        let line = "GET /__aimock/journal HTTP/1.0";
        let request = format!("{line}\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let entries: Value =
            serde_json::from_str(body).unwrap_or_else(|_| panic!("no JSON: {head}\n{body}"));
        entries.as_array().and_then(|entries| entries.last()).unwrap()["body"].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn tools() -> Arc<[Arc<ToolDefinition>]> {
    let tool = |(name, parameter): (&str, &str)| {
        let properties =
            json!({parameter: {"type": "string"}, "times": {"type": "integer", "default": 1}});
        let schema = json!({"type": "object", "properties": properties, "required": [parameter]});
        let declaration = Declaration::new(name, format!("does {name}"), schema.to_string());
        Arc::new(declaration.compile().unwrap())
    };
    [("files.read", "path"), ("echo", "text")].map(tool).into()
}

fn ask(messages: &[Message]) -> ChatRequest {
    let messages = messages.iter().cloned().map(Arc::new).collect();
    ChatRequest { messages, tools: tools(), ..ChatRequest::default() }
}

async fn get(
    client: &ProviderClient,
    request: ChatRequest,
    streams: bool,
) -> Result<Reply, ChatError> {
    if !streams {
        return client.reply(request).await;
    }
    let mut updates = client.stream(request).await?;
    let mut builder = ReplyBuilder::default();
    while let Some(update) = updates.next().await {
        builder.add(update?);
    }
    Ok(builder.build())
}

fn calls(reply: &Reply) -> Vec<(&str, &str, &str)> {
    let calls = reply.messages.iter().flat_map(Message::calls);
    calls.map(|call| (call.call_id.as_str(), call.name.as_str(), call.arguments.as_str())).collect()
}

fn text(reply: &Reply) -> String {
    reply.messages.iter().map(Message::text).collect()
}

/// Returns every API, whole and streamed, with a name for each combination.
fn ways() -> impl Iterator<Item = (Provider, bool, String)> {
    let both = |provider| {
        [false, true].map(|streams| (provider, streams, format!("{provider}-{streams}")))
    };
    Provider::ALL.into_iter().flat_map(both)
}

#[tokio::test]
async fn a_loop_of_three_rounds_with_parallel_calls() {
    let Some(server) = Server::aimock() else { return };
    for (provider, streams, name) in ways() {
        let client = server.client(provider, &name);
        let mut messages = vec![Message::system("Be brief."), Message::user("loop please")];
        let reply = get(&client, ask(&messages), streams).await.unwrap();
        assert_eq!(text(&reply), "Both.", "{name}");
        let expected =
            [("a", "files.read", r#"{"path":"a.txt"}"#), ("b", "echo", r#"{"text":"hé"}"#)];
        assert_eq!(calls(&reply), expected, "{name}");
        let usage = reply.usage.map(|usage| (usage.input, usage.output, usage.total));
        assert_eq!(usage, Some((10, 5, 15)), "{name}");
        messages.extend(reply.messages);
        let failed = FunctionResult {
            call_id: "b".to_owned(),
            result: "Error: no".to_owned(),
            is_error: true,
            ..FunctionResult::default()
        };
        let results =
            vec![MessageContent::result("a", "first"), MessageContent::FunctionResult(failed)];
        messages.push(Message::new(Role::Tool, results));
        let reply = get(&client, ask(&messages), streams).await.unwrap();
        assert_eq!(calls(&reply), [("c", "echo", r#"{"text":"again"}"#)], "{name}");
        messages.extend(reply.messages);
        messages
            .push(Message::new(Role::Tool, vec![MessageContent::result("c", "the second round")]));
        let reply = get(&client, ask(&messages), streams).await.unwrap();
        assert_eq!((text(&reply).as_str(), calls(&reply).len()), ("done", 0), "{name}");
        let seen = server.last_request().await;
        let messages = seen["messages"].as_array().unwrap();
        let roles: Vec<_> =
            messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        // This server treats each item of Responses as a message.
        let of_replies: &[_] =
            if provider == Provider::OpenAiResponses { &["assistant"; 3] } else { &["assistant"] };
        let expected =
            [&["system", "user"], of_replies, &["tool", "tool", "assistant", "tool"]].concat();
        assert_eq!(roles, expected, "{name}: {seen}");
        assert_eq!(seen["tools"][0]["function"]["name"], "files_read", "{name}: {seen}");
    }
}

#[tokio::test]
async fn options_and_strict_schemas_arrive() {
    let Some(server) = Server::aimock() else { return };
    for (provider, streams, name) in ways() {
        let options = ChatOptions {
            strict_schemas: true,
            tool_choice: Some(ToolMode::Required(Some("files.read".to_owned()))),
            allow_parallel_calls: Some(true),
            max_output_tokens: Some(100),
            temperature: Some(0.5),
            ..ChatOptions::default()
        };
        let request = ChatRequest { options, ..ask(&[Message::user("loop please")]) };
        let reply = get(&server.client(provider, &name), request, streams).await.unwrap();
        assert_eq!(calls(&reply).len(), 2, "{name}");
        let seen = server.last_request().await;
        let parameters = &seen["tools"][0]["function"]["parameters"];
        assert_eq!(parameters["additionalProperties"], json!(false), "{name}: {seen}");
        // Anthropic's strict mode lets arguments be omitted.
        let required = if provider == Provider::Anthropic {
            json!(["path"])
        } else {
            json!(["path", "times"])
        };
        assert_eq!(parameters["required"], required, "{name}: {seen}");
        let is_sent = provider != Provider::Anthropic;
        let temperature = if is_sent { json!(0.5) } else { Value::Null };
        assert_eq!(seen["temperature"], temperature, "{name}: {seen}");
    }
}

#[tokio::test]
async fn images_in_questions_and_results_are_accepted() {
    let Some(server) = Server::aimock() else { return };
    for (provider, streams, name) in ways() {
        let client = server.client(provider, &name);
        let image =
            Data { media_type: "image/png".to_owned(), data: "aQ==".to_owned(), extra: Map::new() };
        let question = Message::new(
            Role::User,
            vec![MessageContent::text("loop please"), MessageContent::Data(image.clone())],
        );
        let reply = get(&client, ask(std::slice::from_ref(&question)), streams).await.unwrap();
        assert_eq!(calls(&reply).len(), 2, "{name}");
        let shown = FunctionResult {
            call_id: "c".to_owned(),
            result: "the second round".to_owned(),
            items: vec![image],
            ..FunctionResult::default()
        };
        let call = Message::new(Role::Assistant, vec![MessageContent::call("c", "echo", "{}")]);
        let result = Message::new(Role::Tool, vec![MessageContent::FunctionResult(shown)]);
        let reply = get(&client, ask(&[question, call, result]), streams).await;
        match provider {
            // The image is in a user message there, and this server matches the last user message.
            Provider::OpenAiChat => {
                assert_eq!(reply.unwrap_err().kind, ChatErrorKind::Server, "{name}")
            }
            // The server does not look into results that are lists.
            Provider::OpenAiResponses => assert_eq!(calls(&reply.unwrap()).len(), 1, "{name}"),
            _ => assert_eq!(text(&reply.unwrap()), "done", "{name}"),
        }
    }
}

#[tokio::test]
async fn reasoning_comes_and_goes_back() {
    let Some(server) = Server::aimock() else { return };
    for (provider, streams, name) in ways() {
        let client = server.client(provider, &name);
        let mut messages = vec![Message::user("think")];
        let reply = get(&client, ask(&messages), streams).await.unwrap();
        assert_eq!(text(&reply), "thought", "{name}");
        let first = reply.messages[0].contents.first();
        let Some(MessageContent::Reasoning(reasoning)) = first else { panic!("{name}: {reply:?}") };
        assert_eq!(reasoning.text, "Hm. Let me see.", "{name}");
        let is_preserved = reasoning.opaque.is_some();
        assert_eq!(is_preserved, provider != Provider::OpenAiChat, "{name}: {reasoning:?}");
        messages.extend(reply.messages);
        messages.push(Message::user("think again"));
        assert_eq!(
            text(&get(&client, ask(&messages), streams).await.unwrap()),
            "thought",
            "{name}"
        );
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_arrive_unchanged() {
    let Some(server) = Server::aimock() else { return };
    for (provider, streams, name) in ways() {
        let client = server.client(provider, &name);
        let mut messages = vec![Message::user("malformed arguments")];
        let reply = get(&client, ask(&messages), streams).await.unwrap();
        // The server itself repairs them for Anthropic, whose inputs are objects.
        let arguments = if provider == Provider::Anthropic { "{}" } else { "{\"text\": " };
        assert_eq!(calls(&reply), [("m", "echo", arguments)], "{name}");
        messages.push(Message::new(
            Role::Assistant,
            vec![MessageContent::call("m", "echo", "{\"text\": ")],
        ));
        messages.push(Message::new(
            Role::Tool,
            vec![MessageContent::result("m", "Error: Argument parsing failed.")],
        ));
        assert_eq!(calls(&get(&client, ask(&messages), streams).await.unwrap()).len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let Some(server) = Server::aimock() else { return };
    for (provider, streams, name) in ways() {
        let client = server.client(provider, &name);
        let reply = get(&client, ask(&[Message::user("busy once")]), streams).await.unwrap();
        assert_eq!(text(&reply), "at last", "{name}");
        let error = get(&client, ask(&[Message::user("always busy")]), streams).await.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::Overloaded, "{name}");
        assert_eq!(error.retry_after, Some(Duration::from_secs(3600)), "{name}");
        assert!(error.message.contains("slow down"), "{name}: {error}");
    }
}

#[tokio::test]
async fn failures_have_their_kinds() {
    let Some(server) = Server::aimock() else { return };
    for (provider, streams, name) in ways() {
        let mut settings = server.settings(provider, &name);
        settings.timeouts.first_byte = Duration::from_secs(3);
        settings.timeouts.pause = Duration::from_secs(1);
        let client = ProviderClient::new(settings).unwrap();
        let mut failures = vec![
            ("fail", ChatErrorKind::Server),
            ("garble", ChatErrorKind::Malformed),
            ("disconnect", ChatErrorKind::Connection),
        ];
        if streams {
            failures
                .extend([("cut off", ChatErrorKind::Connection), ("slow", ChatErrorKind::Timeout)]);
        }
        for (question, kind) in failures {
            let started = Instant::now();
            let error = get(&client, ask(&[Message::user(question)]), streams).await.unwrap_err();
            assert_eq!(error.kind, kind, "{name}, {question}: {error}");
            assert!(
                started.elapsed() < Duration::from_secs(25),
                "{name}, {question}: {:?}",
                started.elapsed()
            );
        }
    }
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_not_shown() {
    let Some(server) = Server::aimock() else { return };
    for (provider, streams, name) in ways() {
        let settings = server.settings(provider, &name).with_key(SecretText::new(WRONG_KEY));
        let client = ProviderClient::new(settings).unwrap();
        let error = get(&client, ask(&[Message::user("think")]), streams).await.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::Unauthorized, "{name}: {error}");
        assert!(!format!("{error:?}").contains(WRONG_KEY), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_careless_server_is_understood() {
    let Some(server) = Server::careless() else { return };
    for streams in [false, true] {
        let client = server.client(Provider::OpenAiChat, "careless");
        let mut messages = vec![Message::user("loop please")];
        let reply = get(&client, ask(&messages), streams).await.unwrap();
        let expected =
            [("a", "files.read", r#"{"path":"a.txt"}"#), ("b", "echo", r#"{"text":"hé"}"#)];
        assert_eq!(calls(&reply), expected);
        messages.extend(reply.messages);
        messages.push(Message::new(
            Role::Tool,
            vec![MessageContent::result("a", "x"), MessageContent::result("b", "y")],
        ));
        assert_eq!(text(&get(&client, ask(&messages), streams).await.unwrap()), "done");
        let wrong =
            server.settings(Provider::OpenAiChat, "careless").with_key(SecretText::new(WRONG_KEY));
        let error =
            get(&ProviderClient::new(wrong).unwrap(), ask(&messages), streams).await.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::Unauthorized, "{error}");
    }
}

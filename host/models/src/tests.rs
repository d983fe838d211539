//! Tests of the clients against a server that sends exactly the bytes of each test.

mod adaptation;
mod attachments;
mod caching;
mod conversations;
mod failures;
mod gemini;
mod hosted;
mod options;
mod preserved;
mod replies;
mod requests;
mod splits;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_agent::{ChatClient as _, ChatError, ChatRequest, Message, Reply, ReplyBuilder};
use cofferdam_tool::ToolDefinition;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::permission::SecretText;
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::{PromptCaching, Provider, ProviderClient, ProviderSettings};

/// Key of every client here. No error and no `Debug` may show it.
const KEY: &str = "sk-very-secret-0123456789";

/// One step of a server's response.
#[derive(Clone)]
enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    Hang,
}

/// A response, as steps after which the connection is closed.
type Answer = Vec<Step>;

/// A request that a server received.
#[derive(Debug, Clone)]
struct Seen {
    head: String,
    body: Value,
}

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Starts a server that sends these responses in order, and repeats the last one.
    async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let requests = Arc::clone(&seen);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (requests, answers) = (Arc::clone(&requests), answers.clone());
                tokio::spawn(async move { serve(stream, &requests, &answers).await });
            }
        });
        Self { url, seen }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn last_body(&self) -> Value {
        self.seen().last().unwrap().body.clone()
    }

    fn settings(&self, provider: Provider) -> ProviderSettings {
        let mut settings = ProviderSettings::new(provider, "m")
            .with_base_url(&self.url)
            .with_key(SecretText::new(KEY));
        settings.retries.pause = Duration::from_millis(1);
        // Its marks are in nearly every part of a body, and have tests of their own.
        settings.caching = PromptCaching::Off;
        settings
    }

    fn client(&self, provider: Provider) -> ProviderClient {
        ProviderClient::new(self.settings(provider)).unwrap()
    }
}

/// Reads one request and responds. Stops if the client disconnects.
async fn serve(
    mut stream: TcpStream,
    requests: &Mutex<Vec<Seen>>,
    answers: &[Answer],
) -> Option<()> {
    let mut read = Vec::new();
    let head_end = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(read[..head_end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap()
        .parse::<usize>()
        .unwrap();
    while read.len() < head_end + 4 + length {
        stream.read_buf(&mut read).await.ok()?;
    }
    let body = serde_json::from_slice(&read[head_end + 4..]).unwrap();
    let number = {
        let mut requests = requests.lock().unwrap();
        requests.push(Seen { head, body });
        requests.len() - 1
    };
    let answer = answers.get(number).or(answers.last()).unwrap();
    for step in answer {
        match step {
            Step::Send(bytes) => stream.write_all(bytes).await.ok()?,
            Step::Wait(time) => tokio::time::sleep(*time).await,
            Step::Hang => std::future::pending().await,
        }
    }
    stream.shutdown().await.ok()
}

fn head(status: u16, content_type: &str, more: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} x\r\ncontent-type: {content_type}\r\nconnection: close\r\n{more}\r\n"
    )
    .into_bytes()
}

fn json_answer(status: u16, more: &str, body: &str) -> Answer {
    let more = format!("content-length: {}\r\n{more}", body.len());
    vec![Step::Send(head(status, "application/json", &more)), Step::Send(body.as_bytes().to_vec())]
}

fn ok(body: &Value) -> Answer {
    json_answer(200, "", &body.to_string())
}

/// Returns a stream that ends when the connection closes.
fn events(text: &str) -> Answer {
    vec![Step::Send(head(200, "text/event-stream", "")), Step::Send(text.as_bytes().to_vec())]
}

/// Returns events in the form of OpenAI Chat.
fn data(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Returns events in the form of the two other APIs.
fn named(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

fn user(text: &str) -> ChatRequest {
    request(vec![Message::user(text)])
}

fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest { messages: messages.into_iter().map(Arc::new).collect(), ..ChatRequest::default() }
}

pub(super) fn tool(name: &str, schema: &Value) -> Arc<ToolDefinition> {
    let declaration = Declaration::new(name, format!("does {name}"), schema.to_string());
    Arc::new(declaration.compile().unwrap())
}

async fn streamed(client: &ProviderClient, request: ChatRequest) -> Result<Reply, ChatError> {
    let mut updates = client.stream(request).await?;
    let mut builder = ReplyBuilder::default();
    while let Some(update) = updates.next().await {
        builder.add(update?);
    }
    Ok(builder.build())
}

/// Returns the reply that a stream of these bytes gives.
async fn reply_to_events(provider: Provider, text: &str) -> Result<Reply, ChatError> {
    let server = Server::start(vec![events(text)]).await;
    streamed(&server.client(provider), user("hi")).await
}

async fn reply_to(provider: Provider, body: &Value) -> Result<Reply, ChatError> {
    let server = Server::start(vec![ok(body)]).await;
    server.client(provider).reply(user("hi")).await
}

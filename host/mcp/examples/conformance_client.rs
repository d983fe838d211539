//! Client that the official conformance suite runs. It connects to the address in its last
//! argument, lists the tools, and calls each of them (or those that the suite names) through a
//! toolset, as any host would.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use cofferdam_mcp::client::{
    Browser, Generation, HttpEndpoint, MemoryCredentials, OAuthClient, OAuthSettings, RemoteServer,
    SamplingHandler, ServerEndpoint, ServerSettings,
};
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use cofferdam_tool::{CallContext, Outcome, ToolDefinition, ToolSource as _, Toolset};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

/// Parameters that the suite passes to a client.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Given {
    #[serde(alias = "toolCalls")]
    tool_calls: Vec<GivenCall>,
    client_id: Option<String>,
    client_secret: Option<String>,
}

#[derive(Debug, Deserialize)]
struct GivenCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Time limit. The suite kills a client after 30 seconds, and a server that never answers is one of
/// its scenarios.
const TIME: Duration = Duration::from_secs(25);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().next_back().context("the address is missing")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let revision = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let given = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let given: Given = serde_json::from_str(&given).unwrap_or_default();
    tokio::time::timeout(TIME, Box::pin(run(&url, &scenario, &revision, given))).await?
}

async fn run(url: &str, scenario: &str, revision: &str, given: Given) -> anyhow::Result<()> {
    let mut settings = ServerSettings::new("suite", endpoint(url, scenario, &given).await?);
    settings.sampling = Some(Arc::new(Canned));
    // The suite requests one of the two generations; by default, users have the third setting.
    settings.generation = match revision {
        _ if std::env::var_os("CONFORMANCE_GENERATION")
            .is_some_and(|generation| generation == "auto") =>
        {
            Generation::Auto
        }
        "2026-07-28" => Generation::Stateless,
        "" => Generation::Auto,
        _ => Generation::Handshake,
    };
    let server = Arc::new(RemoteServer::connect(settings).await?);
    let mut tools = Toolset::new();
    // The suite expects the listed schema to be reported back.
    let schema_of = |name: &str| {
        let definitions = server.definitions();
        let tool = definitions.iter().find(|tool| tool.name.as_str() == name);
        tool.map(|tool| tool.input.published().clone()).unwrap_or_default()
    };
    let calls: Vec<_> = if given.tool_calls.is_empty() {
        server.definitions().iter().map(|tool| (tool.name.to_string(), arguments(tool))).collect()
    } else {
        given.tool_calls.into_iter().map(|call| (call.name, call.arguments)).collect()
    };
    let listed = schema_of("json_schema_2020_12_tool");
    tools.add(server)?;
    let asker: Arc<dyn Asker> = Arc::new(Defaults);
    let mut failed = None;
    for (name, mut arguments) in calls {
        if name == "json_schema_echo" {
            arguments.insert("schema".to_owned(), listed.clone());
        }
        let context = CallContext { asker: Some(Arc::clone(&asker)), ..CallContext::new(&*name) };
        let arguments = Value::Object(arguments).to_string();
        let completion = tools.call(&name, Some(arguments.as_bytes()), &context).await?;
        if let Outcome::Error(error) = completion.outcome {
            failed = Some(error);
        }
    }
    failed.map_or(Ok(()), |error| bail!("a call failed: {error}"))
}

async fn endpoint(url: &str, scenario: &str, given: &Given) -> anyhow::Result<ServerEndpoint> {
    let endpoint = HttpEndpoint::new(url)?;
    if !scenario.starts_with("auth/") {
        return Ok(ServerEndpoint::Http(endpoint));
    }
    let registered = given.client_id.clone().map(|id| (id, given.client_secret.clone()));
    let client = match (scenario, registered) {
        ("auth/client-credentials-basic", Some((id, Some(secret)))) => {
            OAuthClient::Host { id, secret }
        }
        (_, registered) => OAuthClient::Person {
            browser: Arc::new(Headless),
            registered,
            metadata_url: Some("https://conformance-test.local/client-metadata.json".to_owned()),
        },
    };
    // The suite registers clients at the authorization server that its MCP server names.
    let issuer = match &given.client_id {
        Some(_) => Some(named_issuer(url).await?),
        None => None,
    };
    let oauth = OAuthSettings {
        client,
        issuer,
        scopes: Vec::new(),
        store: Arc::new(MemoryCredentials::default()),
        allows_private_addresses: false,
    };
    Ok(ServerEndpoint::Http(endpoint.with_oauth(oauth)?))
}

/// Fills every required argument with a value of the right type.
fn arguments(tool: &ToolDefinition) -> Map<String, Value> {
    let schema = tool.input.published();
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<_> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let wanted =
        properties.into_iter().flatten().filter(|(name, _)| required.contains(&name.as_str()));
    wanted.map(|(name, property)| (name.clone(), filler(property))).collect()
}

fn filler(schema: &Value) -> Value {
    match schema.get("type").and_then(Value::as_str) {
        Some("number" | "integer") => json!(1),
        Some("string") => json!("test"),
        Some("boolean") => json!(true),
        _ => Value::Null,
    }
}

/// Accepts forms with their default values.
struct Defaults;

#[async_trait]
impl Asker for Defaults {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        let answer = |question: &Question| {
            let schema = question.parameters.get("requestedSchema").unwrap_or(&Value::Null);
            let required = schema.get("required").and_then(Value::as_array);
            let required: Vec<_> =
                required.into_iter().flatten().filter_map(Value::as_str).collect();
            let properties = schema.get("properties").and_then(Value::as_object);
            let fields = properties.into_iter().flatten().filter_map(|(name, property)| {
                let filler = || required.contains(&name.as_str()).then(|| filler(property));
                property.get("default").cloned().or_else(filler).map(|value| (name.clone(), value))
            });
            json!({"action": "accept", "content": fields.collect::<Map<_, _>>()})
        };
        Ok(questions.iter().map(answer).collect())
    }
}

struct Canned;

#[async_trait]
impl SamplingHandler for Canned {
    async fn create_message(&self, _parameters: Map<String, Value>) -> Result<Value, String> {
        let content = json!({"type": "text", "text": "a message"});
        Ok(
            json!({"role": "assistant", "content": content, "model": "none", "stopReason": "endTurn"}),
        )
    }
}

/// User who agrees to everything: the authorization servers of the suite redirect at once.
struct Headless;

#[async_trait]
impl Browser for Headless {
    async fn redirect_uri(&self) -> Result<String, String> {
        Ok("http://localhost:3000/callback".to_owned())
    }

    async fn visit(&self, address: &str) -> Result<String, String> {
        location(address).await.map_err(|error| error.to_string())
    }
}

async fn location(address: &str) -> anyhow::Result<String> {
    let answer = get(&Url::parse(address)?).await?;
    let mut lines = answer.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(name, _)| name.eq_ignore_ascii_case("location"));
    Ok(found.context("no redirect")?.1.to_owned())
}

/// Returns the authorization server that the metadata of an MCP server names.
async fn named_issuer(server: &str) -> anyhow::Result<String> {
    let server = Url::parse(server)?;
    for path in [server.path(), ""] {
        let address = server.join(&format!("/.well-known/oauth-protected-resource{path}"))?;
        let answer = get(&address).await?;
        let metadata = answer.find('{').and_then(|begin| answer.get(begin..));
        let metadata: Value =
            serde_json::from_str(metadata.unwrap_or_default()).unwrap_or_default();
        if let Some(issuer) = metadata.pointer("/authorization_servers/0").and_then(Value::as_str) {
            return Ok(issuer.to_owned());
        }
    }
    bail!("the server names no authorization server")
}

async fn get(url: &Url) -> anyhow::Result<String> {
    let (host, port) =
        (url.host_str().context("no host")?, url.port_or_known_default().context("no port")?);
    let mut stream = TcpStream::connect((host, port)).await?;
    let target = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    let head = format!("GET {target} HTTP/1.0\r\nhost: {host}:{port}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(64 * 1024).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

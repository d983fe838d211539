//! What this crate adds to a small `tools/call`: a [`Server`] over a native tool, against the same tool as a plain handler of
//! the SDK. Both are processes; rounds alternate; what is printed is the median per call and the median of the ratios.
//!
//! `cargo run --release -p cofferdam-mcp --example overhead -- stdio` (or `http`, `stream`). With `serve-ours`, `serve-native`,
//! `serve-ours-http` and `serve-native-http` it is one of the servers, for profilers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use cofferdam_mcp::{Access, HttpOptions, Offer, Rate, Server, ServerOptions};
use cofferdam_tool::{
    CallContext, Completion, Declaration, Outcome, Output, PluginIdentity, PluginName, ToolCall,
    ToolDefinition, ToolSource, Toolset,
};
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, serve_server};
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 60;
/// Rounds that warm up and are not counted.
const FIRST: usize = 5;
/// Calls in one round.
const CALLS: usize = 320;

fn main() -> anyhow::Result<()> {
    let what = std::env::args().nth(1).unwrap_or_default();
    match what.as_str() {
        "serve-ours" => one_thread()?.block_on(serve_ours()),
        "serve-native" => one_thread()?.block_on(serve_native()),
        "serve-ours-http" => runtime()?.block_on(serve_ours_http()),
        "serve-native-http" => runtime()?.block_on(serve_native_http()),
        "stdio" => compare("stdio", Lines::start),
        "http" => compare("http", Connections::start),
        other => bail!("`stdio` or `http`, not `{other}`"),
    }
}

fn one_thread() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// As many threads as `WORKERS` says, for trying out.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    match std::env::var("WORKERS").ok().and_then(|workers| workers.parse().ok()) {
        Some(0) => one_thread(),
        Some(workers) => {
            Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?)
        }
        None => Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?),
    }
}

/// One side of the comparison.
trait Side {
    /// The time of one call, `at_once` of them being under way.
    fn calls(&mut self, at_once: usize) -> anyhow::Result<Duration>;
}

#[expect(clippy::print_stdout, reason = "the result of a measurement")]
fn compare<S: Side>(name: &str, start: impl Fn(&str) -> anyhow::Result<S>) -> anyhow::Result<()> {
    let (mut native, mut ours) = (start("native")?, start("ours")?);
    for at_once in [1, 16] {
        let (mut of_ours, mut of_native, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..FIRST + ROUNDS {
            let reference = native.calls(at_once)?.as_secs_f64() * 1e6;
            let measured = ours.calls(at_once)?.as_secs_f64() * 1e6;
            if round >= FIRST {
                of_native.push(reference);
                of_ours.push(measured);
                ratios.push(measured / reference);
            }
        }
        let [ours, native, ratio] = [of_ours, of_native, ratios].map(median);
        println!("{name}, {at_once:2} at once: ours {ours:6.1} us, native {native:6.1} us, ratio {ratio:.2}");
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A server on standard input and output.
struct Lines {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Lines {
    fn start(who: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(format!("serve-{who}")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Self { child, input, output })
    }
}

impl Side for Lines {
    fn calls(&mut self, at_once: usize) -> anyhow::Result<Duration> {
        let lines: Vec<_> = (0..CALLS).map(|id| format!("{}\n", request(id))).collect();
        let started = Instant::now();
        for batch in lines.chunks(at_once) {
            self.input.as_mut().context("a pipe")?.write_all(batch.concat().as_bytes())?;
            for _ in batch {
                let mut line = String::new();
                self.output.read_line(&mut line)?;
                ensure!(line.contains("to be or not to be"), "not an echo: {line}");
            }
        }
        Ok(started.elapsed() / u32::try_from(CALLS)?)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ended = self.child.wait();
    }
}

/// A server on HTTP and sixteen connections to it.
struct Connections {
    child: Child,
    open: Vec<BufReader<TcpStream>>,
}

impl Connections {
    fn start(who: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(format!("serve-{who}-http")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut port = String::new();
        BufReader::new(child.stdout.take().context("a pipe")?).read_line(&mut port)?;
        let address: SocketAddr = port.trim().parse()?;
        let connect = || {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            anyhow::Ok(BufReader::new(stream))
        };
        Ok(Self { child, open: (0..16).map(|_| connect()).collect::<Result<_, _>>()? })
    }
}

impl Side for Connections {
    fn calls(&mut self, at_once: usize) -> anyhow::Result<Duration> {
        let requests: Vec<_> = (0..CALLS)
            .map(|id| {
                let body = request(id).to_string();
                let length = body.len();
                format!(
                    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                     Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                     Mcp-Method: tools/call\r\nMcp-Name: echo\r\nContent-Length: {length}\r\n\r\n{body}"
                )
            })
            .collect();
        let started = Instant::now();
        for batch in requests.chunks(at_once) {
            for (request, connection) in batch.iter().zip(&mut self.open) {
                connection.get_mut().write_all(request.as_bytes())?;
            }
            for (_, connection) in batch.iter().zip(&mut self.open) {
                let body = response(connection)?;
                ensure!(body.contains("to be or not to be"), "not an echo: {body}");
            }
        }
        Ok(started.elapsed() / u32::try_from(CALLS)?)
    }
}

fn response(connection: &mut BufReader<TcpStream>) -> anyhow::Result<String> {
    let mut length = None;
    loop {
        let mut line = String::new();
        ensure!(connection.read_line(&mut line)? > 0, "the server has closed the connection");
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = Some(bytes.parse()?);
        }
    }
    let mut body = vec![0; length.context("an answer of a known length")?];
    connection.read_exact(&mut body)?;
    Ok(String::from_utf8(body)?)
}

impl Drop for Connections {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

fn request(id: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "echo",
        "arguments": {"message": "to be or not to be"},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

/// Ours: a source of one native tool, with a record like a plugin's.
struct EchoSource {
    definitions: Arc<[Arc<ToolDefinition>]>,
    identity: PluginIdentity,
}

#[async_trait]
impl ToolSource for EchoSource {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let tool = call.tool.name.clone();
        let outcome = Outcome::Ok(Output::Value(json!({"echoed": call.arguments.into_value()})));
        let mut completion = Completion::ended(outcome, context);
        completion.record.plugin = Some(self.identity.clone());
        completion.record.tool = Some(tool);
        completion
    }
}

fn ours() -> anyhow::Result<Server> {
    let schema = r#"{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}"#;
    let declared = Declaration::new("echo", "Gives back what it is given.", schema).compile()?;
    let digest = format!("sha256:{}", "5a".repeat(32)).into();
    let identity = PluginIdentity { name: PluginName::new("echo")?, digest };
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(EchoSource { definitions: Arc::from([Arc::new(declared)]), identity }))?;
    Ok(Server::new(Offer { toolset, ..Offer::default() }, ServerOptions::default())?)
}

async fn serve_ours() -> anyhow::Result<()> {
    Ok(ours()?.serve_stdio(CancellationToken::new()).await?)
}

#[expect(clippy::print_stdout, reason = "the address goes to whoever started the process")]
async fn serve_ours_http() -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let access = Access { is_open: true, ..Access::default() };
    let options =
        HttpOptions { access, rate: Rate { per_second: 1e9, burst: 1e9 }, ..HttpOptions::default() };
    Ok(ours()?.serve_http(listener, options, CancellationToken::new()).await?)
}

/// The reference: a tool that is a function, behind the same SDK.
#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = Tool::new("echo", "Gives back what it is given.", JsonObject::new());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let echoed = json!({"echoed": request.arguments});
        Ok(CallToolResult::structured(echoed).into())
    }
}

async fn serve_native() -> anyhow::Result<()> {
    serve_server(Echo, stdio_pipes()).await?.waiting().await?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the address goes to whoever started the process")]
async fn serve_native_http() -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Echo), sessions, config);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let service = service.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await?.to_bytes();
                    let request = hyper::Request::from_parts(parts, Full::new(body));
                    Ok::<_, hyper::Error>(service.handle(request).await)
                }
            });
            let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

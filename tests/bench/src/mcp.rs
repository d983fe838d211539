//! `mcp`: a small tool call over MCP on standard input and output, against a server that does nothing else.
//!
//! Ours is `cofferdam serve` with a plugin: each call has a sandbox of its own. The reference is this program with
//! `--native-echo`: the same SDK, the same protocol, and a tool that is a function. Both answer the same text, one call after
//! another and sixteen at a time. `mcp, first list` is the time from the start of the process to the answer to `tools/list`,
//! with twenty plugins in the cache against the native server.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use cofferdam_tests::{guest, root};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, serve_server};
use rmcp::transport::io::stdio_pipes;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::ratio::Ratio;

pub(crate) const NAME: &str = "mcp";
const ROUNDS: usize = 25;
/// Calls in one round.
const CALLS: usize = 160;
/// Plugins of the server whose start is measured.
const PLUGINS: usize = 20;

pub(crate) fn measure() -> anyhow::Result<Vec<Ratio>> {
    let (mut ours, mut native) = (Server::ours(1)?, Server::native()?);
    let mut ratios = vec![first_list()?];
    for (name, at_once) in [("mcp, stdio", 1), ("mcp, stdio, 16 at once", 16)] {
        let mut ratio = Ratio::new(name);
        // The first rounds warm what there is to warm and are not counted.
        for round in 0..ROUNDS + 3 {
            let reference = native.calls(at_once)?;
            let measured = ours.calls(at_once)?;
            if round >= 3 {
                ratio.add(measured, reference);
            }
        }
        ratios.push(ratio);
    }
    Ok(ratios)
}

fn first_list() -> anyhow::Result<Ratio> {
    let mut ratio = Ratio::new("mcp, first list with 20 plugins");
    for round in 0..=ROUNDS {
        let reference = start_to_list(Server::native)?;
        let ours = start_to_list(|| Server::ours(PLUGINS))?;
        // The first start fills the cache.
        if round > 0 {
            ratio.add(ours, reference);
        }
    }
    Ok(ratio)
}

fn start_to_list(start: impl Fn() -> anyhow::Result<Server>) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let mut server = start()?;
    let listed = server.ask(&request(1, "tools/list", json!({})))?;
    let taken = started.elapsed();
    ensure!(listed.pointer("/result/tools/0").is_some(), "no tools: {listed}");
    Ok(taken)
}

/// A server and the pipes to it. It ends when they are closed.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn ours(plugins: usize) -> anyhow::Result<Self> {
        let beside = std::env::current_exe()?.with_file_name("cofferdam");
        let mut command = Command::new(beside);
        command.arg("serve").arg("--no-watch").arg("--cache-dir").arg(cache());
        let names = ["served", "text", "csv", "markdown", "crash"];
        for (number, name) in names.into_iter().cycle().take(plugins).enumerate() {
            command.arg("--plugin").arg(format!("p{number}={}", guest(name).display()));
        }
        Self::start(command)
    }

    fn native() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--native-echo");
        Self::start(command)
    }

    fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Self { child, input, output })
    }

    fn send(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(self.input.as_mut().context("a pipe")?.write_all(line.as_bytes())?)
    }

    fn next(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the server has ended");
        Ok(line)
    }

    fn ask(&mut self, line: &str) -> anyhow::Result<Value> {
        self.send(line)?;
        Ok(serde_json::from_str(&self.next()?)?)
    }

    /// The time of one call, `at_once` of them being under way.
    fn calls(&mut self, at_once: usize) -> anyhow::Result<Duration> {
        let arguments = json!({"message": "to be or not to be"});
        let lines: Vec<_> = (0..CALLS)
            .map(|id| request(id, "tools/call", json!({"name": "echo", "arguments": arguments})))
            .collect();
        let started = Instant::now();
        for batch in lines.chunks(at_once) {
            self.send(&batch.concat())?;
            for _ in batch {
                let line = self.next()?;
                ensure!(line.contains("to be or not to be"), "not an echo: {line}");
            }
        }
        Ok(started.elapsed() / u32::try_from(CALLS)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ended = self.child.wait();
    }
}

fn cache() -> PathBuf {
    root().join("target/test-cache")
}

fn request(id: usize, method: &str, mut parameters: Value) -> String {
    if let Some(parameters) = parameters.as_object_mut() {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        parameters.insert("_meta".to_owned(), meta);
    }
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}))
}

/// The reference: a tool that is a function, behind the same SDK.
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

/// Serves the reference until its input ends.
pub(crate) async fn native_echo() -> anyhow::Result<()> {
    serve_server(Echo, stdio_pipes()).await?.waiting().await?;
    Ok(())
}

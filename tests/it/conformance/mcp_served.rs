//! Rows of `mcp.jsonl` about serving: the client's side of the wire, against a server in this
//! process.

use std::sync::Mutex;

use async_trait::async_trait;
use cofferdam_mcp::{Agent, AgentTool, Offer, Server, ServerOptions};
use cofferdam_tool::schema::Dialect;
use cofferdam_tool::{CallContext, Outcome, Output, Toolset};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use super::results::{self, fixtures};
use super::{Row, expect_same};

pub(super) fn run(row: &Row) -> Result<(), String> {
    let world = results::world();
    world.run(async {
        match row.op.as_str() {
            "serve" => serve(world, row).await,
            "agent_listing" => {
                let tools = ask(agent(row)?, "tools/list", json!({})).await?;
                compare_listing(&row.expect, &tools["tools"])
            }
            _ => {
                let called = json!({"name": row.text("name")?, "arguments": row.required("args")?});
                compare(&row.expect, &ask(agent(row)?, "tools/call", called).await?)
            }
        }
    })
}

/// The agent of the rows. A request for another name finds no agent.
const AGENT: &str = "My-Agent";

/// Chat client that answers with the row's replies.
struct Scripted(Mutex<Vec<String>>);

#[async_trait]
impl Agent for Scripted {
    async fn answer(&self, task: &str, _: &CallContext) -> Outcome {
        let mut answers = self.0.lock().unwrap();
        let answer = if answers.is_empty() { format!("got {task}") } else { answers.remove(0) };
        Outcome::Ok(Output::Value(Value::from(answer)))
    }
}

fn agent(row: &Row) -> Result<Toolset, String> {
    let answers = row.get("agent_answers").and_then(Value::as_array).into_iter().flatten();
    let answers = answers.filter_map(Value::as_str).map(str::to_owned).collect();
    // In rows about the listing the name is the agent's; in rows about a call it is the requested
    // one.
    let described = row.get("agent").unwrap_or(&row.value);
    let text = |name: &str| described.get(name).and_then(Value::as_str);
    let name = match row.op.as_str() {
        "agent_listing" => text("name").ok_or("the row names no agent")?,
        _ => AGENT,
    };
    let description = text("description").unwrap_or_default();
    let tool = AgentTool::new(name, description, Scripted(Mutex::new(answers)));
    let mut toolset = Toolset::new();
    let added = toolset.add(std::sync::Arc::new(tool.map_err(|error| error.to_string())?));
    added.map_err(|error| error.to_string())?;
    Ok(toolset)
}

async fn serve(world: &fixtures::World, row: &Row) -> Result<(), String> {
    let fixture = match (row.get("traps").or(row.get("fails_with")), row.value.get("returns")) {
        (Some(error), _) => {
            fixtures::does(world, situation(error.as_str().unwrap_or_default())?).await?
        }
        (None, Some(value)) => {
            let mut returning = row.value.clone();
            returning["value"] = value.clone();
            results::returning(world, &Row { value: returning, ..row.clone() }, None).await?
        }
        (None, None) => results::returning(world, row, None).await?,
    };
    let arguments = row.get("args").cloned().unwrap_or_else(|| fixture.arguments());
    let called = json!({"name": fixture.tool, "arguments": arguments});
    compare(&row.expect, &ask(fixture.toolset, "tools/call", called).await?)
}

/// Returns a situation that ends in an error of this type.
fn situation(error_type: &str) -> Result<&'static str, String> {
    Ok(match error_type {
        "Trap.Unreachable" => "executes unreachable",
        "Trap.StackOverflow" => "recurses without end",
        "Trap.MemoryOutOfBounds" => "loads past the end of memory",
        "Trap.TableOutOfBounds" => "calls past the end of a table",
        "Trap.IntegerDivideByZero" => "divides by zero",
        "Trap.IntegerOverflow" => "divides the smallest integer by -1",
        "Trap.BadConversion" => "truncates NaN to an integer",
        "Trap.IndirectCallMismatch" => "indirect call with another signature",
        "Trap.HeapMisaligned" => "misaligned atomic",
        "Trap.UncaughtException" => "throws and does not catch",
        "Timeout" => "sleeps longer than the wall-clock limit",
        "InvalidResult" => "returns text that is not JSON",
        "GuestExit" => "exits with code 3",
        other => return Err(format!("no situation for the type `{other}`")),
    })
}

/// Sends one request of a client of the current revision and returns its result.
async fn ask(toolset: Toolset, method: &str, mut parameters: Value) -> Result<Value, String> {
    // The rows contain published schemas.
    let options = ServerOptions { dialect: Dialect::Mcp, ..ServerOptions::default() };
    let server = Server::new(Offer { toolset, ..Offer::default() }, options);
    let server = server.map_err(|error| error.to_string())?;
    let (near, far) = tokio::io::duplex(1 << 20);
    let (far_input, far_output) = tokio::io::split(far);
    let serving = tokio::spawn(async move {
        server.serve_stream(far_input, far_output, CancellationToken::new()).await
    });
    parameters["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
    let (input, mut output) = tokio::io::split(near);
    output.write_all(format!("{request}\n").as_bytes()).await.map_err(|error| error.to_string())?;
    let mut line = String::new();
    BufReader::new(input).read_line(&mut line).await.map_err(|error| error.to_string())?;
    serving.abort();
    let response: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    response.get("result").cloned().ok_or_else(|| format!("an error: {response}"))
}

fn compare(expect: &Value, result: &Value) -> Result<(), String> {
    for (key, expected) in expect.as_object().ok_or("`expect` is not an object")? {
        let got = match key.as_str() {
            "text" => {
                let texts = result["content"].as_array().into_iter().flatten();
                let texts: Vec<_> = texts.filter_map(|content| content["text"].as_str()).collect();
                Value::from(texts.join("\n"))
            }
            "isError" => Value::from(result["isError"] == true),
            "structuredContent" => result["structuredContent"].clone(),
            other => return Err(format!("unknown key `{other}` in `expect`")),
        };
        expect_same(key, expected, &got)?;
    }
    if expect.get("structuredContent").is_none() && result.get("structuredContent").is_some() {
        return Err(format!("there is structured content: {}", result["structuredContent"]));
    }
    Ok(())
}

/// Compares a listing: one tool or a list of them, by the keys of the row.
fn compare_listing(expect: &Value, tools: &Value) -> Result<(), String> {
    let expected = match expect.get("tools").unwrap_or(expect) {
        Value::Array(tools) => tools.clone(),
        tool => vec![tool.clone()],
    };
    let tools = tools.as_array().ok_or("there is no list of tools")?;
    expect_same("number of tools", &json!(expected.len()), &json!(tools.len()))?;
    for (expected, tool) in expected.iter().zip(tools) {
        for (key, value) in expected.as_object().ok_or("a tool is not an object")? {
            let name = match key.as_str() {
                "schema" | "input_schema" | "parameters" => "inputSchema",
                other => other,
            };
            expect_same(key, value, tool.get(name).unwrap_or(&Value::Null))?;
        }
    }
    Ok(())
}

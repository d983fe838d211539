//! Rows of `rules.jsonl`: approval rules about the arguments of a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_agent::{
    AfterScript, Agent, ApprovalMode, ApprovalRule, Approvals, Message, MessageContent, Reply,
    Role, ScriptedClient,
};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, Toolset};
use serde_json::{Value, json};

use super::agent::block_on;
use super::{Row, expect_same};

/// Tool whose calls the rules are about.
const TOOL: &str = "write";
const SCHEMA: &str = r#"{"type":"object","properties":{
    "path":{"type":"string"},"text":{"type":"string"},"count":{"type":"number"},"force":{"type":"boolean"}}}"#;

pub(crate) fn run(row: &Row) -> Result<(), String> {
    let decision = match row.op.as_str() {
        "rules" => block_on(decided(row))?,
        other => return Err(format!("unknown operation `{other}`")),
    };
    expect_same("decision", &row.expect, &decision)
}

/// Returns `runs`, `asks` or `denied`, or the error about a rule.
async fn decided(row: &Row) -> Result<Value, String> {
    let has_run = Arc::new(AtomicBool::new(false));
    let rules: Vec<ApprovalRule> = serde_json::from_value(row.required("rules")?.clone())
        .map_err(|error| error.to_string())?;
    let mode = match row.get("mode").and_then(Value::as_str) {
        None | Some("always") => ApprovalMode::Always,
        Some("never") => ApprovalMode::Never,
        Some(other) => return Err(format!("unknown mode `{other}`")),
    };
    let arguments = row.required("arguments")?;
    let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    let reply = Reply {
        messages: vec![Message::new(
            Role::Assistant,
            vec![MessageContent::call("c", TOOL, arguments)],
        )],
        ..Reply::text("")
    };
    let client = ScriptedClient::new([reply]).then(AfterScript::Silence);
    let refused = |error: &dyn std::fmt::Display| Ok(json!({"error": error.to_string()}));
    let approvals = match Approvals::by_default(mode).rules(rules) {
        Ok(approvals) => approvals,
        Err(error) => return refused(&error),
    };
    let tools = toolset(&has_run, row.flag("read_only"))?;
    let agent = match Agent::builder(client).tools(tools).approvals(approvals).build() {
        Ok(agent) => agent,
        Err(error) => return refused(&error),
    };
    let response = agent.run("go").await.map_err(|error| error.to_string())?;
    let is_asked = response.approval_requests().next().is_some();
    Ok(match (is_asked, has_run.load(Ordering::Relaxed)) {
        (true, _) => "asks".into(),
        (false, true) => "runs".into(),
        (false, false) => "denied".into(),
    })
}

fn toolset(has_run: &Arc<AtomicBool>, is_read_only: bool) -> Result<Toolset, String> {
    let mut declaration = Declaration::new(TOOL, "Writes.", SCHEMA);
    declaration.annotations.read_only = is_read_only.then_some(true);
    let has_run = Arc::clone(has_run);
    let functions = Functions::new("notes").with(declaration, move |_arguments, _context| {
        has_run.store(true, Ordering::Relaxed);
        async { Ok("written".into()) }
    });
    let functions = functions.map_err(|error| error.to_string())?;
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).map_err(|error| error.to_string())?;
    Ok(toolset)
}

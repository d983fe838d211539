//! The server of this project with a function as its tool, to separate the cost of the server from
//! that of the sandbox.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_mcp::{Access, HttpOptions, Offer, Rate, Server, ServerOptions};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::record::PluginIdentity;
use cofferdam_tool::{
    CallContext, Completion, Outcome, Output, PluginName, ToolCall, ToolDefinition, ToolSource,
    Toolset,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::listen;

/// One tool, with a call record like a plugin's.
struct Echo {
    definitions: Arc<[Arc<ToolDefinition>]>,
    identity: PluginIdentity,
}

#[async_trait]
impl ToolSource for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let outcome = Outcome::Ok(Output::Value(json!({"echoed": call.arguments.into_value()})));
        let mut completion = Completion::ended(outcome, context);
        completion.record.plugin = Some(self.identity.clone());
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }
}

fn server() -> anyhow::Result<Server> {
    let schema =
        r#"{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}"#;
    let declared = Declaration::new("echo", "Gives back what it is given.", schema).compile()?;
    let digest = format!("sha256:{}", "5a".repeat(32)).into();
    let identity = PluginIdentity { name: PluginName::new("echo")?, digest };
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(Echo { definitions: Arc::from([Arc::new(declared)]), identity }))?;
    Ok(Server::new(Offer { toolset, ..Offer::default() }, ServerOptions::default())?)
}

/// Serves until the input ends.
pub(super) async fn stdio() -> anyhow::Result<()> {
    Ok(server()?.serve_stdio(CancellationToken::new()).await?)
}

/// Serves HTTP on a free local port until it is killed, without tokens or rate limits.
pub(super) async fn http() -> anyhow::Result<()> {
    let access = Access { is_open: true, ..Access::default() };
    let rate = Rate { per_second: 1e9, burst: 1e9 };
    let options = HttpOptions { access, rate, ..HttpOptions::default() };
    Ok(server()?.serve_http(listen().await?, options, CancellationToken::new()).await?)
}

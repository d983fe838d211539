//! SDK server over standard streams. This test program becomes it when a test starts it as a child
//! process.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequestParams,
    ErrorData, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt as _};
use rmcp::{ServerHandler, transport};
use serde_json::json;

use crate::client::{ServerEndpoint, ServerSettings, StdioCommand};

/// Environment variable that makes this process a server; its value selects which one.
const ASKED: &str = "COFFERDAM_TEST_SERVER";

/// Returns settings that start this program as a server.
pub(super) fn settings(kind: &str, more: &[(&str, &str)]) -> ServerSettings {
    let asked = [(ASKED, kind)];
    let env =
        asked.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    ServerSettings::new(
        "served",
        ServerEndpoint::Command(StdioCommand {
            program: std::env::current_exe().unwrap().to_str().unwrap().to_owned(),
            arguments: ["client::tests::served::becomes_a_server", "--exact", "--nocapture"]
                .map(str::to_owned)
                .to_vec(),
            env: env.collect(),
            directory: None,
        }),
    )
}

/// Does nothing unless a test starts it as a server. A server never returns; the harness prints a
/// line to standard output before, which clients must skip.
#[test]
fn becomes_a_server() {
    let Ok(kind) = std::env::var(ASKED) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if kind == "silent" {
        // Descendant that would survive if only the server process were killed.
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        std::fs::write(std::env::var("PID_FILE").unwrap(), child.id().to_string()).unwrap();
        child.wait().unwrap();
    }
    runtime.block_on(async {
        let running = Served.serve(transport::stdio()).await.unwrap();
        running.waiting().await.unwrap();
    });
    std::process::exit(0);
}

struct Served;

fn said(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

impl ServerHandler for Served {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build(),
        )
        .with_instructions("be kind")
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut names = vec!["echo", "env", "wait", "ask", "report", "exit", "grow"];
        if std::env::var("GROWN").is_ok_and(|file| std::fs::exists(file).unwrap()) {
            names.push("grown");
        }
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "integer", "default": 1}}});
        let tool = |name| Tool::new(name, "a tool", schema.as_object().unwrap().clone());
        let mut tools: Vec<_> = names.into_iter().map(tool).collect();
        if std::env::var_os("LABELLED").is_some() {
            let labelled = json!({"name": "labelled", "inputSchema": {"type": "object"},
                "_meta": {"ifc": {"confidentiality": "private", "accepts_untrusted": true, "other": 1}}});
            tools.push(serde_json::from_value(labelled).unwrap());
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*call.name {
            "echo" => said(
                json!({"arguments": call.arguments, "trace": context.meta.get("traceparent")})
                    .to_string(),
            ),
            "env" => {
                let mut names: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
                names.sort();
                said(names.join(" "))
            }
            "wait" => {
                let file = std::env::var("CANCELLED").unwrap();
                context.ct.cancelled().await;
                std::fs::write(file, "").unwrap();
                said("")
            }
            "ask" => {
                let question = json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}});
                let question: ElicitRequestParams = serde_json::from_value(question).unwrap();
                let answer = context.peer.create_elicitation(question).await;
                said(
                    answer
                        .map_or_else(|error| error.to_string(), |answer| json!(answer).to_string()),
                )
            }
            "report" => {
                let token = context.meta.get_progress_token().unwrap();
                let progress =
                    ProgressNotificationParam::new(token, 1.0).with_total(2.0).with_message("half");
                context.peer.notify_progress(progress).await.unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
                said("reported")
            }
            "grow" => {
                std::fs::write(std::env::var("GROWN").unwrap(), "").unwrap();
                context.peer.notify_tool_list_changed().await.unwrap();
                said("grown")
            }
            "labelled" => {
                let result = json!({"content": [{"type": "text", "text": "x"}],
                    "_meta": {"ifc": {"integrity": "trusted", "confidentiality": "user_identity", "principals": ["a"]}}});
                Ok(serde_json::from_value::<CallToolResult>(result).unwrap().into())
            }
            "exit" => std::process::exit(1),
            _ => Err(ErrorData::invalid_params("no such tool", None)),
        }
    }
}

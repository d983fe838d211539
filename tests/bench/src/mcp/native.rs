//! The reference: a tool that is a function, behind the same SDK, on standard input and output or
//! on HTTP.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, serve_server};
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

use super::listen;

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

/// Serves until the input ends.
pub(super) async fn stdio() -> anyhow::Result<()> {
    serve_server(Echo, stdio_pipes()).await?.waiting().await?;
    Ok(())
}

/// Serves HTTP/1.1 on a free local port until it is killed.
pub(super) async fn http() -> anyhow::Result<()> {
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = Arc::new(StreamableHttpService::new(|| Ok(Echo), sessions, config));
    let listener = listen().await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let service = Arc::clone(&service);
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new());
            http.serve_connection(TokioIo::new(stream), answer).await
        });
    }
}

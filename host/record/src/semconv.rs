//! Names of the OpenTelemetry conventions that spans use, all in one place.
//!
//! The conventions for generative AI are in `open-telemetry/semantic-conventions-genai`, which has
//! no tagged release: the names are those of November 2026. Names that start with `cofferdam.` are
//! ours.

/// Value of [`OPERATION_NAME`] for a call of a tool.
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
/// Value of [`OPERATION_NAME`] for a reply of a model.
pub(crate) const CHAT: &str = "chat";
/// Value of [`OPERATION_NAME`] for a run of an agent.
pub(crate) const INVOKE_AGENT: &str = "invoke_agent";
pub(crate) const PROVIDER_NAME: &str = "gen_ai.provider.name";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(crate) const OPERATION_NAME: &str = "gen_ai.operation.name";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
/// Value of [`TOOL_TYPE`]: the host runs the tool, and not the model's provider.
pub(crate) const FUNCTION: &str = "function";
pub(crate) const CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub(crate) const ERROR_TYPE: &str = "error.type";
/// Value of [`ERROR_TYPE`] for a failure that the tool itself reports.
pub(crate) const TOOL_ERROR: &str = "tool_error";
/// Value of [`ERROR_TYPE`] for an error without a type.
pub(crate) const OTHER: &str = "_OTHER";
pub(crate) const MCP_METHOD: &str = "mcp.method.name";
/// Value of [`MCP_METHOD`] for a call of a tool.
pub(crate) const TOOLS_CALL: &str = "tools/call";
pub(crate) const MCP_PROTOCOL: &str = "mcp.protocol.version";
pub(crate) const TRANSPORT: &str = "network.transport";
pub(crate) const SERVICE_NAME: &str = "service.name";
pub(crate) const SERVICE_VERSION: &str = "service.version";

pub(crate) const RECORD_ID: &str = "cofferdam.record.id";
pub(crate) const PLUGIN: &str = "cofferdam.plugin";
pub(crate) const PLUGIN_DIGEST: &str = "cofferdam.plugin.digest";
/// Configured name of the MCP server that has the tool.
pub(crate) const SERVER: &str = "cofferdam.mcp.server";
pub(crate) const PRINCIPAL: &str = "cofferdam.principal";
pub(crate) const OUTCOME: &str = "cofferdam.outcome";
pub(crate) const REFUSED: &str = "cofferdam.refused";
pub(crate) const FILES_CHANGED: &str = "cofferdam.files.changed";
pub(crate) const LABEL_INTEGRITY: &str = "cofferdam.label.integrity";
pub(crate) const LABEL_CONFIDENTIALITY: &str = "cofferdam.label.confidentiality";
pub(crate) const CPU_US: &str = "cofferdam.cpu_us";
pub(crate) const MEMORY_PEAK: &str = "cofferdam.memory.peak";

/// Returns the value of [`PROVIDER_NAME`] for a provider. The conventions do not tell the
/// interfaces of OpenAI apart.
pub(crate) fn provider(name: &str) -> &str {
    if name.starts_with("openai") { "openai" } else { name }
}

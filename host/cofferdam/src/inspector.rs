//! Inspector of the call log: pages for a browser on this machine.

mod grants;
mod replayer;
#[cfg(all(
    feature = "workflows",
    feature = "labels",
    any(feature = "anthropic", feature = "openai")
))]
mod workflows;

#[cfg(feature = "mcp")]
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use cofferdam_inspector::{
    CallCommand, CallReplayer, GrantAdvice, GrantSource, HostLoad, Inspector, InspectorError,
    InspectorOptions, OutlineEdge, PermissionGrant, PluginGrants, ReplayComponent, ReplayFuture,
    ReplayedCall, RunCheckpoint, RunProgress, RunQuestion, Workbench, WorkflowOutline,
    WorkflowRunSummary, WorkflowSource,
};

use cofferdam_tool::PluginName;

pub use self::grants::grants_of_config;
#[cfg(feature = "mcp")]
pub(crate) use self::grants::grants_of_plugin;
pub use self::replayer::EngineReplayer;
#[cfg(all(
    feature = "workflows",
    feature = "labels",
    any(feature = "anthropic", feature = "openai")
))]
pub use self::workflows::{report_event, run_question, workflows_of_files};
use crate::config::ConfigFile;
use crate::{Result, consent, flags, records};

/// Beginning of advice that is a command.
const COMMAND_LABEL: &str = "to grant it: ";
/// Revision of MCP that needs no session.
#[cfg(feature = "mcp")]
const MCP_REVISION: &str = "2026-07-28";

/// Returns the options of an inspector for a log: that of `directory`, of a configuration, or of
/// the user. Commands that grant what was refused name the configuration.
///
/// # Errors
/// Returns an error if the home directory is needed and not known.
pub fn options_ambient(
    config: Option<&ConfigFile>,
    directory: Option<PathBuf>,
) -> Result<InspectorOptions> {
    let directory = directory.map_or_else(|| records::directory_ambient(config), Ok)?;
    let is_default = records::default_directory().is_ok_and(|default| default == directory);
    let mut options = InspectorOptions::new(directory);
    if !is_default {
        let directory = options.directory.display().to_string();
        options.log_flags = format!(" --directory {}", flags::word(&directory));
    }
    let path = config.map(|config| config.path.clone());
    let of_calls = path.clone();
    options.call_command =
        Arc::new(move |tool, arguments| Some(call_command(tool, arguments, of_calls.as_deref())));
    options.grant_advice = Arc::new(move |plugin, capability| {
        // A line of a log may have any name.
        let plugin = PluginName::new(plugin).ok()?;
        grant_command(plugin.as_str(), capability, path.as_deref())
    });
    Ok(options)
}

/// Returns the command that grants a capability, or other advice if none does.
fn grant_command(plugin: &str, capability: &str, config: Option<&Path>) -> Option<String> {
    let advice = consent::how_to_grant(plugin, capability, config)?;
    Some(advice.strip_prefix(COMMAND_LABEL).map_or(advice.clone(), str::to_owned))
}

/// Returns the `cofferdam` command that calls a tool of a configuration, or of one that the user
/// has to name.
pub(crate) fn call_command(tool: &str, arguments: &str, config: Option<&Path>) -> String {
    let config = config.map_or("FILE".to_owned(), |path| flags::word(&path.display().to_string()));
    format!("cofferdam call {} {} --config {config}", flags::word(tool), flags::word(arguments))
}

/// Returns the `curl` commands that call tools of an MCP server over HTTP. Its token is a variable
/// of the shell.
#[cfg(feature = "mcp")]
#[must_use]
pub fn curl_command(address: SocketAddr) -> CallCommand {
    Arc::new(move |tool, arguments| {
        let name = serde_json::Value::from(tool);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{name},"arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"{MCP_REVISION}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let headers = [
            "Content-Type: application/json".to_owned(),
            "Accept: application/json, text/event-stream".to_owned(),
            format!("MCP-Protocol-Version: {MCP_REVISION}"),
            "Mcp-Method: tools/call".to_owned(),
            format!("Mcp-Name: {tool}"),
        ];
        let headers = headers.map(|header| format!("-H {} \\\n  ", flags::word(&header))).concat();
        Some(format!(
            "curl http://{address}{} \\\n  -H \"Authorization: Bearer $COFFERDAM_TOKEN\" \\\n  \
             {headers}--data-raw {}",
            cofferdam_mcp::PATH,
            flags::word(&body)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_the_command_that_grants() {
        let options = options_ambient(None, Some(PathBuf::from("log"))).unwrap();
        assert_eq!(options.directory, PathBuf::from("log"));
        let advice = |capability| (options.grant_advice)("weather", capability);
        assert_eq!(
            advice("http:GET https://example.com/").as_deref(),
            Some("--allow-http 'GET https://example.com/'")
        );
        assert_eq!(advice("wasi:sockets/tcp"), None);
        assert_eq!((options.grant_advice)("weather; id", "http:GET https://example.com/"), None);
    }

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let options = options_ambient(None, Some(PathBuf::from("log"))).unwrap();
        let arguments = r#"{"q":"it's $(id) `id`"}"#;
        assert_eq!(
            (options.call_command)("search", arguments).unwrap(),
            r#"cofferdam call search '{"q":"it'\''s $(id) `id`"}' --config FILE"#
        );
        assert_eq!(
            call_command("search", "{}", Some(Path::new("my tools.toml"))),
            "cofferdam call search '{}' --config 'my tools.toml'"
        );
    }

    #[cfg(feature = "mcp")]
    #[test]
    fn a_curl_command_has_the_required_headers_and_no_token() {
        let address = "127.0.0.1:8391".parse().unwrap();
        let command = curl_command(address)("search", r#"{"q":"it's"}"#).unwrap();
        assert!(command.starts_with("curl http://127.0.0.1:8391/mcp \\\n  -H \"Authorization: Bearer $COFFERDAM_TOKEN\" \\\n"), "{command}");
        assert!(command.contains("-H 'Mcp-Name: search' \\\n"), "{command}");
        let (_, body) = command.split_once("--data-raw '").unwrap();
        let body = body.trim_end_matches('\'').replace("'\\''", "'");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["params"]["arguments"]["q"], "it's");
    }
}

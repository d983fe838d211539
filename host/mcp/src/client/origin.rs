//! Identities of remote tools.

use cofferdam_tool::ToolDefinition;
use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::settings::ServerEndpoint;

/// Returns a digest of the server's address and everything that it states about a tool: `sha256:`
/// and 64 hexadecimal digits. The digest changes if the server moves, or changes a tool's
/// definition.
pub(crate) fn origin_digest(endpoint: &ServerEndpoint, tool: &ToolDefinition) -> String {
    let address = match endpoint {
        ServerEndpoint::Http(endpoint) => json!({"url": endpoint.url().as_str()}),
        // The environment is excluded because it may contain secrets.
        ServerEndpoint::Command(command) => json!({
            "program": command.program,
            "arguments": command.arguments,
            "directory": command.directory,
        }),
    };
    let identity = json!({
        "address": address,
        "name": tool.name.as_str(),
        "title": tool.title,
        "description": tool.description,
        "input": tool.input.published(),
        "output": tool.output.as_ref().map(|output| output.published()),
        "annotations": tool.annotations,
    });
    let digest = Sha256::digest(identity.to_string().as_bytes());
    format!("sha256:{}", HEXLOWER.encode(&digest))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cofferdam_tool::{Annotations, InputSchema, ToolName};

    use super::*;
    use crate::client::HttpEndpoint;

    #[test]
    fn another_address_or_definition_is_another_origin() {
        let endpoint = |url: &str| ServerEndpoint::Http(HttpEndpoint::new(url).unwrap());
        let tool = |description: &str| ToolDefinition {
            name: ToolName::new("t").unwrap(),
            title: None,
            description: description.to_owned(),
            input: Arc::new(InputSchema::forwarded(json!({"type": "object"}))),
            output: None,
            annotations: Annotations::default(),
            group: None,
        };
        let here = origin_digest(&endpoint("http://127.0.0.1/mcp"), &tool("reads"));
        assert_eq!(here, origin_digest(&endpoint("http://127.0.0.1/mcp"), &tool("reads")));
        assert_ne!(here, origin_digest(&endpoint("http://127.0.0.1/other"), &tool("reads")));
        assert_ne!(here, origin_digest(&endpoint("http://127.0.0.1/mcp"), &tool("deletes")));
    }
}

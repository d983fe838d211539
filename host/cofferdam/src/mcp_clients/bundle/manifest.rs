//! `manifest.json` of a bundle: what a client displays, asks for and starts.

use std::sync::Arc;

use cofferdam_tool::ToolDefinition;
use serde_json::{Map, Value, json};

use super::BundleOptions;
use super::contents::BundleContents;
use crate::Result;
use crate::error::Context as _;

/// Version of the manifest format.
const MANIFEST_VERSION: &str = "0.4";
/// Path of the program in a bundle.
pub(super) const PROGRAM: &str =
    if cfg!(windows) { "server/cofferdam.exe" } else { "server/cofferdam" };
/// Platform of this program, in the terms of the format.
pub(super) const PLATFORM: &str = if cfg!(target_os = "macos") {
    "darwin"
} else if cfg!(windows) {
    "win32"
} else {
    "linux"
};

/// Returns the manifest.
pub(super) fn manifest(
    options: &BundleOptions,
    contents: &BundleContents,
    tools: &[Arc<ToolDefinition>],
) -> Result<String> {
    let name = &options.name;
    let description = options.description.clone().unwrap_or_else(|| {
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        format!("Tools in sandboxes: {}", names.join(", "))
    });
    let mut arguments = contents.arguments.clone();
    arguments.extend_from_slice(&options.flags);
    let environment =
        contents.variables.iter().map(|name| (name.clone(), json!(placeholder(name))));
    let mut mcp_config = Map::from_iter([
        ("command".to_owned(), json!(format!("${{__dirname}}/{PROGRAM}"))),
        ("args".to_owned(), json!(arguments)),
    ]);
    if !contents.variables.is_empty() {
        mcp_config.insert("env".to_owned(), Value::Object(environment.collect()));
    }
    let tools: Vec<_> = tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description}))
        .collect();
    let mut manifest = json!({
        "manifest_version": MANIFEST_VERSION,
        "name": name,
        "version": options.version,
        "description": description,
        "author": { "name": options.author.as_deref().unwrap_or(name) },
        "server": { "type": "binary", "entry_point": PROGRAM, "mcp_config": mcp_config },
        "tools": tools,
        "compatibility": { "platforms": [PLATFORM] },
    });
    let asked = user_config(contents);
    if let (Some(manifest), false) = (manifest.as_object_mut(), asked.is_empty()) {
        manifest.insert("user_config".to_owned(), Value::Object(asked));
    }
    serde_json::to_string_pretty(&manifest)
        .map(|text| text + "\n")
        .context("the manifest cannot be written")
}

/// Returns the values that the client asks the user for.
fn user_config(contents: &BundleContents) -> Map<String, Value> {
    let variables = contents.variables.iter().map(|name| {
        let asked = json!({
            "type": "string", "title": name, "description": format!("The value of {name}, which a \
             tool needs"),
            "required": true, "sensitive": true,
        });
        (name.clone(), asked)
    });
    let directories = contents.directories.iter().map(|directory| {
        let asked = json!({
            "type": "directory", "title": directory.name,
            "description": format!("The directory that tools see as /{} ({})", directory.name, directory.may),
            "required": true,
        });
        (directory.name.clone(), asked)
    });
    variables.chain(directories).collect()
}

/// Returns the placeholder for a value that the client asks for.
pub(super) fn placeholder(name: &str) -> String {
    format!("${{user_config.{name}}}")
}

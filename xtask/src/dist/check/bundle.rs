//! Starts the server of a bundle as a client does: unpacks it, fills in the directory that the user
//! chooses, and calls a tool.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::clean::CleanHome;

/// Checks a bundle.
pub(super) fn check(bundle: &Path) -> anyhow::Result<()> {
    let home = CleanHome::new()?;
    let folder = home.folder().join("bundle");
    zip::ZipArchive::new(fs::File::open(bundle)?)?.extract(&folder)?;
    for file in ["LICENSE", "THIRD-PARTY-NOTICES.txt"] {
        if !folder.join(file).is_file() {
            bail!("the bundle does not contain {file}");
        }
    }
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json"))?)?;
    let workspace = home.folder().join("notes");
    fs::create_dir(&workspace)?;
    fs::write(workspace.join("plan.md"), "Write a tool.\n")?;
    let config = |key: &str| manifest.pointer(&format!("/server/mcp_config/{key}"));
    let fill = |value: &Value| {
        let text = value.as_str().context("a command and its arguments are strings")?;
        let text = text.replace("${__dirname}", &folder.display().to_string());
        anyhow::Ok(text.replace("${user_config.workspace}", &workspace.display().to_string()))
    };
    let arguments = config("args").and_then(Value::as_array);
    let arguments = arguments.context("the server has arguments")?;
    let arguments: Vec<_> = arguments.iter().map(fill).collect::<anyhow::Result<_>>()?;
    let mut server = Command::new(fill(config("command").context("the server has a command")?)?);
    server.args(arguments).env_clear().env("HOME", home.folder());
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut requests = server.stdin.take().context("the server has an input")?;
    for request in requests_to_send() {
        writeln!(requests, "{request}")?;
    }
    // The server answers what it has read before it ends with its input.
    drop(requests);
    let output = server.wait_with_output()?;
    let answers = String::from_utf8(output.stdout)?;
    if !output.status.success() || !answers.contains("Write a tool.") {
        bail!("the server ended with {} and answered:\n{answers}", output.status);
    }
    Ok(())
}

/// Returns the messages of a client that calls one tool.
fn requests_to_send() -> [Value; 3] {
    let version = "2025-06-18";
    let client = json!({"name": "cofferdam-dist", "version": "1"});
    let call = json!({"name": "file_access_read_file", "arguments": {"file_name": "plan.md"}});
    [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": client,
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ]
}

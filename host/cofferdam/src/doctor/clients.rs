//! Files of MCP clients: an entry in them makes the client start `cofferdam serve`.

use std::path::Path;

use super::{CheckArea, MachineCheck};
use crate::mcp_clients::McpClient;

/// File name of the command line, without extension.
const PROGRAM: &str = "cofferdam";

/// Checks the file of each client. The files of some clients are in the working directory.
pub(super) fn check(directory: &Path) -> [MachineCheck; 6] {
    McpClient::ALL.map(|client| check_client(client, directory))
}

fn check_client(client: McpClient, directory: &Path) -> MachineCheck {
    let (area, name) = (CheckArea::Clients, client.name());
    let path = match client.default_file() {
        Ok(path) => directory.join(path),
        Err(error) => return MachineCheck::note(area, name, format!("{error:#}"), advice(client)),
    };
    let shown = path.display();
    if !path.exists() {
        return MachineCheck::note(area, name, format!("there is no {shown}"), advice(client));
    }
    match client.runs_ambient(&path, PROGRAM) {
        Ok(true) => MachineCheck::ok(area, name, format!("{shown} starts {PROGRAM}")),
        Ok(false) => {
            MachineCheck::note(area, name, format!("{shown} does not start it"), advice(client))
        }
        Err(error) => {
            MachineCheck::note(area, name, format!("{error:#}"), "correct or remove the file")
        }
    }
}

/// Returns the command that adds an entry.
fn advice(client: McpClient) -> String {
    let command = format!("cofferdam mcp config --host {} --config FILE", client.word());
    match client {
        McpClient::Goose => format!("`{command}` prints an entry to paste"),
        _ => format!("`{command} --write` adds it"),
    }
}

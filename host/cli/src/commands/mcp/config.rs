//! `cofferdam mcp config`: prints the entry for an MCP client's file, or writes it there.

use anyhow::Context;
use cofferdam::mcp_clients::{
    FileChange, McpClient, ServeCommand, ServerEntry, environment_variables,
};

use crate::args::{Global, McpConfigArgs, McpHost};
use crate::exit::Exit;
use crate::{host, print};

pub(super) fn run(global: &Global, args: McpConfigArgs) -> anyhow::Result<Exit> {
    let McpConfigArgs { host, name, write, plugins, more } = args;
    let client = client(host);
    let command =
        ServeCommand::new(&host::selection(&plugins)?, &host::engine_options(global).cache)?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let entry = ServerEntry::new(&name, &program, command.with_flags(&more))?;
    match write {
        None => print::result(client.new_file(&entry)?.trim_end())?,
        Some(path) => {
            let path = path.map_or_else(|| client.default_file(), Ok)?;
            let change = client.write(&path, &entry)?;
            let path = path.display();
            print::note(&match &change {
                FileChange::Unchanged => {
                    format!("{path} has `{name}` like this already; nothing was changed")
                }
                FileChange::Created => format!("{path} was made, with `{name}` in it"),
                FileChange::Changed { backup } => {
                    let backup = backup.display();
                    format!("{path} has `{name}` now; as it was before it is kept in {backup}")
                }
            });
            if change != FileChange::Unchanged {
                print::note(client.next_step());
            }
        }
    }
    if let Some(config) = &plugins.config {
        let names: Vec<_> = environment_variables(config)?.into_iter().collect();
        if !names.is_empty() {
            let names = names.join(", ");
            print::note(&format!(
                "the configuration reads from the environment, which the host has to pass on: \
                 {names}"
            ));
        }
    }
    Ok(Exit::Ok)
}

fn client(host: McpHost) -> McpClient {
    match host {
        McpHost::Claude => McpClient::Claude,
        McpHost::ClaudeDesktop => McpClient::ClaudeDesktop,
        McpHost::VsCode => McpClient::VsCode,
        McpHost::Cursor => McpClient::Cursor,
        McpHost::Codex => McpClient::Codex,
        McpHost::Goose => McpClient::Goose,
    }
}

//! `cofferdam mcp config`: prints the entry for an MCP client's file, or writes it there.

use anyhow::Context;
use cofferdam::mcp_clients::{
    FileChange, McpClient, ServeCommand, ServerEntry, environment_variables,
};

use crate::args::{Global, McpConfigArgs, McpHost};
use crate::exit::Exit;
use crate::{host, print};

use super::serve_flags;

pub(super) fn run(global: &Global, args: McpConfigArgs) -> anyhow::Result<Exit> {
    let McpConfigArgs { host, name, write, plugins, more } = args;
    let client = client(host);
    let command =
        ServeCommand::new(&host::selection(&plugins)?, &host::engine_options(global).cache)?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let entry = ServerEntry::new(
        &name,
        &program,
        command.with_flags(&serve_flags(global, plugins.config.as_deref(), more)?),
    )?;
    match write {
        None => print::result(client.new_file(&entry)?.trim_end())?,
        Some(path) => {
            let path = path.map_or_else(|| client.default_file(), Ok)?;
            let change = client.write(&path, &entry)?;
            let path = path.display();
            print::note(&match &change {
                FileChange::Unchanged => {
                    format!("{path} already contains this entry for `{name}`; nothing was changed")
                }
                FileChange::Created => format!("created {path} with an entry for `{name}`"),
                FileChange::Changed { backup } => {
                    let backup = backup.display();
                    format!(
                        "wrote an entry for `{name}` to {path}; a copy of the old file is {backup}"
                    )
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
                "the configuration reads these environment variables, which the client must \
                 pass on: {names}"
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

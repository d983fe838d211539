//! The hosts: in which file each looks for servers, and in which form.

use std::path::{Path, PathBuf};

use anyhow::Context;
use etcetera::BaseStrategy;
use serde_json::{Map, Value, json};

use super::{json_text, toml_text};
use crate::args::McpHost;
use crate::exit::UsageError;

/// A server as a host is told about it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) arguments: Vec<String>,
}

/// How long goose waits for an answer, in seconds: its own default.
const GOOSE_TIMEOUT_S: u64 = 300;

impl Entry {
    /// Refuses to take the place of another server, which only has the same name. `there` is its command.
    pub(super) fn check_is_ours(&self, there: Option<&str>) -> anyhow::Result<()> {
        let file_name = |path: &str| Path::new(path).file_name().map(|name| name.to_owned());
        if there.is_some_and(|there| file_name(there) == file_name(&self.command)) {
            return Ok(());
        }
        let other = there.unwrap_or("no program of this machine");
        Err(UsageError(format!(
            "`{}` is another server there ({other}); choose another name with --name",
            self.name
        ))
        .into())
    }

    /// Command and arguments, as most hosts want them.
    fn keys(&self) -> Map<String, Value> {
        let keys = [("command", json!(self.command)), ("args", json!(self.arguments))];
        keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn keys_with_type(&self) -> Map<String, Value> {
        let mut keys = Map::from_iter([("type".to_owned(), json!("stdio"))]);
        keys.extend(self.keys());
        keys
    }

    /// The extension as goose's YAML has it. JSON is YAML, so values are written as JSON.
    fn goose_yaml(&self) -> String {
        let keys = [
            ("enabled", json!(true)),
            ("type", json!("stdio")),
            ("name", json!(self.name)),
            ("description", json!("Tools in sandboxes")),
            ("cmd", json!(self.command)),
            ("args", json!(self.arguments)),
            ("timeout", json!(GOOSE_TIMEOUT_S)),
        ];
        let lines = keys.map(|(key, value)| format!("    {key}: {value}\n"));
        format!("extensions:\n  {}:\n{}", self.name, lines.concat())
    }
}

impl McpHost {
    /// Returns the text of a file of the host that has no other server.
    pub(super) fn new_file(self, entry: &Entry) -> anyhow::Result<String> {
        match self {
            Self::Goose => Ok(entry.goose_yaml()),
            _ => self.with_entry("", entry),
        }
    }

    /// Returns the text of the host's file with the server in it. `text` is the current one, empty if there is no file.
    pub(super) fn with_entry(self, text: &str, entry: &Entry) -> anyhow::Result<String> {
        match self {
            Self::Claude | Self::ClaudeDesktop | Self::Cursor => {
                json_text::with_entry(text, "mcpServers", entry, entry.keys())
            }
            Self::VsCode => json_text::with_entry(text, "servers", entry, entry.keys_with_type()),
            Self::Codex => toml_text::with_entry(text, entry),
            Self::Goose => Err(UsageError(
                "YAML files are not edited; run the same command without --write, and paste what it prints under `extensions:`"
                    .to_owned(),
            )
            .into()),
        }
    }

    /// Where the host looks: for the person, or for Claude Code and VS Code in the folder one is in.
    pub(super) fn file(self) -> anyhow::Result<PathBuf> {
        let home = || etcetera::home_dir().context("the home directory is not known; pass --write PATH");
        let settings = || -> anyhow::Result<PathBuf> {
            if cfg!(target_os = "macos") {
                return Ok(home()?.join("Library/Application Support"));
            }
            let base = etcetera::choose_base_strategy();
            Ok(base.context("the home directory is not known; pass --write PATH")?.config_dir())
        };
        Ok(match self {
            Self::Claude => PathBuf::from(".mcp.json"),
            Self::ClaudeDesktop => settings()?.join("Claude/claude_desktop_config.json"),
            Self::VsCode => PathBuf::from(".vscode/mcp.json"),
            Self::Cursor => home()?.join(".cursor/mcp.json"),
            Self::Codex => match std::env::var_os("CODEX_HOME").filter(|folder| !folder.is_empty()) {
                Some(folder) => PathBuf::from(folder).join("config.toml"),
                None => home()?.join(".codex/config.toml"),
            },
            Self::Goose if cfg!(windows) => settings()?.join("Block/goose/config/config.yaml"),
            Self::Goose => home()?.join(".config/goose/config.yaml"),
        })
    }

    /// What makes the host read its file again.
    pub(super) fn next_step(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code asks for consent when it is started in this folder",
            Self::ClaudeDesktop => "restart Claude Desktop to use it",
            Self::VsCode => "VS Code asks for consent before it starts it",
            Self::Cursor => "Cursor reads it when it is started, or at once under Settings, MCP",
            Self::Codex => "Codex reads it when it is started",
            Self::Goose => "goose reads it with the next session",
        }
    }
}

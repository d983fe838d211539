//! MCP clients: the path and format of the file in which each finds its servers.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde_json::{Map, Value, json};

use super::serve_command::absolute;
use super::{ServeCommand, json_file, toml_file};
use crate::config::edit::replace_file;
use crate::error::Context as _;
use crate::{Error, Result};

/// Maximum bytes of a client's file that is edited.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Suffix of the copy of a file from before an edit.
const BACKUP: &str = ".before-cofferdam";
/// Key of the servers in the JSON files of most clients.
const SERVERS_KEY: &str = "mcpServers";
/// Key of the servers in the file of Visual Studio Code.
const VS_CODE_KEY: &str = "servers";
/// Timeout of goose in seconds, which is its default.
const GOOSE_TIMEOUT_S: u64 = 300;

/// A program that starts MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpClient {
    /// Claude Code.
    Claude,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Visual Studio Code.
    VsCode,
    /// Cursor.
    Cursor,
    /// Codex.
    Codex,
    /// goose.
    Goose,
}

/// A server in the file of a client.
#[derive(Debug, Clone)]
pub struct ServerEntry {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) arguments: Vec<String>,
}

impl ServerEntry {
    /// Returns the entry of a server that `program` runs.
    ///
    /// # Errors
    /// Returns an error if the path of the program is not UTF-8.
    pub fn new(name: &str, program: &Path, command: ServeCommand) -> Result<Self> {
        let arguments = command.into_arguments();
        Ok(Self { name: name.to_owned(), command: absolute(program)?, arguments })
    }

    /// Returns an error if the existing entry with this name runs another program. `found` is the
    /// command of that entry.
    pub(super) fn check_same_program(&self, found: Option<&str>) -> Result<()> {
        let file_name = |path: &str| Path::new(path).file_name().map(ToOwned::to_owned);
        if found.is_some_and(|found| file_name(found) == file_name(&self.command)) {
            return Ok(());
        }
        let other = found.unwrap_or("no program of this machine");
        Err(Error::invalid(format!(
            "`{}` is another server there ({other}); choose another name with --name",
            self.name
        )))
    }

    /// Returns command and arguments in the format of most clients.
    fn keys(&self) -> Map<String, Value> {
        let keys = [("command", json!(self.command)), ("args", json!(self.arguments))];
        keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn keys_with_type(&self) -> Map<String, Value> {
        let mut keys = Map::from_iter([("type".to_owned(), json!("stdio"))]);
        keys.extend(self.keys());
        keys
    }

    /// Returns the extension in goose's YAML. JSON is valid YAML, so values are written as JSON.
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

/// Result of [`McpClient::write`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// The file already had the entry.
    Unchanged,
    /// The file was created.
    Created,
    /// The file was changed.
    Changed {
        /// Copy of the previous file.
        backup: PathBuf,
    },
}

impl McpClient {
    /// All clients, in the order of help texts.
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::ClaudeDesktop, Self::VsCode, Self::Cursor, Self::Codex, Self::Goose];

    /// Returns the word for the client in `cofferdam mcp config --host`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::ClaudeDesktop => "claude-desktop",
            Self::VsCode => "vscode",
            Self::Cursor => "cursor",
            Self::Codex => "codex",
            Self::Goose => "goose",
        }
    }

    /// Returns the name of the client.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::VsCode => "Visual Studio Code",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::Goose => "goose",
        }
    }

    /// Returns whether the client's file names a server that runs the program with this file name,
    /// without extension. A server that another program starts, such as `npx`, is not recognized.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not what the client reads.
    pub(crate) fn runs_ambient(self, path: &Path, program: &str) -> Result<bool> {
        let text = cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX);
        let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
        let commands = self.commands(&text);
        let commands = commands.map_err(|error| error.context(path.display().to_string()))?;
        Ok(commands
            .iter()
            .any(|command| Path::new(command).file_stem().is_some_and(|name| name == program)))
    }

    /// Returns the programs that the servers in `text`, the content of the client's file, run.
    fn commands(self, text: &str) -> Result<Vec<String>> {
        match self {
            Self::Claude | Self::ClaudeDesktop | Self::Cursor => {
                json_file::commands(text, SERVERS_KEY)
            }
            Self::VsCode => json_file::commands(text, VS_CODE_KEY),
            Self::Codex => toml_file::commands(text),
            Self::Goose => Ok(goose_commands(text)),
        }
    }

    /// Returns the content of a file with only this server.
    ///
    /// # Errors
    /// Returns an error if the editor of the file's format fails, which does not happen for an
    /// entry of [`ServerEntry::new`].
    pub fn new_file(self, entry: &ServerEntry) -> Result<String> {
        match self {
            Self::Goose => Ok(entry.goose_yaml()),
            _ => self.edit("", entry),
        }
    }

    /// Adds or updates the entry in a file, in one step. Keeps a backup of a file that it changes,
    /// and follows a symbolic link to the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, edited or written, has another server with the
    /// same name, or is YAML, which is not edited.
    pub fn write(self, path: &Path, entry: &ServerEntry) -> Result<FileChange> {
        let shown = path.display();
        let before = match cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = self.edit("", entry)?;
                if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty())
                {
                    std::fs::create_dir_all(folder)
                        .with_context(|| format!("{} cannot be created", folder.display()))?;
                }
                replace_file(path, text.as_bytes())
                    .with_context(|| format!("{shown} cannot be written"))?;
                return Ok(FileChange::Created);
            }
            read => {
                read.map_err(|error| Error::invalid(format!("{shown} cannot be read: {error}")))?
            }
        };
        let real = path.canonicalize().with_context(|| format!("{shown} cannot be resolved"))?;
        let after = self
            .edit(&before, entry)
            .map_err(|error| error.context(format!("{shown} is left as it is")))?;
        if after == before {
            return Ok(FileChange::Unchanged);
        }
        let mut backup = real.clone().into_os_string();
        backup.push(BACKUP);
        let backup = PathBuf::from(backup);
        std::fs::copy(&real, &backup)
            .with_context(|| format!("{} cannot be written", backup.display()))?;
        replace_file(&real, after.as_bytes())
            .with_context(|| format!("{shown} cannot be written"))?;
        Ok(FileChange::Changed { backup })
    }

    /// Returns `text`, the content of the client's file, with the entry added.
    fn edit(self, text: &str, entry: &ServerEntry) -> Result<String> {
        match self {
            Self::Claude | Self::ClaudeDesktop | Self::Cursor => {
                json_file::with_entry(text, SERVERS_KEY, entry, entry.keys())
            }
            Self::VsCode => json_file::with_entry(text, VS_CODE_KEY, entry, entry.keys_with_type()),
            Self::Codex => toml_file::with_entry(text, entry),
            Self::Goose => Err(Error::invalid(
                "YAML files are not edited; run the same command without --write, and paste the \
                 output under `extensions:`",
            )),
        }
    }

    /// Returns the default path of the client's file. It belongs to the user, or for Claude Code
    /// and VS Code to the working directory.
    ///
    /// # Errors
    /// Returns an error if the home directory is unknown.
    pub fn default_file(self) -> Result<PathBuf> {
        const NO_HOME: &str = "the home directory is unknown; pass --write PATH";
        let home = || etcetera::home_dir().context(NO_HOME);
        let settings = || -> Result<PathBuf> {
            if cfg!(target_os = "macos") {
                return Ok(home()?.join("Library/Application Support"));
            }
            Ok(etcetera::choose_base_strategy().context(NO_HOME)?.config_dir())
        };
        Ok(match self {
            Self::Claude => PathBuf::from(".mcp.json"),
            Self::ClaudeDesktop => settings()?.join("Claude/claude_desktop_config.json"),
            Self::VsCode => PathBuf::from(".vscode/mcp.json"),
            Self::Cursor => home()?.join(".cursor/mcp.json"),
            Self::Codex => match std::env::var_os("CODEX_HOME").filter(|folder| !folder.is_empty())
            {
                Some(folder) => PathBuf::from(folder).join("config.toml"),
                None => home()?.join(".codex/config.toml"),
            },
            Self::Goose if cfg!(windows) => settings()?.join("Block/goose/config/config.yaml"),
            Self::Goose => home()?.join(".config/goose/config.yaml"),
        })
    }

    /// Returns a note on when the client reads its file again.
    #[must_use]
    pub fn next_step(self) -> &'static str {
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

/// Returns the values of `cmd` in the YAML of goose, which is read by lines: a value that covers
/// several lines is not recognized.
fn goose_commands(text: &str) -> Vec<String> {
    let values = text.lines().filter_map(|line| line.trim_start().strip_prefix("cmd:"));
    values.map(|value| value.trim().trim_matches(['"', '\'']).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_new_entry_are_read_back() {
        let entry = ServerEntry {
            name: "tools".to_owned(),
            command: "/bin/cofferdam".to_owned(),
            arguments: vec!["serve".to_owned()],
        };
        for client in McpClient::ALL {
            let text = client.new_file(&entry).unwrap();
            assert_eq!(client.commands(&text).unwrap(), ["/bin/cofferdam"], "{client:?}");
            assert_eq!(client.commands("").unwrap(), Vec::<String>::new(), "{client:?}");
        }
    }

    #[test]
    fn an_entry_is_recognized_by_the_name_of_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        for (command, expected) in [
            ("/opt/cofferdam", true),
            ("cofferdam", true),
            ("npx", false),
            ("/opt/cofferdam/other", false),
        ] {
            let text =
                format!(r#"{{"mcpServers":{{"a":{{"command":"{command}"}},"b":{{"url":""}}}}}}"#);
            std::fs::write(&path, text).unwrap();
            assert_eq!(McpClient::Cursor.runs_ambient(&path, "cofferdam").unwrap(), expected);
        }
        std::fs::write(&path, "{").unwrap();
        let error = McpClient::Cursor.runs_ambient(&path, "cofferdam").unwrap_err();
        assert!(format!("{error:#}").contains("it is not JSON with comments"), "{error:#}");
    }
}

//! Flags of `cofferdam mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::PluginArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Print the entry that makes an MCP client start these tools, or write it to the client's file
    #[command(after_help = "\
Flags after `--` are passed to `cofferdam serve`.

Examples:
  cofferdam mcp config --host claude --config cofferdam.toml
  cofferdam mcp config --host vscode --plugin text.wasm --mount data=./reports:ro --write
  cofferdam mcp config --host codex --name reports --plugin csv.wasm --write ~/.codex/config.toml")]
    Config(McpConfigArgs),
    /// Pack this program and plugins into a bundle (.mcpb) that clients install with a click
    #[command(after_help = "\
Bundles hold no secrets. The client asks the user who installs the bundle for each secret that the
configuration reads from an environment variable, and for each directory of --mount and --files.

Examples:
  cofferdam mcp bundle text.mcpb --plugin text.wasm
  cofferdam mcp bundle reports.mcpb --plugin csv.wasm --mount data=./reports:ro --description 'Tables of our reports'
  cofferdam mcp bundle weather.mcpb --config cofferdam.toml --release 1.2.0")]
    Bundle(McpBundleArgs),
    /// Create a bearer token for a client of `cofferdam serve --http`
    #[command(after_help = "\
The token goes to stdout and is not stored; the entry for the configuration goes to stderr.

Examples:
  cofferdam mcp token ci
  cofferdam mcp token ci > ci.token")]
    Token(McpTokenArgs),
    /// Log in to a server of the configuration and store its tokens
    #[command(after_help = "\
Example:
  cofferdam mcp login tracker --config cofferdam.toml")]
    Login(McpServerArgs),
    /// Delete the stored tokens of a server
    #[command(after_help = "\
Example:
  cofferdam mcp logout tracker --config cofferdam.toml")]
    Logout(McpServerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct McpTokenArgs {
    /// Name for the token
    #[arg(value_name = "NAME", value_parser = server_name)]
    pub(crate) name: String,
}

/// A program that starts MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpHost {
    /// Claude Code
    Claude,
    /// Claude Desktop
    ClaudeDesktop,
    /// Visual Studio Code
    #[value(name = "vscode")]
    VsCode,
    /// Cursor
    Cursor,
    /// Codex
    Codex,
    /// goose
    Goose,
}

#[derive(Debug, Args)]
pub(crate) struct McpConfigArgs {
    /// Client that starts the tools
    #[arg(long, value_name = "HOST")]
    pub(crate) host: McpHost,
    /// Name of the server in the client
    #[arg(long, value_name = "NAME", default_value = "cofferdam", value_parser = server_name)]
    pub(crate) name: String,
    /// Write the entry to the client's file, or to PATH, and keep everything else in it (not for
    /// goose)
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    pub(crate) write: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Further flags for `cofferdam serve`
    #[arg(last = true, value_name = "FLAGS")]
    pub(crate) more: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpBundleArgs {
    /// Bundle to write
    #[arg(value_name = "OUT.mcpb")]
    pub(crate) output: PathBuf,
    /// Name of the bundle [default: that of the file]
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub(crate) name: Option<String>,
    /// Version of the bundle
    #[arg(long, value_name = "VERSION", default_value = "0.1.0")]
    pub(crate) release: String,
    /// Purpose, in a sentence
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Author [default: the bundle's name]
    #[arg(long, value_name = "TEXT")]
    pub(crate) author: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Further flags for `cofferdam serve`
    #[arg(last = true, value_name = "FLAGS")]
    pub(crate) more: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpServerArgs {
    /// Name of the server in the configuration
    pub(crate) server: String,
    /// Configuration file
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: PathBuf,
}

/// Maximum characters of a server's name. Clients put it before tool names, with at most 64 in all.
const NAME_CHARS_MAX: usize = 24;

/// Parses a name that every client accepts.
fn server_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(fits);
    if !is_name || text.len() > NAME_CHARS_MAX {
        return Err(format!(
            "expected 1 to {NAME_CHARS_MAX} letters, digits, `_` or `-`, starting with a letter or digit"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_name_that_every_host_takes() {
        for good in ["cofferdam", "a", "7-zip_2"] {
            assert_eq!(server_name(good).as_deref(), Ok(good));
        }
        for bad in ["", "a.b", "-a", "a b", "ä", "abcdefghijklmnopqrstuvwxy"] {
            assert!(server_name(bad).is_err(), "{bad}");
        }
    }
}

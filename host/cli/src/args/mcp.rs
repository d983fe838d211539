//! What can be typed after `cofferdam mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::PluginArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Print what makes an MCP host start these tools, or put it into the host's file
    #[command(after_help = "\
Flags after `--` go to `cofferdam serve` as they are.

Examples:
  cofferdam mcp config --host claude --config cofferdam.toml
  cofferdam mcp config --host vscode --plugin text.wasm --mount data=./reports:ro --write
  cofferdam mcp config --host codex --name reports --plugin csv.wasm --write ~/.codex/config.toml")]
    Config(McpConfigArgs),
    /// Make a bundle (.mcpb) of this program and plugins, which hosts install with a click
    #[command(after_help = "\
Secrets are never put in. The host asks the person who installs the bundle for every secret that \
the configuration takes from an
environment variable, and for every directory of --mount and --files.

Examples:
  cofferdam mcp bundle text.mcpb --plugin text.wasm
  cofferdam mcp bundle reports.mcpb --plugin csv.wasm --mount data=./reports:ro --description 'Tables of our reports'
  cofferdam mcp bundle weather.mcpb --config cofferdam.toml --release 1.2.0")]
    Bundle(McpBundleArgs),
    /// Make a bearer token for one caller of `cofferdam serve --http`
    #[command(after_help = "\
The token goes to standard output and is kept nowhere; what belongs into the configuration goes \
to standard error.

Examples:
  cofferdam mcp token ci
  cofferdam mcp token ci > ci.token")]
    Token(McpTokenArgs),
    /// Log in to a server of the configuration; the tokens are kept for later
    #[command(after_help = "\
Example:
  cofferdam mcp login tracker --config cofferdam.toml")]
    Login(McpServerArgs),
    /// Forget the tokens for a server of the configuration
    #[command(after_help = "\
Example:
  cofferdam mcp logout tracker --config cofferdam.toml")]
    Logout(McpServerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct McpTokenArgs {
    /// What the caller is called
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
    /// The program that shall start the tools
    #[arg(long, value_name = "HOST")]
    pub(crate) host: McpHost,
    /// How the host calls the server
    #[arg(long, value_name = "NAME", default_value = "cofferdam", value_parser = server_name)]
    pub(crate) name: String,
    /// Put it into the host's file, or into PATH, and leave everything else there as it is (not for
    /// goose)
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    pub(crate) write: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// More flags for `cofferdam serve`
    #[arg(last = true, value_name = "FLAGS")]
    pub(crate) more: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpBundleArgs {
    /// The bundle to write
    #[arg(value_name = "OUT.mcpb")]
    pub(crate) output: PathBuf,
    /// How the bundle is called [default: like the file]
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub(crate) name: Option<String>,
    /// Its version
    #[arg(long, value_name = "VERSION", default_value = "0.1.0")]
    pub(crate) release: String,
    /// What it is for, in a sentence
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Who made it [default: the bundle's name]
    #[arg(long, value_name = "TEXT")]
    pub(crate) author: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// More flags for `cofferdam serve`
    #[arg(last = true, value_name = "FLAGS")]
    pub(crate) more: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpServerArgs {
    /// The server, as the configuration calls it
    pub(crate) server: String,
    /// The configuration file
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: PathBuf,
}

/// Most characters of a server's name: hosts put it before the name of each tool, and those have at
/// most 64 together.
const NAME_CHARS_MAX: usize = 24;

/// Reads a name that every host takes as it is.
fn server_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(fits);
    if !is_name || text.len() > NAME_CHARS_MAX {
        return Err(format!(
            "a server's name has 1 to {NAME_CHARS_MAX} letters, digits, `_` and `-`, and starts \
             with a letter or digit"
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

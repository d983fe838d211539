//! `cofferdam mcp`: registration with clients, tokens for callers, and logins to servers.

mod bundle;
mod config;
mod login;
mod token;

use std::ffi::OsStr;
use std::path::Path;

use clap::Parser as _;

use crate::args::{Cli, Global, McpCommand};
use crate::exit::{Exit, UsageError};

pub(crate) async fn run(global: &Global, command: McpCommand) -> anyhow::Result<Exit> {
    match command {
        McpCommand::Config(args) => config::run(global, args),
        McpCommand::Bundle(args) => bundle::run(global, args).await,
        McpCommand::Token(args) => token::run(&args),
        McpCommand::Login(args) => login::login(&args).await,
        McpCommand::Logout(args) => login::logout(&args),
    }
}

/// Returns the flags of `serve` that are not about its tools: the confinement that the user
/// requires, and then `more`.
///
/// # Errors
/// Returns an error if `serve` would reject the flags, where the user would not see the message.
fn serve_flags(
    global: &Global,
    config: Option<&Path>,
    more: Vec<String>,
) -> Result<Vec<String>, UsageError> {
    let level = global.confinement.map(|level| ["--confinement", level.as_str()]);
    let flags: Vec<_> = level.into_iter().flatten().map(str::to_owned).chain(more).collect();
    let mut line = vec![OsStr::new("cofferdam"), OsStr::new("serve")];
    // Some flags need a configuration.
    line.extend(config.into_iter().flat_map(|config| [OsStr::new("--config"), config.as_os_str()]));
    line.extend(flags.iter().map(OsStr::new));
    match Cli::try_parse_from(line) {
        Ok(_) => Ok(flags),
        Err(error) => {
            let error = error.to_string();
            let error = error.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Err(UsageError(format!(
                "`cofferdam serve` does not accept the flags after --: {error}"
            )))
        }
    }
}

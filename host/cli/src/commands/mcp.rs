//! `cofferdam mcp`: registration with clients, tokens for callers, and logins to servers.

mod bundle;
mod config;
mod login;
mod token;

use crate::args::{Global, McpCommand};
use crate::exit::Exit;

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
fn serve_flags(global: &Global, more: Vec<String>) -> Vec<String> {
    let level = global.confinement.map(|level| ["--confinement", level.as_str()]);
    level.into_iter().flatten().map(str::to_owned).chain(more).collect()
}

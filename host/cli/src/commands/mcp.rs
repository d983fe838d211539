//! `cofferdam mcp`: what makes other programs start `cofferdam serve`, and logging in to servers.

mod bundle;
mod config;
mod host;
mod json_text;
mod login;
mod place;
mod served;
mod token;
mod toml_text;

use crate::args::{Global, McpCommand};
use crate::exit::Exit;

pub(crate) async fn run(global: &Global, command: McpCommand) -> anyhow::Result<Exit> {
    match command {
        McpCommand::Config(args) => config::run(global, &args),
        McpCommand::Bundle(args) => bundle::run(global, &args).await,
        McpCommand::Token(args) => token::run(&args),
        McpCommand::Login(args) => login::login(&args).await,
        McpCommand::Logout(args) => login::logout(&args),
    }
}

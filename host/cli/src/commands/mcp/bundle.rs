//! `cofferdam mcp bundle`: packs this program and plugins into one file that clients install.

use anyhow::Context;
use cofferdam::mcp_clients::{Bundle, BundleOptions};

use crate::args::{Global, McpBundleArgs};
use crate::exit::{Exit, UsageError};
use crate::{host, print};

use super::serve_flags;

pub(super) async fn run(global: &Global, args: McpBundleArgs) -> anyhow::Result<Exit> {
    let McpBundleArgs { output, name, release, description, author, plugins, more } = args;
    let name = match name {
        Some(name) => name,
        None => cofferdam::plugin_name(&output)
            .map_err(|_| {
                UsageError("the bundle's file gives it no name; pass --name NAME".to_owned())
            })?
            .to_string(),
    };
    let program = std::env::current_exe().context("cannot find this program")?;
    let options = BundleOptions {
        program,
        name,
        version: release,
        description,
        author,
        flags: serve_flags(global, plugins.config.as_deref(), more)?,
    };
    let engine = host::engine(global)?;
    let bundle =
        Bundle::pack(&engine, &host::selection(&plugins)?, &options, &host::operator()).await?;
    bundle.write(&output)?;
    let offers = print::counted(bundle.tools(), "tool");
    let size = print::bytes(bundle.size());
    print::note(&format!("{} holds {offers} ({size}), for {}", output.display(), Bundle::PLATFORM));
    Ok(Exit::Ok)
}

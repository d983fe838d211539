//! `cofferdam mcp bundle`: this program and plugins in one file that hosts install.
//!
//! The same inputs make the same bytes. What is secret or of this machine is left to the host, which asks the person who
//! installs the bundle: for secrets that the configuration takes from the environment, and for directories.

mod archive;
mod contents;
mod manifest;

use std::sync::Arc;

use anyhow::Context;

use self::contents::Contents;
use super::served;
use crate::args::{Global, McpBundleArgs};
use crate::exit::{Exit, UsageError};
use crate::{host, print};
use cofferdam::compose::{self, ToolsetParts};
use cofferdam::config::edit::replace_file;
use cofferdam::granting::Values;
use cofferdam::loading;
use cofferdam::tool::ToolSource;

pub(super) async fn run(global: &Global, args: &McpBundleArgs) -> anyhow::Result<Exit> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => cofferdam::plugin_name(&args.output)
            .map_err(|_| UsageError("the bundle's file gives it no name; pass --name NAME".to_owned()))?
            .to_string(),
    };
    let mut contents = match &args.plugins.config {
        Some(config) => contents::of_config(config, &args.plugins)?,
        None => contents::of_flags(&args.plugins)?,
    };
    // Loading them shows that they work, and tells what they offer.
    let config = host::config(&args.plugins)?;
    let specs = served::check(&args.plugins, config.as_ref())?;
    let file_tools = compose::file_tools(
        &host::selection(&args.plugins)?,
        config.as_ref(),
        &specs,
        Values::Leave,
        &[],
        None,
    )?;
    let engine = host::engine(global)?;
    let (mut plugins, mut parts) = (Vec::new(), ToolsetParts::default());
    for spec in specs {
        let (path, options) = (spec.path.clone(), spec.options.clone());
        let plugin = Arc::new(loading::load_one(&engine, path, options, &host::operator()).await?);
        parts.plugins.push(spec.source(&plugin));
        plugins.push(plugin);
    }
    parts.others.extend(file_tools.map(|tools| tools as Arc<dyn ToolSource>));
    contents.lock(&plugins)?;
    let toolset = compose::toolset(parts, &host::operator())?;
    let tools: Vec<_> = toolset.definitions().cloned().collect();
    let program = std::fs::read(served::program()?).context("this program cannot be read")?;
    let manifest = manifest::text(args, &name, &contents, &tools)?;
    let Contents { files, .. } = contents;
    let bytes = archive::zip(&manifest, &program, &files)?;
    replace_file(&args.output, &bytes)
        .with_context(|| format!("{} cannot be written", args.output.display()))?;
    let offers = print::counted(tools.len(), "tool");
    let size = print::bytes(bytes.len() as u64);
    print::note(&format!("{} holds {offers} ({size}), for {}", args.output.display(), manifest::PLATFORM));
    Ok(Exit::Ok)
}

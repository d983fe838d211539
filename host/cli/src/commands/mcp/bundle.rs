//! `cofferdam mcp bundle`: this program and plugins in one file that hosts install.
//!
//! The same inputs make the same bytes. What is secret or of this machine is left to the host, which asks the person who
//! installs the bundle: for secrets that the configuration takes from the environment, and for directories.

mod archive;
mod contents;
mod manifest;

use anyhow::Context;

use self::contents::Contents;
use super::served;
use crate::args::{Global, McpBundleArgs};
use crate::exit::{Exit, UsageError};
use crate::{host, print};
use cofferdam::config::edit::replace_file;
use cofferdam::granting::Values;
use cofferdam::{compose, loading};

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
    let mut plugins = Vec::new();
    for spec in specs {
        plugins.push(std::sync::Arc::new(
            loading::load_one(&engine, spec.path, spec.options, &host::operator()).await?,
        ));
    }
    contents.lock(&plugins)?;
    let toolset = compose::toolset(&plugins, &[], file_tools, None, &[], Vec::new(), &host::operator())?;
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

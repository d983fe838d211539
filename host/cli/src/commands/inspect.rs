//! `cofferdam inspect`: shows the tools of a component and the permissions that it asks for. Grants
//! it nothing and calls none of its tools. With `--web`, it shows recorded calls in a browser.

mod web;

use std::fmt::Write;
use std::path::Path;

use cofferdam_engine::{Component, LoadError, Plugin, PluginInfo};
use cofferdam_tool::{ToolDefinition, ToolSource};
use serde_json::json;

use super::grant;
use crate::args::{Global, InspectArgs};
use crate::exit::{Exit, UsageError};
use crate::{host, print};
use cofferdam::signature::parameters;
use cofferdam::{columns, json, pins};

pub(crate) async fn run(global: &Global, args: InspectArgs) -> anyhow::Result<Exit> {
    let component = match (args.web, &args.component) {
        (Some(address), _) => return web::serve(global, address, &args).await,
        (None, Some(component)) => component,
        (None, None) => return Err(UsageError("expected a component or --web".to_owned()).into()),
    };
    let loaded = match &args.config {
        Some(config) => grant::load(global, config, &component.to_string_lossy()).await,
        None => load_file(global, component).await,
    };
    let plugin = match loaded {
        Ok(plugin) => plugin,
        Err(error) => {
            show_screened(global, &args, &error).await?;
            return Err(error);
        }
    };
    if args.json {
        let tools: Vec<_> = plugin.definitions().iter().map(|d| json::definition(d)).collect();
        let more = json!({
            "asks": pins::permission_strings(plugin.requested()),
            "grants": columns::json(&columns::rows(&plugin)),
            "tools": tools,
        });
        let report = json::with(json::info(plugin.info()), more);
        print::result(&report.to_string())?;
    } else {
        print::report(&report(&plugin, args.schemas))?;
    }
    Ok(Exit::Ok)
}

async fn load_file(global: &Global, component: &Path) -> anyhow::Result<Plugin> {
    let name = cofferdam::plugin_name(component).map_err(|error| UsageError(error.to_string()))?;
    host::load_without_grants(&host::engine(global)?, name, component.to_owned()).await
}

/// Shows what the screen found in a component that fails to describe its tools.
async fn show_screened(
    global: &Global,
    args: &InspectArgs,
    error: &anyhow::Error,
) -> anyhow::Result<()> {
    let Some(cofferdam::Error::Plugin(failed)) = error.downcast_ref() else { return Ok(()) };
    if !matches!(failed.cause(), LoadError::Describe { .. }) {
        return Ok(());
    }
    let component = Component::from_file_ambient(failed.path());
    let name =
        cofferdam::plugin_name(failed.path()).map_err(|error| UsageError(error.to_string()))?;
    let info = host::engine(global)?.screened(&component, &name).await?.info;
    if args.json {
        let failure = json!({"error": failed.cause().to_string()});
        print::result(&json::with(json::info(&info), failure).to_string())
    } else {
        let mut text = String::new();
        about(&mut text, &info);
        let _ = writeln!(text, "\nImports:");
        for import in &info.imports {
            let _ = writeln!(text, "  {import}");
        }
        print::report(text.trim_end())
    }
}

fn report(plugin: &Plugin, shows_schemas: bool) -> String {
    let mut text = String::new();
    about(&mut text, plugin.info());
    let _ = writeln!(text, "\nIts manifest asks for:");
    for ask in pins::permission_strings(plugin.requested()) {
        let _ = writeln!(text, "  - {ask}");
    }
    let _ = writeln!(text, "\nWhat it gets:");
    for line in columns::text(&columns::rows(plugin)).lines() {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "\nTools:");
    for definition in plugin.definitions().iter() {
        tool(&mut text, definition, shows_schemas);
    }
    text.trim_end().to_owned()
}

/// Appends the name, size, digest and capabilities of a component.
fn about(text: &mut String, info: &PluginInfo) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "name    {}", info.identity.name);
    let _ = writeln!(text, "size    {}", print::bytes(info.component_bytes));
    let _ = writeln!(text, "digest  {}", info.identity.digest);
    let _ = writeln!(text, "\nPermissions that it can use, if you grant them:");
    let mut said = Vec::new();
    for capability in &info.capabilities {
        let words = capability.in_plain_words();
        if said.contains(&words) {
            continue;
        }
        let _ = writeln!(text, "  - {words}");
        said.push(words);
    }
}

fn tool(text: &mut String, definition: &ToolDefinition, shows_schemas: bool) {
    let _ = writeln!(text, "\n  {}", definition.name);
    for line in definition.description.lines() {
        let _ = writeln!(text, "    {line}");
    }
    if !shows_schemas {
        for parameter in parameters(definition) {
            let _ = writeln!(text, "      {parameter}");
            if let Some(description) = &parameter.description {
                let _ = writeln!(text, "          {description}");
            }
        }
        return;
    }
    let schema = serde_json::to_string_pretty(definition.input.published()).unwrap_or_default();
    let _ = writeln!(text, "    arguments:");
    for line in schema.lines() {
        let _ = writeln!(text, "      {line}");
    }
}

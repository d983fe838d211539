//! `cofferdam list`: the tools of plugins.

use std::sync::Arc;

use cofferdam_engine::Plugin;
use cofferdam_tool::{ToolDefinition, ToolSource};
use serde_json::{Value, json};

use crate::args::{Global, ListArgs};
use crate::exit::Exit;
use crate::offer::Values;
use crate::{columns, compose, json, print};

pub(crate) async fn run(global: &Global, args: ListArgs) -> anyhow::Result<Exit> {
    let specs = compose::plugin_specs(&args.plugins, Values::Leave)?;
    let file_tools = compose::file_tools(&args.plugins, &specs)?;
    let engine = compose::engine(global)?;
    let plugins = compose::load(&engine, specs).await?;
    // Two tools of one name cannot be called side by side: better to learn that here.
    compose::toolset(&plugins, file_tools.clone())?;
    if args.grants {
        return show_grants(&args, &plugins);
    }
    if args.json {
        let mut tools: Vec<_> = plugins.iter().flat_map(tools).collect();
        tools.extend(file_tools.iter().flat_map(|source| {
            source.definitions().iter().map(|tool| json::definition(tool)).collect::<Vec<_>>()
        }));
        print::result(&Value::Array(tools).to_string())?;
    } else {
        for plugin in &plugins {
            print::result(&section(
                &format!("{}{}", plugin.info().identity.name, mounts(plugin)),
                &**plugin,
            ))?;
        }
        if let Some(tools) = &file_tools {
            print::result(&section(&format!("files in {}", tools.name()), &**tools))?;
        }
    }
    Ok(Exit::Ok)
}

fn show_grants(args: &ListArgs, plugins: &[Arc<Plugin>]) -> anyhow::Result<Exit> {
    if args.json {
        let of = |plugin: &Arc<Plugin>| json!({"plugin": plugin.info().identity.name, "grants": columns::json(&columns::rows(plugin))});
        print::result(&plugins.iter().map(of).collect::<Value>().to_string())?;
    } else {
        for plugin in plugins {
            print::result(&grants(plugin))?;
        }
    }
    Ok(Exit::Ok)
}

fn tools(plugin: &Arc<Plugin>) -> Vec<Value> {
    let plugin_name = json!({"plugin": plugin.info().identity.name});
    let tool = |definition: &ToolDefinition| json::with(json::definition(definition), plugin_name.clone());
    plugin.definitions().iter().map(|definition| tool(definition)).collect()
}

fn section(title: &str, source: &dyn ToolSource) -> String {
    let definitions = source.definitions();
    let width = definitions.iter().map(|d| d.name.as_str().len()).max().unwrap_or(0);
    let mut lines = vec![title.to_owned()];
    for definition in definitions.iter() {
        let summary = definition.description.lines().next().unwrap_or_default();
        lines.push(format!("  {:width$}  {summary}", definition.name.as_str()));
    }
    lines.join("\n")
}

fn mounts(plugin: &Plugin) -> String {
    let files = &plugin.granted().policy.files;
    let mounts: Vec<_> = files.iter().map(|(name, access)| format!("/{name} ({access})")).collect();
    if mounts.is_empty() { String::new() } else { format!("  with {}", mounts.join(", ")) }
}

/// A plugin with its three columns.
fn grants(plugin: &Plugin) -> String {
    let table = columns::text(&columns::rows(plugin));
    let indented: Vec<_> = table.lines().map(|line| format!("  {line}")).collect();
    format!("{}\n{}", plugin.info().identity.name, indented.join("\n"))
}

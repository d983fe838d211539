//! `cofferdam list`: lists the tools of plugins and servers.

use std::collections::HashMap;
use std::sync::Arc;

use cofferdam_engine::Plugin;
use cofferdam_tool::{ToolDefinition, ToolSource as _, Toolset};
use serde_json::{Value, json};

use crate::args::{Global, ListArgs};
use crate::exit::Exit;
use crate::host;
use crate::print;
use cofferdam::code::RUN_CODE;
use cofferdam::signature::signature;
use cofferdam::{Host, Purpose};
use cofferdam::{columns, json};

pub(crate) async fn run(global: &Global, args: ListArgs) -> anyhow::Result<Exit> {
    if args.outdated {
        return super::update::outdated(args.plugins.config.as_deref(), args.json).await;
    }
    // Loads everything together, so that two tools of the same name are reported here.
    let tools = host::load(global, &args.plugins, Purpose::List).await?;
    if args.grants {
        return show_grants(&args, tools.plugins());
    }
    let (sections, by_source) = (sections(&tools), by_source(tools.toolset()));
    let of = |section: &Section| {
        by_source.get(section.source.as_str()).map(Vec::as_slice).unwrap_or_default()
    };
    if args.json {
        let all: Vec<_> = sections.iter().flat_map(|section| section.json(of(section))).collect();
        print::result(&Value::Array(all).to_string())?;
    } else {
        for section in &sections {
            print::report(&section.text(of(section)))?;
        }
    }
    Ok(Exit::Ok)
}

/// Tools of one source.
struct Section {
    source: String,
    title: String,
    /// Members that the JSON of each tool gets from its source.
    members: Value,
}

fn sections(tools: &Host) -> Vec<Section> {
    let programs = tools.toolset().source(RUN_CODE).map(|code| {
        let source = code.name().to_owned();
        Section { title: "programs of the model".to_owned(), source, members: json!({}) }
    });
    let plugins = tools.plugins().iter().map(|plugin| {
        let source = plugin.info().identity.name.to_string();
        let members = json!({"plugin": source});
        Section { title: format!("{source}{}", mounts(plugin)), source, members }
    });
    let unavailable = tools.unavailable().iter().map(|plugin| {
        let source = plugin.name.to_string();
        let members = json!({"plugin": source, "unavailable": plugin.reason()});
        Section { title: format!("{source}  (unavailable: {})", plugin.reason()), source, members }
    });
    let files = tools.file_tools().into_iter().map(|files| {
        let source = files.name().to_owned();
        let names: Vec<_> = files.stores().iter().map(|store| store.name.as_str()).collect();
        Section { title: format!("files in {}", names.join(", ")), source, members: json!({}) }
    });
    let skills = tools.skills().into_iter().map(|skills| {
        let source = skills.name().to_owned();
        let title =
            format!("{source}  ({})", print::counted(skills.skills().skills().len(), "skill"));
        Section { title, source, members: json!({}) }
    });
    let servers = tools.servers().servers.iter().map(|server| {
        let source = server.name().to_owned();
        let members = json!({"server": source});
        Section { title: format!("{source}  (server)"), source, members }
    });
    programs
        .into_iter()
        .chain(plugins)
        .chain(unavailable)
        .chain(files)
        .chain(skills)
        .chain(servers)
        .collect()
}

impl Section {
    fn text(&self, definitions: &[&Arc<ToolDefinition>]) -> String {
        let mut lines = vec![self.title.clone()];
        for definition in definitions {
            lines.push(format!("  {}", signature(definition)));
            lines.push(format!("      {}", first_sentence(&definition.description)));
        }
        lines.join("\n")
    }

    fn json(&self, definitions: &[&Arc<ToolDefinition>]) -> Vec<Value> {
        let tool = |definition: &&Arc<ToolDefinition>| {
            json::with(json::definition(definition), self.members.clone())
        };
        definitions.iter().map(tool).collect()
    }
}

/// Returns the first sentence of a description, in one line.
pub(super) fn first_sentence(description: &str) -> String {
    let words: Vec<_> = description.split_whitespace().collect();
    let end = words.iter().position(|word| word.ends_with('.')).map_or(words.len(), |at| at + 1);
    words.get(..end).unwrap_or_default().join(" ")
}

/// Groups the tools by source, under the names by which they are called.
fn by_source(toolset: &Toolset) -> HashMap<&str, Vec<&Arc<ToolDefinition>>> {
    let mut found: HashMap<&str, Vec<_>> = HashMap::new();
    for definition in toolset.definitions() {
        if let Some(source) = toolset.source(definition.name.as_str()) {
            found.entry(source.name()).or_default().push(definition);
        }
    }
    found
}

fn show_grants(args: &ListArgs, plugins: &[Arc<Plugin>]) -> anyhow::Result<Exit> {
    if args.json {
        let of = |plugin: &Arc<Plugin>| json!({"plugin": plugin.info().identity.name, "grants": columns::json(&columns::rows(plugin))});
        print::result(&plugins.iter().map(of).collect::<Value>().to_string())?;
    } else {
        for plugin in plugins {
            print::report(&grants(plugin))?;
        }
    }
    Ok(Exit::Ok)
}

fn mounts(plugin: &Plugin) -> String {
    let files = &plugin.granted().policy.files;
    let mounts: Vec<_> = files.iter().map(|(name, access)| format!("/{name} ({access})")).collect();
    if mounts.is_empty() { String::new() } else { format!("  with {}", mounts.join(", ")) }
}

/// Returns a plugin and its permissions: asked for, offered and granted.
fn grants(plugin: &Plugin) -> String {
    let table = columns::text(&columns::rows(plugin));
    let indented: Vec<_> = table.lines().map(|line| format!("  {line}")).collect();
    format!("{}\n{}", plugin.info().identity.name, indented.join("\n"))
}

//! Catalog of a worker: its sources of tools, with everything that a gateway needs to list them.
//!
//! Calls are routed by a digest over an entry of the catalog. Workers with the same plugin and the
//! same definitions share a route; a changed plugin has another one, so a gateway never calls a
//! version that it has not listed.

use std::sync::Arc;

use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::label::StatedLabels;
use cofferdam_tool::origin::ToolOrigin;
use cofferdam_tool::record::PluginIdentity;
use cofferdam_tool::{
    Annotations, InputSchema, OutputSchema, PluginName, ToolDefinition, ToolName, ToolSource,
    Toolset,
};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Maximum number of tools of one source. Plugins may have 128; servers have been seen with more.
const TOOLS_MAX: usize = 1024;
/// Maximum number of sources of one worker.
const ROUTES_MAX: usize = 10_000;
/// Bytes of a digest that are a route.
const ROUTE_BYTES: usize = 16;

/// A source of tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceEntry {
    pub(crate) name: String,
    plugin: Option<PluginEntry>,
    pub(crate) instructions: Option<String>,
    /// True if the source states labels for the program (`LBL-5`).
    pub(crate) is_program: bool,
    pub(crate) tools: Vec<ToolEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginEntry {
    name: PluginName,
    digest: String,
}

/// A tool of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolEntry {
    name: ToolName,
    title: Option<String>,
    description: String,
    input: Value,
    output: Option<Value>,
    annotations: Annotations,
    group: Option<String>,
    pub(crate) needs_approval: bool,
    pub(crate) has_dry_run: bool,
    pub(crate) labels: StatedLabels,
    pub(crate) origin: ToolOrigin,
}

/// Reads the routes of a worker.
///
/// # Errors
/// What is wrong with the bytes, for the operator.
pub(crate) fn read_routes(bytes: &[u8]) -> Result<Vec<String>, String> {
    let routes: Vec<String> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_route = |route: &String| route.len() == 2 * ROUTE_BYTES && route.bytes().all(is_digit);
    match routes.len() <= ROUTES_MAX && routes.iter().all(is_route) {
        true => Ok(routes),
        false => Err(format!("expected at most {ROUTES_MAX} routes of hexadecimal digits")),
    }
}

/// Returns the sources of a toolset.
pub(crate) fn sources(toolset: &Toolset) -> Vec<SourceEntry> {
    let entry = |source: &Arc<dyn ToolSource>| {
        let of_source = toolset.tools().filter(|(_, other)| Arc::ptr_eq(source, other));
        SourceEntry {
            name: source.name().to_owned(),
            plugin: source.plugin_identity().map(|plugin| PluginEntry {
                name: plugin.name.clone(),
                digest: plugin.digest.to_string(),
            }),
            instructions: source.instructions().map(str::to_owned),
            is_program: source.states_for() == cofferdam_tool::label::StatedBy::Program,
            tools: of_source.map(|(tool, source)| ToolEntry::new(tool, &**source)).collect(),
        }
    };
    toolset.sources().map(entry).collect()
}

impl SourceEntry {
    /// Reads an entry.
    ///
    /// # Errors
    /// What is wrong with the bytes, for the operator.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let entry: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if entry.tools.len() > TOOLS_MAX {
            let count = entry.tools.len();
            return Err(format!("expected at most {TOOLS_MAX} tools, found {count}"));
        }
        Ok(entry)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns the last token of the subject on which this version of the source is called.
    pub(crate) fn route(&self) -> String {
        let digest = Sha256::digest(self.to_bytes());
        HEXLOWER.encode(digest.get(..ROUTE_BYTES).unwrap_or_default())
    }

    pub(crate) fn plugin_identity(&self) -> Option<PluginIdentity> {
        let plugin = self.plugin.as_ref()?;
        Some(PluginIdentity { name: plugin.name.clone(), digest: plugin.digest.as_str().into() })
    }
}

impl ToolEntry {
    fn new(tool: &ToolDefinition, source: &dyn ToolSource) -> Self {
        Self {
            name: tool.name.clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input: tool.input.published().clone(),
            output: tool.output.as_ref().map(|output| output.published().clone()),
            annotations: tool.annotations,
            group: tool.group.clone(),
            needs_approval: source.needs_approval(&tool.name),
            has_dry_run: source.supports_dry_run(&tool.name),
            labels: source.labels(&tool.name),
            origin: source.origin(&tool.name),
        }
    }

    /// Returns the definition. A schema that breaks the rules for plugins, as those of servers may,
    /// is published unchanged, and the worker checks the arguments.
    pub(crate) fn definition(&self) -> ToolDefinition {
        let declaration = Declaration {
            title: self.title.clone(),
            output_schema: self.output.as_ref().map(ToString::to_string),
            annotations: self.annotations,
            group: self.group.clone(),
            ..Declaration::new(self.name.to_string(), &self.description, self.input.to_string())
        };
        declaration.compile().unwrap_or_else(|_| self.forwarded())
    }

    fn forwarded(&self) -> ToolDefinition {
        let output = self.output.as_ref();
        let output = output
            .and_then(|output| OutputSchema::compile(self.name.as_str(), &output.to_string()).ok());
        ToolDefinition {
            name: self.name.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            input: Arc::new(InputSchema::forwarded(self.input.clone())),
            output: output.map(Arc::new),
            annotations: self.annotations,
            group: self.group.clone(),
        }
    }

    pub(crate) fn name(&self) -> &ToolName {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::Functions;
    use serde_json::json;

    use super::*;

    fn toolset(description: &str) -> Toolset {
        let schema = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;
        let declaration = Declaration {
            annotations: Annotations { idempotent: Some(true), ..Annotations::default() },
            output_schema: Some(r#"{"type":"integer"}"#.to_owned()),
            group: Some("math".to_owned()),
            ..Declaration::new("double", description, schema)
        };
        let functions = Functions::new("math").with(declaration, async |_, _| Ok(json!(1)));
        let mut toolset = Toolset::new();
        toolset.add(Arc::new(functions.unwrap())).unwrap();
        toolset
    }

    #[test]
    fn a_gateway_lists_what_the_worker_has() {
        let toolset = toolset("Twice a number.");
        let sources = sources(&toolset);
        let read = SourceEntry::read(&sources[0].to_bytes()).unwrap();
        assert_eq!(read, sources[0]);
        let (own, listed) = (toolset.definition("double").unwrap(), read.tools[0].definition());
        assert_eq!(own.input.published(), listed.input.published());
        let output = |tool: &ToolDefinition| tool.output.as_ref().unwrap().published().clone();
        assert_eq!(output(own), output(&listed));
        assert_eq!((own.annotations, &own.group), (listed.annotations, &listed.group));
        assert!(listed.input.decode("double", Some(b"{}"), &Default::default()).is_err());
    }

    #[test]
    fn routes_are_digests() {
        let route = sources(&toolset("a"))[0].route();
        let read = |routes: &[&str]| read_routes(&serde_json::to_vec(routes).unwrap());
        assert_eq!(read(&[&route]), Ok(vec![route.clone()]));
        for invalid in ["", ">", "a.b", &route.to_uppercase(), &route.repeat(2)] {
            assert!(read(&[invalid]).is_err(), "{invalid}");
        }
        assert!(read_routes(b"{}").is_err());
    }

    #[test]
    fn another_definition_has_another_route() {
        let route = |description| sources(&toolset(description))[0].route();
        assert_eq!(route("a"), route("a"));
        assert_ne!(route("a"), route("b"));
        assert_eq!(route("a").len(), 32);
    }

    #[test]
    fn a_schema_that_plugins_may_not_have_is_published_unchanged() {
        let mut entry = sources(&toolset("a")).remove(0);
        let schema = json!({"type": "object", "$ref": "https://example.com/schema"});
        entry.tools[0].input = schema.clone();
        let listed = entry.tools[0].definition();
        assert_eq!(listed.input.published(), &schema);
        assert!(listed.input.decode("double", Some(b"{}"), &Default::default()).is_ok());
    }
}

//! Definitions that are offered from a server's listing, and the remote items behind them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_tool::label::StatedLabels;
use cofferdam_tool::{Annotations, InputSchema, OutputSchema, ToolDefinition, ToolName};
use serde_json::{Map, Value, json};

use super::limits::{DESCRIPTION_BYTES_MAX, TITLE_BYTES_MAX, cut};
use super::listing::is_flatter;
use super::remote_items::{self, RemoteItems};
use super::review::{IgnoredStatements, Statements, statement};
use super::{
    Admission, DuplicateName, PromptListed, SelectionMode, ServerListing, TaskSupport, ToolListed,
    ToolTable, prefixed_name, prompt_schema,
};

/// Maximum nesting depth of an output schema that is compiled.
const OUTPUT_LEVELS_MAX: usize = 32;

/// Tools of one server as they are offered, until the server lists them again (`MCP-6`).
pub(crate) struct Offer {
    pub(crate) definitions: Arc<[Arc<ToolDefinition>]>,
    /// Arguments that each remote tool declares.
    pub(crate) arguments: ToolTable,
    entries: BTreeMap<ToolName, Arc<OfferEntry>>,
    prompts: Vec<PromptListed>,
    /// Items that are passed through unchanged.
    pub(crate) passed: Arc<RemoteItems>,
}

/// Remote item behind a local name.
pub(crate) struct OfferEntry {
    pub(crate) remote: String,
    pub(crate) kind: Kind,
    /// `_meta` of its listing.
    pub(crate) meta: Option<Map<String, Value>>,
    /// Labels for data flow that the server states in the listing (`LBL-5`).
    pub(crate) labels: StatedLabels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool(TaskSupport),
    Prompt,
}

impl Kind {
    /// Returns the method of the request that makes a call.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Tool(_) => "tools/call",
            Self::Prompt => "prompts/get",
        }
    }
}

impl Offer {
    /// Returns an offer without any tools.
    pub(crate) fn empty() -> Self {
        Self {
            definitions: Arc::from([]),
            arguments: ToolTable::default(),
            entries: BTreeMap::new(),
            prompts: Vec::new(),
            passed: Arc::default(),
        }
    }

    /// Creates definitions for the admitted items. Items without a valid definition are left out
    /// and logged.
    pub(crate) fn new(
        server: &str,
        listing: ServerListing,
        admission: &Admission,
        selection: SelectionMode,
        offers_prompts: bool,
    ) -> Result<Self, DuplicateName> {
        let ServerListing { tools, prompts, left_out } = listing;
        for reason in left_out {
            tracing::warn!(server, reason, "a server's listing is used in part");
        }
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        for missing in admission.missing(&names) {
            tracing::warn!(server, tool = missing, "an allowed tool is missing on the server");
        }
        let admitted = admission.admit(names)?;
        let mut offered = Self::empty();
        let mut definitions = Vec::new();
        // The admitted names are a subsequence of the tools.
        let mut tools = tools.into_iter();
        for admitted in admitted {
            let Some(tool) = tools.find(|tool| tool.name == admitted.remote) else { break };
            offered.arguments.set(&tool.name, &tool.input_schema);
            let entry = OfferEntry {
                remote: tool.name.clone(),
                kind: Kind::Tool(tool.support),
                labels: tool.meta.as_ref().map(StatedLabels::from_meta).unwrap_or_default(),
                meta: tool.meta.clone(),
            };
            offered.add(
                server,
                entry,
                admitted.local,
                |name| of_tool(name, tool, selection),
                &mut definitions,
            );
        }
        for prompt in prompts.iter().filter(|_| offers_prompts) {
            let local = prefixed_name(&prompt.name, admission.prefix.as_deref());
            if offered.entries.keys().any(|name| name.as_str() == local) {
                continue;
            }
            let labels = StatedLabels::default();
            let entry =
                OfferEntry { remote: prompt.name.clone(), kind: Kind::Prompt, meta: None, labels };
            offered.add(server, entry, local, |name| of_prompt(name, prompt), &mut definitions);
        }
        offered.prompts = prompts;
        offered.definitions = definitions.into();
        Ok(offered)
    }

    /// Returns the server's statements about what it offers.
    pub(crate) fn statements(
        &self,
        instructions: Option<String>,
        passed: &RemoteItems,
    ) -> Statements {
        let resources = passed.words();
        let mut statements = Statements { instructions, resources, ..Statements::default() };
        for definition in self.definitions.iter() {
            let Some(entry) = self.entries.get(&definition.name) else { continue };
            if let Kind::Tool(_) = entry.kind {
                statements.tools.insert(entry.remote.clone(), statement(definition));
            }
        }
        let prompts = self.prompts.iter();
        statements.prompts = prompts
            .map(|prompt| (prompt.name.clone(), json!(remote_items::prompt(prompt))))
            .collect();
        statements
    }

    /// Removes the statements that are left out.
    pub(crate) fn without(mut self, left_out: &IgnoredStatements, mut passed: RemoteItems) -> Self {
        self.prompts.retain(|prompt| !left_out.prompts.contains(&prompt.name));
        passed.prompts = self.prompts.iter().map(remote_items::prompt).collect();
        passed.leave_words_out(&left_out.resources);
        self.passed = Arc::new(passed);
        self.entries.retain(|_, entry| {
            let names = match entry.kind {
                Kind::Tool(_) => &left_out.tools,
                Kind::Prompt => &left_out.prompts,
            };
            !names.contains(&entry.remote)
        });
        let definitions =
            self.definitions.iter().filter(|tool| self.entries.contains_key(&tool.name));
        self.definitions = definitions.cloned().collect();
        self
    }

    /// Returns the remote item behind a local name.
    pub(crate) fn entry(&self, name: &ToolName) -> Option<Arc<OfferEntry>> {
        self.entries.get(name).cloned()
    }

    fn add(
        &mut self,
        server: &str,
        entry: OfferEntry,
        local: String,
        definition: impl FnOnce(ToolName) -> ToolDefinition,
        definitions: &mut Vec<Arc<ToolDefinition>>,
    ) {
        match ToolName::new(local) {
            Ok(name) => {
                self.entries.insert(name.clone(), Arc::new(entry));
                definitions.push(Arc::new(definition(name)));
            }
            Err(error) => tracing::warn!(server, tool = entry.remote, %error, "a tool is left out"),
        }
    }
}

fn of_tool(name: ToolName, tool: ToolListed, selection: SelectionMode) -> ToolDefinition {
    // A schema for a value that callers do not get would be misleading.
    let declared = tool.output_schema.filter(|_| selection.is_structured());
    let declared = declared.filter(|schema| is_flatter(schema, OUTPUT_LEVELS_MAX));
    let output = declared.and_then(|schema| {
        match OutputSchema::compile(name.as_str(), &schema.to_string()) {
            Ok(output) => Some(Arc::new(output)),
            Err(error) => {
                tracing::warn!(tool = %name, %error, "the schema of a tool's results is not used");
                None
            }
        }
    });
    ToolDefinition {
        name,
        title: tool.title,
        description: tool.description,
        input: Arc::new(InputSchema::forwarded(tool.input_schema)),
        output,
        annotations: tool.annotations,
        group: None,
    }
}

fn of_prompt(name: ToolName, prompt: &PromptListed) -> ToolDefinition {
    let schema = prompt_schema(prompt.arguments.as_deref().unwrap_or_default());
    ToolDefinition {
        name,
        title: prompt.title.as_deref().map(|title| cut(title, TITLE_BYTES_MAX).to_owned()),
        description: cut(prompt.description.as_deref().unwrap_or_default(), DESCRIPTION_BYTES_MAX)
            .to_owned(),
        input: Arc::new(InputSchema::forwarded(schema)),
        output: None,
        annotations: Annotations { read_only: Some(true), ..Annotations::default() },
        group: None,
    }
}

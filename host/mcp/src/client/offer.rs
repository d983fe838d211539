//! What of a server's listing is offered here, and what it stands for.

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_tool::label::StatedLabels;
use cofferdam_tool::{Annotations, InputSchema, OutputSchema, ToolDefinition, ToolName};
use serde_json::{Map, Value, json};

use super::limits::{DESCRIPTION_BYTES_MAX, TITLE_BYTES_MAX, cut};
use super::listing::is_flatter;
use super::passed::{self, Passed};
use super::review::{LeftOut, Statements, statement};
use super::{
    Admission, DuplicateName, Listing, PromptListed, SelectionMode, TaskSupport, ToolListed,
    ToolTable, prefixed_name, prompt_schema,
};

/// Levels of a schema that goes to the compiler of results.
const OUTPUT_LEVELS_MAX: usize = 32;

/// The tools of one server as they are offered, until it lists them anew (`MCP-6`).
pub(crate) struct Offer {
    pub(crate) definitions: Arc<[Arc<ToolDefinition>]>,
    /// What each remote tool declares.
    pub(crate) arguments: ToolTable,
    entries: BTreeMap<ToolName, Arc<Entry>>,
    prompts: Vec<PromptListed>,
    /// Items that are passed on as they are.
    pub(crate) passed: Arc<Passed>,
}

/// What a local name stands for.
pub(crate) struct Entry {
    pub(crate) remote: String,
    pub(crate) kind: Kind,
    /// `_meta` of its listing.
    pub(crate) meta: Option<Map<String, Value>>,
    /// What the server states there about the flow of data (`LBL-5`).
    pub(crate) labels: StatedLabels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool(TaskSupport),
    Prompt,
}

impl Offer {
    /// Nothing at all.
    pub(crate) fn empty() -> Self {
        Self {
            definitions: Arc::from([]),
            arguments: ToolTable::default(),
            entries: BTreeMap::new(),
            prompts: Vec::new(),
            passed: Arc::default(),
        }
    }

    /// Makes definitions of what is admitted. What cannot be one is left out and logged.
    pub(crate) fn new(
        server: &str,
        listing: Listing,
        admission: &Admission,
        selection: SelectionMode,
        offers_prompts: bool,
    ) -> Result<Self, DuplicateName> {
        let Listing { tools, prompts, left_out } = listing;
        for reason in left_out {
            tracing::warn!(server, reason, "a server's listing is used in part");
        }
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        for missing in admission.missing(&names) {
            tracing::warn!(server, tool = missing, "an allowed tool is none that the server has");
        }
        let admitted = admission.admit(names)?;
        let mut offered = Self::empty();
        let mut definitions = Vec::new();
        // The names that are admitted are a selection in the order of the tools.
        let mut tools = tools.into_iter();
        for admitted in admitted {
            let Some(tool) = tools.find(|tool| tool.name == admitted.remote) else { break };
            offered.arguments.set(&tool.name, &tool.input_schema);
            let entry = Entry {
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
                Entry { remote: prompt.name.clone(), kind: Kind::Prompt, meta: None, labels };
            offered.add(server, entry, local, |name| of_prompt(name, prompt), &mut definitions);
        }
        offered.prompts = prompts;
        offered.definitions = definitions.into();
        Ok(offered)
    }

    /// Returns the statements of the server about what it offers.
    pub(crate) fn statements(&self, instructions: Option<String>, passed: &Passed) -> Statements {
        let resources = passed.words();
        let mut statements = Statements { instructions, resources, ..Statements::default() };
        for definition in self.definitions.iter() {
            let Some(entry) = self.entries.get(&definition.name) else { continue };
            if let Kind::Tool(_) = entry.kind {
                statements.tools.insert(entry.remote.clone(), statement(definition));
            }
        }
        let prompts = self.prompts.iter();
        statements.prompts =
            prompts.map(|prompt| (prompt.name.clone(), json!(passed::prompt(prompt)))).collect();
        statements
    }

    /// The offer without what is left out.
    pub(crate) fn without(mut self, left_out: &LeftOut, mut passed: Passed) -> Self {
        self.prompts.retain(|prompt| !left_out.prompts.contains(&prompt.name));
        passed.prompts = self.prompts.iter().map(passed::prompt).collect();
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

    /// What a name stands for.
    pub(crate) fn entry(&self, name: &ToolName) -> Option<Arc<Entry>> {
        self.entries.get(name).cloned()
    }

    fn add(
        &mut self,
        server: &str,
        entry: Entry,
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
    // A schema for what nobody gets would only mislead.
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
    }
}

//! Search for tools instead of a long list (`LOOP-68` to `LOOP-70`).

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::declaration::{Declaration, DeclarationError};
use cofferdam_tool::label::StatedBy;
use cofferdam_tool::pattern::ToolPattern;
use cofferdam_tool::search::{SEARCH_TOOL, SHOWN, SHOWN_MAX, ToolQuery};
use cofferdam_tool::{
    Annotations, Arguments, CallContext, Completion, Outcome, Output, ToolCall, ToolDefinition,
    ToolFailure, ToolSource,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::Session;

/// Name of the tool that loads tools. Its result is an object whose `loaded` lists their names.
pub const LOAD_TOOL: &str = "tools_load";
/// Name of the source of both tools, and key of its part of a session's state.
const SOURCE: &str = "tool_search";
/// Key of the loaded names in that part.
const LOADED: &str = "loaded";
/// Default number of tools up to which all are advertised.
const TOOLS_MAX: usize = 40;
/// Maximum number of tools that one call loads.
const LOADED_AT_ONCE_MAX: usize = SHOWN_MAX;

/// Search for tools instead of a long list: the model finds and loads the tools that it needs.
///
/// Every tool that a request advertises costs tokens, and models choose worse among many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSearch {
    tools_max: usize,
    always_loaded: Vec<ToolPattern>,
}

impl ToolSearch {
    /// Creates a search for agents that have more than this number of tools.
    #[must_use]
    pub fn above(tools_max: usize) -> Self {
        Self { tools_max, always_loaded: Vec::new() }
    }

    /// Adds patterns for the names of tools that are advertised from the beginning.
    #[must_use]
    pub fn always_load(mut self, patterns: impl IntoIterator<Item = ToolPattern>) -> Self {
        self.always_loaded.extend(patterns);
        self
    }
}

impl Default for ToolSearch {
    /// Creates a search for agents that have more than 40 tools.
    fn default() -> Self {
        Self::above(TOOLS_MAX)
    }
}

/// Tools of a run that are advertised only if the model loads them, and the tools that do so.
pub(crate) struct SearchableTools {
    /// Definitions of the two tools.
    tools: Arc<[Arc<ToolDefinition>]>,
    searchable: Vec<Arc<ToolDefinition>>,
    names: HashSet<String>,
    /// Names of loaded tools, in the order of loading.
    loaded: Mutex<Vec<String>>,
    session: Option<Session>,
}

/// List of the functions that a request advertises, cached until something changes, so that clients
/// can cache its serialized form.
#[derive(Default)]
pub(crate) struct AdvertisedTools {
    all: Arc<[Arc<ToolDefinition>]>,
    list: Arc<[Arc<ToolDefinition>]>,
    /// Number of functions at the end of the list that the model has loaded.
    loaded: usize,
    /// Number of names that were loaded when the list was made.
    names: usize,
}

impl SearchableTools {
    /// Creates the search of a run if it has more tools than the model should see. `own` are the
    /// tools that may be left out, `count` is the number of all tools, and `required` is the name
    /// of a tool that the model must call.
    pub(crate) fn new<'d>(
        search: &ToolSearch,
        tools: &Arc<[Arc<ToolDefinition>]>,
        own: impl Iterator<Item = &'d Arc<ToolDefinition>>,
        count: usize,
        required: Option<&str>,
        session: Option<&Session>,
    ) -> Option<Self> {
        let is_listed = |name: &str| {
            search.always_loaded.iter().any(|pattern| pattern.matches(name))
                || required.is_some_and(|required| required == name)
        };
        let own = own.filter(|definition| !is_listed(definition.name.as_str()));
        let searchable: Vec<_> = own.cloned().collect();
        if count <= search.tools_max || searchable.is_empty() {
            return None;
        }
        let names = searchable.iter().map(|definition| definition.name.to_string()).collect();
        let part = session.map(|session| session.part(SOURCE)).unwrap_or_default();
        let known = part.get(LOADED).and_then(Value::as_array).into_iter().flatten();
        let mut loaded: Vec<String> = Vec::new();
        for name in known.filter_map(Value::as_str) {
            if !loaded.iter().any(|loaded| loaded == name) {
                loaded.push(name.to_owned());
            }
        }
        let (tools, session) = (Arc::clone(tools), session.cloned());
        Some(Self { tools, searchable, names, loaded: Mutex::new(loaded), session })
    }

    /// Returns the functions to advertise out of all of a run, and the number of those at the end
    /// that the model has loaded. Loaded functions are only ever appended.
    pub(crate) fn advertised(
        &self,
        all: &Arc<[Arc<ToolDefinition>]>,
        latest: &mut AdvertisedTools,
    ) -> (Arc<[Arc<ToolDefinition>]>, usize) {
        let names = self.loaded.lock();
        if !Arc::ptr_eq(&latest.all, all) || latest.names != names.len() {
            let is_listed = |tool: &&Arc<ToolDefinition>| !self.names.contains(tool.name.as_str());
            let mut list: Vec<_> = all.iter().filter(is_listed).cloned().collect();
            let listed = list.len();
            list.extend(names.iter().filter(|name| self.names.contains(*name)).filter_map(
                |name| all.iter().find(|definition| definition.name.as_str() == name).cloned(),
            ));
            *latest = AdvertisedTools {
                all: Arc::clone(all),
                loaded: list.len().saturating_sub(listed),
                list: list.into(),
                names: names.len(),
            };
        }
        (Arc::clone(&latest.list), latest.loaded)
    }

    fn search(&self, arguments: &Arguments) -> Outcome {
        let query = arguments.value().get("query").and_then(Value::as_str).unwrap_or_default();
        let Some(query) = ToolQuery::new(query) else {
            return Outcome::Failure(ToolFailure::new("expected a query with at least one word"));
        };
        let limit = arguments.value().get("limit").and_then(Value::as_u64);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(SHOWN);
        let found = query.ranked(&self.searchable, |definition| &**definition);
        let shown: Vec<_> = found
            .iter()
            .take(limit)
            .map(|definition| {
                json!({
                    "name": definition.name.as_str(),
                    "description": definition.description,
                    "inputSchema": definition.input.published(),
                })
            })
            .collect();
        Outcome::Ok(Output::Value(json!({"tools": shown, "found": found.len()})))
    }

    fn load(&self, arguments: &Arguments) -> Outcome {
        let names = arguments.value().get("names").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        let (known, unknown): (Vec<_>, Vec<_>) = names.partition(|name| self.names.contains(*name));
        if known.is_empty() {
            let unknown = unknown.join("`, `");
            let message = format!("there is no tool `{unknown}`; find names with {SEARCH_TOOL}");
            return Outcome::Failure(ToolFailure::new(message));
        }
        let mut loaded = self.loaded.lock();
        for name in &known {
            if !loaded.iter().any(|loaded| loaded == name) {
                loaded.push((*name).to_owned());
            }
        }
        if let Some(session) = &self.session {
            session.set_part(SOURCE, json!({LOADED: *loaded}));
        }
        Outcome::Ok(Output::Value(json!({LOADED: known, "unknown": unknown})))
    }
}

#[async_trait]
impl ToolSource for SearchableTools {
    fn name(&self) -> &str {
        SOURCE
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.tools)
    }

    fn instructions(&self) -> Option<&str> {
        Some(
            "More tools exist than are listed. If none of the listed tools does what you need, \
             find one with tools_search, load it with tools_load, and then call it.",
        )
    }

    fn states_for(&self) -> StatedBy {
        // Descriptions of tools, which a model without a search sees as well.
        StatedBy::Program
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let outcome = match call.tool.name.as_str() {
            SEARCH_TOOL => self.search(&call.arguments),
            _ => self.load(&call.arguments),
        };
        let mut completion = Completion::ended(outcome, context);
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }
}

/// Returns the definitions of the two tools.
pub(crate) fn definitions() -> Result<Arc<[Arc<ToolDefinition>]>, DeclarationError> {
    let search = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What the tool should do, in a few words."},
            "limit": {"type": "integer", "minimum": 1, "maximum": SHOWN_MAX, "default": SHOWN,
                "description": "How many tools to show."},
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let load = json!({
        "type": "object",
        "properties": {
            "names": {"type": "array", "items": {"type": "string"}, "minItems": 1,
                "maxItems": LOADED_AT_ONCE_MAX,
                "description": format!("The tools' names, as {SEARCH_TOOL} shows them.")},
        },
        "required": ["names"],
        "additionalProperties": false,
    });
    let of_search = "Finds tools by what they do. Gives names, descriptions and input schemas.";
    let of_load = "Loads tools, so that you can call them from your next turn on.";
    [(SEARCH_TOOL, of_search, search), (LOAD_TOOL, of_load, load)]
        .into_iter()
        .map(|(name, description, schema)| {
            let mut declaration = Declaration::new(name, description, schema.to_string());
            declaration.annotations = Annotations {
                read_only: Some(true),
                open_world: Some(false),
                ..Annotations::default()
            };
            declaration.compile().map(Arc::new)
        })
        .collect()
}

//! Snapshot of everything that is offered: tools under their wire names, prompts, resources.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use cofferdam_tool::pattern::ToolPattern;
use cofferdam_tool::schema::Dialect;
use cofferdam_tool::{ToolDefinition, Toolset};
use rmcp::model::{Icon, MetaObject, Tool, ToolAnnotations};
use serde_json::{Map, Value};

use super::forwarded_items::ForwardedItems;
use super::names::wire_names;
use super::principal::Principal;
use super::prompts::PromptOffer;
use super::resources::{ResourceOffer, ResourceSource};
use crate::client::RemoteServer;

/// Maximum size of the instructions, in bytes: clients cut them at 2 KB.
const INSTRUCTIONS_BYTES_MAX: usize = 2048;

/// Everything that a server offers. It is a snapshot; [`Server::publish`](super::Server::publish)
/// replaces it.
#[derive(Default)]
pub struct Offer {
    /// Tools, and the path that every call takes.
    pub toolset: Toolset,
    /// Names of the tools that are listed and may be called; `None` means all.
    pub only: Option<BTreeSet<String>>,
    /// Tools that render prompts.
    pub prompts: Vec<PromptOffer>,
    /// Tools that provide resources.
    pub resources: Vec<ResourceOffer>,
    /// Other resources, such as file stores.
    pub resource_sources: Vec<Arc<dyn ResourceSource>>,
    /// Servers whose resources, templates and prompts are passed through unchanged.
    pub remote: Vec<Arc<RemoteServer>>,
    /// True if there may be prompts later, because a server can announce prompt support only once
    /// per client.
    pub expects_prompts: bool,
    /// Facts about sources beyond their tools, by name.
    pub sources: HashMap<String, SourceFacts>,
    /// Sources that are still loading, with the maximum time that a call of one of their tools may
    /// wait.
    pub loading: BTreeMap<String, Duration>,
    /// Sources that are currently unavailable.
    pub unavailable: BTreeSet<String>,
    /// Rules about calls. Without any, a call needs approval if its source requires it.
    pub rules: Option<Arc<dyn CallRules>>,
    /// Patterns for the names of tools that clients see beside the tools for searching
    /// ([`ServerOptions::searches`](super::ServerOptions::searches)).
    pub always_listed: Vec<ToolPattern>,
    /// Offers for shares of the callers, by ascending share.
    pub variants: Vec<OfferVariant>,
}

/// Offer for a share of the callers. Each caller gets the same offer for as long as the shares do
/// not change, from all servers.
pub struct OfferVariant {
    /// Share in percent. Callers that belong to a smaller share of another variant get that one.
    pub percent: u8,
    /// Offer for these callers. Its own variants are ignored.
    pub offer: Offer,
}

/// Decides about calls of clients before they run. Must not block.
pub trait CallRules: Send + Sync {
    /// Decides about a call of a tool of `toolset` with these arguments, which are JSON and have
    /// not been checked yet.
    fn decide(&self, tool: &ToolDefinition, arguments: &str, toolset: &Toolset) -> RuleDecision;
}

/// Decision of [`CallRules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleDecision {
    /// The call runs.
    Run,
    /// The user has to approve the call, unless the client asks its user itself.
    Ask,
    /// The call does not run.
    Deny,
}

/// Facts about a source for clients and receipts.
#[derive(Debug, Clone, Default)]
pub struct SourceFacts {
    /// Addresses of icons (`https:` or `data:`).
    pub icons: Vec<String>,
    /// Digest of the source's grants.
    pub policy_digest: Option<PolicyDigest>,
}

/// Digest of a source's grants. It is computed when it is first shown, because a host may have a
/// thousand sources.
#[derive(Clone)]
pub struct PolicyDigest(Arc<LazyDigest>);

type LazyDigest = LazyLock<String, Box<dyn FnOnce() -> String + Send>>;

impl PolicyDigest {
    /// Creates a digest that `compute` returns on first use.
    pub fn new(compute: impl FnOnce() -> String + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(compute))))
    }

    /// Returns the digest, and computes it on first use.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Debug for PolicyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PolicyDigest")
    }
}

/// Catalogs of all callers.
pub(super) struct Catalogs {
    pub(super) main: Arc<Catalog>,
    /// Catalogs for shares of the callers in percent, by ascending share.
    variants: Vec<(u8, Arc<Catalog>)>,
}

impl Catalogs {
    pub(super) fn new(mut offer: Offer, dialect: Dialect) -> Self {
        let variants = std::mem::take(&mut offer.variants).into_iter();
        let variants = variants
            .map(|variant| (variant.percent, Arc::new(Catalog::new(variant.offer, dialect))));
        let variants = variants.collect();
        Self { main: Arc::new(Catalog::new(offer, dialect)), variants }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Catalog> {
        let variants = self.variants.iter().map(|(_, catalog)| &**catalog);
        std::iter::once(&*self.main).chain(variants)
    }

    /// Returns the shares of the callers with catalogs of their own.
    pub(super) fn percents(&self) -> impl Iterator<Item = u8> {
        self.variants.iter().map(|(percent, _)| *percent)
    }

    /// Returns the catalog of a caller.
    pub(super) fn of(&self, principal: &Principal) -> &Arc<Catalog> {
        if self.variants.is_empty() {
            return &self.main;
        }
        let percentile = principal.percentile();
        let variant = self.variants.iter().find(|(percent, _)| percentile < *percent);
        variant.map_or(&self.main, |(_, catalog)| catalog)
    }
}

/// Offer, prepared for answering requests.
pub(super) struct Catalog {
    pub(super) toolset: Toolset,
    pub(super) tools: Vec<CatalogEntry>,
    /// Indices of the tools whose wire name differs from their own name, by wire name.
    by_wire: HashMap<String, usize>,
    pub(super) prompts: Vec<PromptOffer>,
    pub(super) resources: Vec<ResourceOffer>,
    pub(super) resource_sources: Vec<Arc<dyn ResourceSource>>,
    pub(super) passed: ForwardedItems,
    pub(super) has_prompts: bool,
    pub(super) instructions: Option<String>,
    pub(super) rules: Option<Arc<dyn CallRules>>,
    loading: BTreeMap<String, Duration>,
    unavailable: BTreeSet<String>,
}

/// One tool on the wire.
pub(super) struct CatalogEntry {
    /// Definition, with the name of the tool in the toolset.
    pub(super) definition: Arc<ToolDefinition>,
    /// Source of the tool.
    pub(super) source: Arc<str>,
    facts: Arc<SourceFacts>,
    /// Dialect in which clients see its schemas.
    dialect: Dialect,
    /// True if clients see the tool. Tools that only render a prompt or a resource are not shown.
    pub(super) is_listed: bool,
    /// True if clients that search for tools find the tool, instead of seeing it at once.
    is_searchable: bool,
    /// Name on the wire.
    pub(super) wire: String,
    tool: OnceLock<Tool>,
}

impl CatalogEntry {
    /// Returns the tool as clients see it. It is created when it is first shown, because most tools
    /// of a thousand plugins are not shown for a while.
    pub(super) fn tool(&self) -> &Tool {
        self.tool.get_or_init(|| {
            wire_tool(self.wire.clone(), &self.definition, &self.facts, self.dialect)
        })
    }

    /// Returns true if a principal may use the tool.
    fn is_for(&self, principal: &Principal) -> bool {
        principal.may_call(&self.source, self.definition.name.as_str())
    }

    /// Returns the digest of the source's grants.
    pub(super) fn policy_digest(&self) -> Option<&str> {
        self.facts.policy_digest.as_ref().map(PolicyDigest::as_str)
    }
}

impl Catalog {
    pub(super) fn new(offer: Offer, dialect: Dialect) -> Self {
        let Offer { toolset, only, prompts, resources, resource_sources, sources, .. } = offer;
        let always_listed = offer.always_listed;
        let (remote, loading, unavailable) = (offer.remote, offer.loading, offer.unavailable);
        let rules = offer.rules;
        let passed = ForwardedItems::new(&remote, &prompts, &resources, &resource_sources);
        let has_prompts = offer.expects_prompts || !prompts.is_empty() || passed.has_prompts();
        let wire = wire_names(toolset.definitions().map(|definition| definition.name.as_str()));
        let hidden: BTreeSet<&str> = prompts
            .iter()
            .map(|prompt| prompt.tool.as_str())
            .chain(resources.iter().map(|resource| resource.tool.as_str()))
            .collect();
        let sources: HashMap<Arc<str>, Arc<SourceFacts>> =
            sources.into_iter().map(|(name, facts)| (name.into(), Arc::new(facts))).collect();
        let unknown: (Arc<str>, Arc<SourceFacts>) = (Arc::default(), Arc::default());
        // Tools of the same source are adjacent.
        let mut of_source = unknown.clone();
        let mut tools = Vec::with_capacity(toolset.tools().len());
        for ((definition, source), wire) in toolset.tools().zip(wire) {
            let name = definition.name.as_str();
            let is_listed =
                only.as_ref().is_none_or(|only| only.contains(name)) && !hidden.contains(name);
            if *of_source.0 != *source.name() {
                of_source = match sources.get_key_value(source.name()) {
                    Some((source, facts)) => (Arc::clone(source), Arc::clone(facts)),
                    None => (source.name().into(), Arc::clone(&unknown.1)),
                };
            }
            let (source, facts) = of_source.clone();
            let definition = Arc::clone(definition);
            tools.push(CatalogEntry {
                definition,
                source,
                facts,
                dialect,
                is_listed,
                is_searchable: !always_listed.iter().any(|pattern| pattern.matches(name)),
                wire,
                tool: OnceLock::new(),
            });
        }
        let differs =
            |(_, entry): &(usize, &CatalogEntry)| entry.wire != entry.definition.name.as_str();
        let renamed = tools.iter().enumerate().filter(differs);
        let by_wire = renamed.map(|(index, entry)| (entry.wire.clone(), index)).collect();
        let instructions = instructions(&toolset);
        Self {
            toolset,
            by_wire,
            tools,
            prompts,
            resources,
            resource_sources,
            passed,
            has_prompts,
            instructions,
            rules,
            loading,
            unavailable,
        }
    }

    /// Returns the tool that a client may call under a wire name. A tool that is hidden from the
    /// client is not found.
    pub(super) fn find(&self, wire: &str, principal: &Principal) -> Option<&CatalogEntry> {
        let index = self.by_wire.get(wire).copied().or_else(|| self.toolset.position(wire))?;
        // A tool with a different wire name cannot be called by its own name.
        let entry = self.tools.get(index).filter(|entry| entry.wire == wire)?;
        (entry.is_listed && entry.is_for(principal)).then_some(entry)
    }

    /// Returns whether sources are still loading.
    pub(super) fn is_loading(&self) -> bool {
        !self.loading.is_empty()
    }

    /// Returns the maximum time that a call may wait for a source of `principal`, or `None` if none
    /// of them is loading.
    pub(super) fn loading_wait(&self, principal: &Principal) -> Option<Duration> {
        self.loading
            .iter()
            .filter(|(source, _)| principal.may_call_some(source))
            .map(|(_, wait)| *wait)
            .max()
    }

    /// Returns the sources of `principal` that are still loading.
    pub(super) fn loading(&self, principal: &Principal) -> Vec<&str> {
        self.loading
            .keys()
            .map(String::as_str)
            .filter(|source| principal.may_call_some(source))
            .collect()
    }

    /// Returns the sources of `principal` that are unavailable or still loading.
    pub(super) fn missing(&self, principal: &Principal) -> Vec<&str> {
        let all = self.loading.keys().chain(&self.unavailable).map(String::as_str);
        all.filter(|source| principal.may_call_some(source)).collect()
    }

    /// Returns the tool that renders a prompt or a resource.
    pub(super) fn renderer(&self, name: &str, principal: &Principal) -> Option<&CatalogEntry> {
        let entry = self.toolset.position(name).and_then(|index| self.tools.get(index))?;
        entry.is_for(principal).then_some(entry)
    }

    /// Returns the tools that a client sees, in the order of the toolset.
    pub(super) fn listed(&self, principal: &Principal) -> impl Iterator<Item = &CatalogEntry> {
        self.tools.iter().filter(|entry| entry.is_listed && entry.is_for(principal))
    }

    /// Returns the tools that a client finds by a search.
    pub(super) fn searchable(&self, principal: &Principal) -> impl Iterator<Item = &CatalogEntry> {
        self.listed(principal).filter(|entry| entry.is_searchable)
    }

    /// Returns the tools that a client sees beside the tools for searching.
    pub(super) fn always_listed(
        &self,
        principal: &Principal,
    ) -> impl Iterator<Item = &CatalogEntry> {
        self.listed(principal).filter(|entry| !entry.is_searchable)
    }

    /// Returns wire names by the tools' own names, for the tools where the two differ.
    pub(super) fn renamed(&self) -> BTreeMap<String, String> {
        let differs = |entry: &&CatalogEntry| entry.wire != entry.definition.name.as_str();
        let pair = |entry: &CatalogEntry| (entry.definition.name.to_string(), entry.wire.clone());
        self.tools.iter().filter(differs).map(pair).collect()
    }
}

fn wire_tool(
    wire: String,
    definition: &ToolDefinition,
    facts: &SourceFacts,
    dialect: Dialect,
) -> Tool {
    let input = match dialect {
        Dialect::Mcp => definition.input.published_object(),
        dialect => object(definition.input.in_dialect(dialect).schema),
    };
    let mut tool = Tool::new(wire, definition.description.clone(), input);
    tool.title.clone_from(&definition.title);
    // Clients of the earlier revisions accept output schemas only for objects.
    tool.output_schema = definition
        .output
        .as_ref()
        .map(|output| output.published_object())
        .filter(|schema| schema.get("type").is_some_and(|kind| kind == "object"))
        .map(|exact| match (dialect, &definition.output) {
            (Dialect::Mcp, _) | (_, None) => exact,
            (dialect, Some(output)) => object(output.in_dialect(dialect).schema),
        })
        .map(Arc::new);
    let hints = definition.annotations;
    if [hints.read_only, hints.destructive, hints.idempotent, hints.open_world]
        .iter()
        .any(Option::is_some)
    {
        let (read_only, destructive) = (hints.read_only, hints.destructive);
        tool.annotations = Some(ToolAnnotations::from_raw(
            None,
            read_only,
            destructive,
            hints.idempotent,
            hints.open_world,
        ));
    }
    if !facts.icons.is_empty() {
        tool.icons = Some(facts.icons.iter().map(Icon::new).collect());
    }
    if hints.long_running == Some(true) {
        let mut meta = MetaObject::new();
        meta.insert("cofferdam/longRunning".to_owned(), Value::Bool(true));
        tool.meta = Some(meta);
    }
    tool
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Joins the instructions of all sources, and cuts them where clients do.
fn instructions(toolset: &Toolset) -> Option<String> {
    let texts: Vec<_> = toolset.sources().filter_map(|source| source.instructions()).collect();
    let mut text = texts.join("\n\n");
    if text.len() > INSTRUCTIONS_BYTES_MAX {
        let end =
            (0..=INSTRUCTIONS_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    (!text.is_empty()).then_some(text)
}

/// Returns the wire names that differ from the tools' own names, by own name.
#[must_use]
pub fn renamed(toolset: &Toolset) -> BTreeMap<String, String> {
    Catalog::new(Offer { toolset: toolset.clone(), ..Offer::default() }, Dialect::Mcp).renamed()
}

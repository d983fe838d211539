//! Joins several sources into one toolset, even if two of them have a tool of the same name.

use std::any::Any;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use async_trait::async_trait;
use hashbrown::HashTable;
use serde_json::{Map, Value};

use super::names::{NameFold, confusable_fold, folded};
use super::{DuplicateTool, Toolset, ToolsetState, name_of};
use crate::label::{StatedBy, StatedLabels};
use crate::origin::ToolOrigin;
use crate::record::PluginIdentity;
use crate::{CallContext, Completion, ToolCall, ToolDefinition, ToolName, ToolSource};

/// Longest name of a tool in characters (`ARG-38`).
const NAME_CHARS_MAX: usize = 128;

impl Toolset {
    /// Joins all tools of `sources`. Where tools of two sources have equal or confusable names,
    /// each of them is renamed to `<source>_<tool>`. No source gets the bare name, because it could
    /// be the one that imitates the other. So a name depends on the set of sources, not on their
    /// order.
    ///
    /// # Errors
    /// If a name is still taken after renaming.
    pub fn join(
        sources: impl IntoIterator<Item = Arc<dyn ToolSource>>,
    ) -> Result<Self, DuplicateTool> {
        let sources: Vec<_> = sources.into_iter().collect();
        let definitions: Vec<_> = sources.iter().map(|source| source.definitions()).collect();
        let shared = shared(&definitions);
        let mut toolset = Self::new();
        toolset.reserve(shared.len());
        let mut shared = shared.as_slice();
        for (source, definitions) in sources.into_iter().zip(definitions) {
            let (own, others) = shared.split_at_checked(definitions.len()).unwrap_or_default();
            shared = others;
            match own.contains(&true) {
                true => toolset.add(Arc::new(PrefixedSource::new(source, definitions, own)))?,
                false => toolset.add(source)?,
            }
        }
        Ok(toolset)
    }

    fn reserve(&mut self, tools: usize) {
        let ToolsetState { entries, names, .. } = Arc::make_mut(&mut self.inner);
        entries.reserve(tools);
        names.reserve(tools, |entry| name_of(entries, entry));
    }
}

/// Returns, for each tool of each source in order, whether another source has a tool with a
/// confusable name.
fn shared(sources: &[Arc<[Arc<ToolDefinition>]>]) -> Vec<bool> {
    let tools = sources
        .iter()
        .enumerate()
        .flat_map(|(owner, tools)| tools.iter().map(move |tool| (owner, tool)));
    let names: Vec<(usize, &str)> =
        tools.map(|(owner, tool)| (owner, tool.name.as_str())).collect();
    let mut is_shared = vec![false; names.len()];
    for look in [folded as NameFold, confusable_fold] {
        mark_shared(&names, look, &mut is_shared);
    }
    is_shared
}

/// Marks the names that are equal after `look` and belong to several owners.
fn mark_shared(names: &[(usize, &str)], look: NameFold, is_shared: &mut [bool]) {
    let random = RandomState::new();
    let looked = |index: usize| names.get(index).map(|(_, name)| look(name));
    let hash_of = |index: usize| looked(index).map_or(0, |looked| random.hash_one(looked.bytes()));
    // The first of each group of equal names, and whether the group has several owners.
    let mut firsts: HashTable<(usize, bool)> = HashTable::with_capacity(names.len());
    let mut first_of = Vec::with_capacity(names.len());
    for (index, (owner, name)) in names.iter().enumerate() {
        let own = look(name);
        let hash = random.hash_one(own.bytes());
        let is_alike =
            |(first, _): &(usize, bool)| looked(*first).is_some_and(|l| l.bytes() == own.bytes());
        match firsts.find_mut(hash, is_alike) {
            Some((first, has_several)) => {
                *has_several |= names.get(*first).is_none_or(|(other, _)| other != owner);
                first_of.push(*first);
            }
            None => {
                firsts.insert_unique(hash, (index, false), |(first, _)| hash_of(*first));
                first_of.push(index);
            }
        }
    }
    let mut has_several = vec![false; names.len()];
    for (first, several) in firsts {
        if let Some(entry) = has_several.get_mut(first) {
            *entry = several;
        }
    }
    for (shared, first) in is_shared.iter_mut().zip(first_of) {
        *shared |= has_several.get(first).copied().unwrap_or_default();
    }
}

/// A source with some of its tools prefixed with the source's name.
struct PrefixedSource {
    source: Arc<dyn ToolSource>,
    definitions: Arc<[Arc<ToolDefinition>]>,
    /// The source's own definitions of the same tools, before renaming.
    own: Arc<[Arc<ToolDefinition>]>,
}

impl PrefixedSource {
    fn new(source: Arc<dyn ToolSource>, own: Arc<[Arc<ToolDefinition>]>, shared: &[bool]) -> Self {
        let named = |(definition, is_shared): (&Arc<ToolDefinition>, &bool)| match is_shared {
            false => Arc::clone(definition),
            true => {
                let name = prefixed(source.name(), &definition.name);
                Arc::new(ToolDefinition { name, ..(**definition).clone() })
            }
        };
        let definitions = own.iter().zip(shared).map(named).collect();
        Self { source, definitions, own }
    }

    /// Returns the source's own definition of the tool that is called `name` here.
    fn own_definition(&self, name: &ToolName) -> Option<&Arc<ToolDefinition>> {
        let index = self.definitions.iter().position(|definition| definition.name == *name)?;
        self.own.get(index)
    }

    fn own_name<'a>(&'a self, name: &'a ToolName) -> &'a ToolName {
        self.own_definition(name).map_or(name, |definition| &definition.name)
    }
}

/// Prefixes a tool's name with that of its source. Characters that a tool's name cannot contain
/// become `_`.
fn prefixed(source: &str, tool: &ToolName) -> ToolName {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let source: String = source.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    let mut name = format!("{source}_{tool}");
    // Both names are ASCII, so truncation cannot split a character.
    name.truncate(NAME_CHARS_MAX);
    ToolName::new(name).unwrap_or_else(|_| tool.clone())
}

#[async_trait]
impl ToolSource for PrefixedSource {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn instructions(&self) -> Option<&str> {
        self.source.instructions()
    }

    fn needs_approval(&self, tool: &ToolName) -> bool {
        self.source.needs_approval(self.own_name(tool))
    }

    fn origin(&self, tool: &ToolName) -> ToolOrigin {
        self.source.origin(self.own_name(tool))
    }

    fn plugin_identity(&self) -> Option<&PluginIdentity> {
        self.source.plugin_identity()
    }

    fn needs_approval_for(&self, tool: &ToolName, arguments: &Map<String, Value>) -> bool {
        self.source.needs_approval_for(self.own_name(tool), arguments)
    }

    fn supports_dry_run(&self, tool: &ToolName) -> bool {
        self.source.supports_dry_run(self.own_name(tool))
    }

    fn file_stores(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        self.source.file_stores()
    }

    fn labels(&self, tool: &ToolName) -> StatedLabels {
        self.source.labels(self.own_name(tool))
    }

    fn states_for(&self) -> StatedBy {
        self.source.states_for()
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let tool = self.own_definition(&call.tool.name).unwrap_or(call.tool);
        self.source.invoke(ToolCall { tool, ..call }, context).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Annotations, CallRecord, InputSchema, Outcome, Output};

    /// A source whose tools return their own names.
    struct Named(&'static str, &'static [&'static str]);

    #[async_trait]
    impl ToolSource for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
            let definition = |name: &&str| {
                Arc::new(ToolDefinition {
                    name: ToolName::new(*name).unwrap(),
                    title: None,
                    description: String::new(),
                    input: Arc::new(InputSchema::compile(name, "{}").unwrap()),
                    output: None,
                    annotations: Annotations::default(),
                    group: None,
                })
            };
            self.1.iter().map(definition).collect()
        }

        fn needs_approval(&self, tool: &ToolName) -> bool {
            tool.as_str() == "delete"
        }

        async fn invoke(&self, call: ToolCall<'_>, _: &CallContext) -> Completion {
            let output = json!(format!("{} of {}", call.tool.name, self.0));
            Completion::new(Outcome::Ok(Output::Value(output)), CallRecord::default())
        }
    }

    fn join(sources: &[(&'static str, &'static [&'static str])]) -> Toolset {
        Toolset::join(sources.iter().map(|(name, tools)| Arc::new(Named(name, tools)) as _))
            .unwrap()
    }

    fn names(toolset: &Toolset) -> Vec<&str> {
        toolset.definitions().map(|definition| definition.name.as_str()).collect()
    }

    #[tokio::test]
    async fn tools_that_share_a_name_get_that_of_their_source_whatever_the_order() {
        let toolset =
            join(&[("a", &["read", "delete"]), ("b", &["Read", "list"]), ("c", &["delete"])]);
        assert_eq!(names(&toolset), ["a_read", "a_delete", "b_Read", "list", "c_delete"]);
        let other =
            join(&[("c", &["delete"]), ("b", &["Read", "list"]), ("a", &["read", "delete"])]);
        assert_eq!(names(&other), ["c_delete", "b_Read", "list", "a_read", "a_delete"]);
        let completion = toolset.call("b_Read", None, &CallContext::default()).await.unwrap();
        assert_eq!(completion.outcome, Outcome::Ok(Output::Value(Value::from("Read of b"))));
        assert!(toolset.call("read", None, &CallContext::default()).await.is_err());
        assert!(toolset.needs_approval("a_delete") && !toolset.needs_approval("a_read"));
    }

    #[test]
    fn a_name_that_is_still_taken_is_an_error() {
        let sources: [Arc<dyn ToolSource>; 3] = [
            Arc::new(Named("a", &["b"])),
            Arc::new(Named("c", &["b"])),
            Arc::new(Named("d", &["a_b"])),
        ];
        assert_eq!(Toolset::join(sources).err().unwrap().name.as_str(), "a_b");
    }
}

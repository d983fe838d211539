//! Several sources as one toolset, also when two of them have a tool of the same name.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::names::Looks;
use super::{DuplicateTool, Toolset};
use crate::{CallContext, Completion, ToolCall, ToolDefinition, ToolName, ToolSource};

/// Longest name of a tool in characters (`ARG-38`).
const NAME_CHARS_MAX: usize = 128;

impl Toolset {
    /// A toolset of all tools of `sources`. Where tools of two sources have the same name, or names that cannot be told apart,
    /// each of them is called `<source>_<tool>`; no source gets the bare name, for it could be the one that wants to be
    /// taken for the other. So a name depends on which sources there are, and not on their order.
    ///
    /// # Errors
    /// A name that is still taken then.
    pub fn join(sources: impl IntoIterator<Item = Arc<dyn ToolSource>>) -> Result<Self, DuplicateTool> {
        let sources: Vec<_> = sources.into_iter().collect();
        let definitions: Vec<_> = sources.iter().map(|source| source.definitions()).collect();
        let of =
            |tools: &Arc<[Arc<ToolDefinition>]>| tools.iter().map(|tool| Looks::of(&tool.name)).collect();
        let looks: Vec<Vec<Looks>> = definitions.iter().map(of).collect();
        let shared = shared(&looks);
        let mut toolset = Self::new();
        for (((source, definitions), looks), shared) in sources.iter().zip(definitions).zip(looks).zip(shared)
        {
            if !shared.contains(&true) {
                toolset.add_all(source, &definitions, looks)?;
                continue;
            }
            let prefixed = Prefixed::new(Arc::clone(source), &definitions, &shared);
            // A name that was not changed looks as it did.
            let looks = prefixed.definitions.iter().zip(looks).zip(&shared);
            let looks = looks.map(|((tool, looks), is_shared)| match is_shared {
                true => Looks::of(&tool.name),
                false => looks,
            });
            let (looks, definitions) = (looks.collect(), Arc::clone(&prefixed.definitions));
            toolset.add_all(&(Arc::new(prefixed) as Arc<dyn ToolSource>), &definitions, looks)?;
        }
        Ok(toolset)
    }
}

/// For each tool of each source, whether another source has a tool that it could be taken for.
fn shared(looks: &[Vec<Looks>]) -> Vec<Vec<bool>> {
    let tools = looks.iter().map(Vec::len).sum();
    let (mut folded, mut drawn) = (HashMap::with_capacity(tools), HashMap::with_capacity(tools));
    for (owner, looks) in looks.iter().enumerate() {
        for Looks { folded: as_folded, drawn: as_drawn } in looks {
            for (owners, key) in [(&mut folded, as_folded), (&mut drawn, as_drawn)] {
                let owners = owners.entry(key.as_str()).or_insert(Some(owner));
                *owners = owners.filter(|one| *one == owner);
            }
        }
    }
    // A name with one owner has that one.
    let has_several = |owners: &HashMap<&str, Option<usize>>, key: &str| owners.get(key) == Some(&None);
    let is_shared = |looks: &Looks| has_several(&folded, &looks.folded) || has_several(&drawn, &looks.drawn);
    looks.iter().map(|looks| looks.iter().map(is_shared).collect()).collect()
}

/// A source of which some tools have the source's name before their own.
struct Prefixed {
    source: Arc<dyn ToolSource>,
    definitions: Arc<[Arc<ToolDefinition>]>,
    /// The source's own definitions of the tools that have another name here.
    own: HashMap<ToolName, Arc<ToolDefinition>>,
}

impl Prefixed {
    fn new(source: Arc<dyn ToolSource>, tools: &[Arc<ToolDefinition>], shared: &[bool]) -> Self {
        let mut own = HashMap::with_capacity(tools.len());
        let mut definitions = Vec::with_capacity(tools.len());
        for (definition, is_shared) in tools.iter().zip(shared) {
            if !is_shared {
                definitions.push(Arc::clone(definition));
                continue;
            }
            let name = prefixed(source.name(), &definition.name);
            own.insert(name.clone(), Arc::clone(definition));
            definitions.push(Arc::new(ToolDefinition { name, ..(**definition).clone() }));
        }
        Self { source, definitions: definitions.into(), own }
    }

    fn own_name<'a>(&'a self, name: &'a ToolName) -> &'a ToolName {
        self.own.get(name).map_or(name, |definition| &definition.name)
    }
}

/// The name of a tool behind that of its source. What a tool's name cannot hold is written as `_`.
fn prefixed(source: &str, tool: &ToolName) -> ToolName {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let source: String = source.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    let mut name = format!("{source}_{tool}");
    // All characters of both are one byte.
    name.truncate(NAME_CHARS_MAX);
    ToolName::new(name).unwrap_or_else(|_| tool.clone())
}

#[async_trait]
impl ToolSource for Prefixed {
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

    async fn invoke(&self, mut call: ToolCall, context: &CallContext) -> Completion {
        if let Some(own) = self.own.get(&call.tool.name) {
            call.tool = Arc::clone(own);
        }
        self.source.invoke(call, context).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Annotations, CallRecord, InputSchema, Outcome, Output};

    /// Tools that answer with their own name.
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
                })
            };
            self.1.iter().map(definition).collect()
        }

        fn needs_approval(&self, tool: &ToolName) -> bool {
            tool.as_str() == "delete"
        }

        async fn invoke(&self, call: ToolCall, _: &CallContext) -> Completion {
            let output = json!(format!("{} of {}", call.tool.name, self.0));
            Completion { outcome: Outcome::Ok(Output::Value(output)), record: CallRecord::default() }
        }
    }

    fn join(sources: &[(&'static str, &'static [&'static str])]) -> Toolset {
        Toolset::join(sources.iter().map(|(name, tools)| Arc::new(Named(name, tools)) as _)).unwrap()
    }

    fn names(toolset: &Toolset) -> Vec<&str> {
        toolset.definitions().map(|definition| definition.name.as_str()).collect()
    }

    #[tokio::test]
    async fn tools_that_share_a_name_get_that_of_their_source_whatever_the_order() {
        let toolset = join(&[("a", &["read", "delete"]), ("b", &["Read", "list"]), ("c", &["delete"])]);
        assert_eq!(names(&toolset), ["a_read", "a_delete", "b_Read", "list", "c_delete"]);
        let other = join(&[("c", &["delete"]), ("b", &["Read", "list"]), ("a", &["read", "delete"])]);
        assert_eq!(names(&other), ["c_delete", "b_Read", "list", "a_read", "a_delete"]);
        let completion = toolset.call("b_Read", None, &CallContext::default()).await.unwrap();
        assert_eq!(completion.outcome, Outcome::Ok(Output::Value(Value::from("Read of b"))));
        assert!(toolset.call("read", None, &CallContext::default()).await.is_err());
        assert!(toolset.needs_approval("a_delete") && !toolset.needs_approval("a_read"));
    }

    #[test]
    fn a_name_that_is_still_taken_is_an_error() {
        let sources: [Arc<dyn ToolSource>; 3] =
            [Arc::new(Named("a", &["b"])), Arc::new(Named("c", &["b"])), Arc::new(Named("d", &["a_b"]))];
        assert_eq!(Toolset::join(sources).err().unwrap().name.as_str(), "a_b");
    }
}

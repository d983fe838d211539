//! Serialized tools of a request.
//!
//! Converting a schema to a dialect takes longer than everything else in this crate, and nearly
//! every request has the same tools as the one before. So the result is cached: whole lists, and
//! single schemas for when a list changes.

use std::sync::Arc;

use cofferdam_agent::{ChatError, ChatErrorKind};
use cofferdam_tool::ToolDefinition;
use cofferdam_tool::schema::Dialect;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;

use super::caching;
use super::hosted::HostedPrograms;
use super::names::NameMap;

/// Maximum length of a function name at every provider.
const NAME_CHARS_MAX: usize = 64;
/// Field of a deferred function.
const DEFER: &str = "defer_loading";
/// Maximum number of cached lists. An agent has one, and another when it runs out of iterations.
const LISTS_MAX: usize = 4;

type Definitions = Arc<[Arc<ToolDefinition>]>;
/// Serializes a tool from its name, its description and its schema.
pub(super) type WriteTool = fn(&str, &str, &WrittenSchema) -> Value;

/// A serialized list of functions.
#[derive(Debug)]
pub(super) struct WrittenTools {
    /// The list in JSON; `None` if it is empty.
    pub(super) json: Option<Box<RawValue>>,
    pub(super) names: Arc<NameMap>,
    definitions: Definitions,
    dialect: Dialect,
    /// Names of functions that the model sees from a result on.
    deferred: Vec<String>,
    /// Mark on the last function for the provider's prompt cache.
    mark: Option<Value>,
    schemas: Vec<Arc<WrittenSchema>>,
}

/// A schema in the provider's dialect.
#[derive(Debug)]
pub(super) struct WrittenSchema {
    pub(super) schema: Value,
    /// True if the provider is asked to enforce the schema.
    pub(super) is_strict: bool,
}

/// Cache of serialized tools.
#[derive(Debug)]
pub(super) struct ToolCache {
    /// Programs of the provider, if they are on.
    programs: Option<HostedPrograms>,
    /// Cached lists, the most recently used one last.
    lists: Mutex<Vec<Arc<WrittenTools>>>,
}

impl ToolCache {
    pub(super) fn new(programs: Option<HostedPrograms>) -> Self {
        Self { programs, lists: Mutex::default() }
    }

    pub(super) fn written(
        &self,
        write: WriteTool,
        dialect: Dialect,
        definitions: &Definitions,
        deferred: &[String],
        mark: Option<&Value>,
    ) -> Result<Arc<WrittenTools>, ChatError> {
        let mut lists = self.lists.lock();
        let is_same = |list: &Arc<WrittenTools>| {
            Arc::ptr_eq(&list.definitions, definitions)
                && list.dialect == dialect
                && list.mark.as_ref() == mark
                && list.deferred == deferred
        };
        let written = match lists.iter().position(is_same) {
            Some(index) => lists.remove(index),
            None => Arc::new(WrittenTools::write(
                write,
                dialect,
                definitions,
                (deferred, mark, self.programs.as_ref()),
                &lists,
            )?),
        };
        if lists.len() >= LISTS_MAX {
            lists.remove(0);
        }
        lists.push(Arc::clone(&written));
        Ok(written)
    }
}

impl WrittenTools {
    fn write(
        write: WriteTool,
        dialect: Dialect,
        definitions: &Definitions,
        (deferred, mark, programs): (&[String], Option<&Value>, Option<&HostedPrograms>),
        before: &[Arc<Self>],
    ) -> Result<Self, ChatError> {
        let mut names = NameMap::new(NAME_CHARS_MAX);
        names.add_all(definitions.iter().map(|definition| definition.name.as_str()));
        let is_deferred = |definition: &ToolDefinition| {
            deferred.iter().any(|name| *name == *definition.name.as_str())
        };
        let known = |definition: &Arc<ToolDefinition>| {
            before
                .iter()
                .rev()
                .filter(|list| list.dialect == dialect)
                .find_map(|list| list.schema_of(definition))
        };
        let schemas: Vec<_> = definitions
            .iter()
            .map(|definition| {
                known(definition)
                    .unwrap_or_else(|| Arc::new(WrittenSchema::write(definition, dialect)))
            })
            .collect();
        let tool = |(definition, schema): (&Arc<ToolDefinition>, &Arc<WrittenSchema>)| {
            let name = names.wire(definition.name.as_str());
            let mut tool = write(name, &definition.description, schema);
            if let Some(tool) = tool.as_object_mut().filter(|_| is_deferred(definition)) {
                tool.insert(DEFER.to_owned(), true.into());
            }
            if let (Some(programs), Some(tool)) = (programs, tool.as_object_mut()) {
                programs.allow(tool, schema.is_strict);
            }
            tool
        };
        let functions = definitions.iter().zip(&schemas).map(tool);
        let hosted = programs.filter(|_| !definitions.is_empty());
        let hosted = hosted.map(|programs| programs.tool.clone());
        let mut tools: Vec<Value> = hosted.into_iter().chain(functions).collect();
        // Deferred functions come after the part that is cached.
        let last = tools.iter_mut().rfind(|tool| tool.get(DEFER).is_none());
        caching::add_mark(last, mark);
        let json = if tools.is_empty() { None } else { Some(raw(&tools)?) };
        let definitions = Arc::clone(definitions);
        let (deferred, mark) = (deferred.to_vec(), mark.cloned());
        Ok(Self { json, names: Arc::new(names), definitions, dialect, deferred, mark, schemas })
    }

    fn schema_of(&self, definition: &Arc<ToolDefinition>) -> Option<Arc<WrittenSchema>> {
        // Pointer identity is safe: both lists are alive, so equal pointers mean the same
        // definition.
        let index = self.definitions.iter().position(|known| Arc::ptr_eq(known, definition))?;
        self.schemas.get(index).map(Arc::clone)
    }
}

fn raw(tools: &[Value]) -> Result<Box<RawValue>, ChatError> {
    let refused = |error| {
        ChatError::new(
            ChatErrorKind::Configuration,
            format!("the tools cannot be written: {error}"),
        )
    };
    serde_json::value::to_raw_value(tools).map_err(refused)
}

impl WrittenSchema {
    fn write(definition: &ToolDefinition, dialect: Dialect) -> Self {
        let shown = definition.input.in_dialect(dialect);
        Self { schema: shown.schema, is_strict: shown.strict }
    }
}

#[cfg(test)]
#[cfg(all(feature = "anthropic", feature = "openai"))]
mod tests {
    use serde_json::json;

    use super::super::tests::tool;
    use super::*;
    use crate::Provider;

    #[test]
    fn written_tools_are_cached_for_lists_and_for_single_tools() {
        let cache = ToolCache::new(None);
        let write = |list: &Definitions, is_strict| {
            let dialect = Provider::OpenAiChat.dialect(is_strict);
            cache.written(crate::openai_chat::tool, dialect, list, &[], None).unwrap()
        };
        let [first, second] = ["a", "b"].map(|name| tool(name, &json!({"type": "object"})));
        let list: Definitions = [Arc::clone(&first)].into();
        let written = write(&list, false);
        assert!(Arc::ptr_eq(&written, &write(&list, false)));
        assert!(!Arc::ptr_eq(&written, &write(&list, true)), "strict schemas are others");
        let longer: Definitions = [second, first].into();
        assert!(Arc::ptr_eq(&written.schemas[0], &write(&longer, false).schemas[1]));
        for _ in 0..10 {
            write(&longer.iter().cloned().collect(), false);
        }
        assert_eq!(cache.lists.lock().len(), LISTS_MAX);
        assert!(write(&[].into(), false).json.is_none());
    }
}

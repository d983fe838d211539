//! Several sources as one, and the one path that every call takes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::{
    CallContext, Completion, DecodeOptions, InvalidArguments, ToolCall, ToolDefinition, ToolName, ToolSource,
};

/// Tools of several sources under unique names.
///
/// It is a snapshot: what a source adds later is not seen. A toolset is cheap to build, so that an edge whose
/// sources change builds a new one.
#[derive(Default)]
pub struct Toolset {
    entries: Vec<Entry>,
    by_name: HashMap<ToolName, usize>,
    decode: DecodeOptions,
}

struct Entry {
    definition: Arc<ToolDefinition>,
    source: Arc<dyn ToolSource>,
}

/// Two tools of one toolset share a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two tools are called '{name}'")]
pub struct DuplicateTool {
    /// The name that is taken.
    pub name: ToolName,
}

/// Why a call did not start. No tool has run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// No tool of that name.
    #[error("there is no tool called '{name}'")]
    UnknownTool {
        /// The name that was asked for.
        name: String,
        /// The nearest name that exists.
        nearest: Option<ToolName>,
    },
    /// The arguments do not decode.
    #[error(transparent)]
    InvalidArguments(#[from] InvalidArguments),
}

impl Toolset {
    /// A toolset without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes arguments with `options` instead of the defaults.
    #[must_use]
    pub fn with_decode_options(mut self, options: DecodeOptions) -> Self {
        self.decode = options;
        self
    }

    /// Adds every tool of `source`, or none of them.
    ///
    /// # Errors
    /// The first name that is already taken.
    pub fn add(&mut self, source: Arc<dyn ToolSource>) -> Result<(), DuplicateTool> {
        let definitions = source.definitions();
        if let Some(taken) = definitions.iter().find(|d| self.by_name.contains_key(&d.name)) {
            return Err(DuplicateTool { name: taken.name.clone() });
        }
        for definition in definitions.iter() {
            self.by_name.insert(definition.name.clone(), self.entries.len());
            self.entries.push(Entry { definition: Arc::clone(definition), source: Arc::clone(&source) });
        }
        Ok(())
    }

    /// The definitions in the order in which they were added.
    pub fn definitions(&self) -> impl ExactSizeIterator<Item = &Arc<ToolDefinition>> {
        self.entries.iter().map(|entry| &entry.definition)
    }

    /// Looks up `name`, decodes `arguments` (JSON text, `None` for absent) and runs the call to its end.
    ///
    /// # Errors
    /// [`Refused`] when there is no such tool or its arguments do not decode; then nothing has run.
    pub async fn call(
        &self,
        name: &str,
        arguments: Option<&[u8]>,
        context: &CallContext,
    ) -> Result<Completion, Refused> {
        let entry = self.lookup(name)?;
        let started = Instant::now();
        let arguments = entry.definition.input.decode(name, arguments, &self.decode)?;
        let decode = started.elapsed();
        let dropped = arguments.dropped().to_vec();
        let call = ToolCall { tool: Arc::clone(&entry.definition), arguments };
        let mut completion = entry.source.invoke(call, context).await;
        completion.record.dropped = dropped;
        completion.record.phases.decode = decode;
        Ok(completion)
    }

    fn lookup(&self, name: &str) -> Result<&Entry, Refused> {
        self.by_name.get(name).and_then(|&index| self.entries.get(index)).ok_or_else(|| {
            let names = self.entries.iter().map(|e| e.definition.name.as_str());
            let nearest = crate::name::nearest(name, names).and_then(|n| ToolName::new(n).ok());
            Refused::UnknownTool { name: name.to_owned(), nearest }
        })
    }
}

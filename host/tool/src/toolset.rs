//! Toolset: several sources as one, and the only path that calls take.

mod join;
mod log;
mod names;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use self::names::NameIndex;
use crate::invoke::InnerCall;
use crate::origin::ToolOrigin;
use crate::sink::{CallSink, ObservedCall, SinkGuard};
use crate::usage::Usage;
use crate::usage::UsedUp;
use crate::{
    CallContext, CallRecord, Completion, DecodeOptions, InvalidArguments, Outcome, ToolCall,
    ToolDefinition, ToolName, ToolSource,
};

/// Maximum characters of an unknown name in the message about it.
const UNKNOWN_NAME_CHARS_MAX: usize = 200;

/// Tools of several sources under unique names.
///
/// No source can replace or imitate a tool of another source. If one name of a source is taken, or
/// differs from a taken name only in case, separators or characters that look alike, the toolset
/// rejects the whole source.
///
/// A toolset is a snapshot: it does not see tools that a source adds later. Building one is cheap,
/// so code whose sources change builds a new one.
///
/// Clones are cheap and share all entries. Adding to one clone does not change the others.
#[derive(Clone, Default)]
pub struct Toolset {
    inner: Arc<ToolsetState>,
}

#[derive(Clone, Default)]
struct ToolsetState {
    entries: Vec<ToolsetEntry>,
    names: NameIndex,
    sink: Option<Arc<dyn CallSink>>,
    /// Toolset that this one was restricted from.
    unrestricted: Option<Toolset>,
}

#[derive(Clone)]
struct ToolsetEntry {
    definition: Arc<ToolDefinition>,
    source: Arc<dyn ToolSource>,
    usage: Option<Arc<Usage>>,
}

/// Error: a tool has the same name as another source's tool, or a name that a user or a model could
/// confuse with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}; load only one of the two, or have its author rename a tool", clash(.name, .source_name, .taken, .taken_by))]
pub struct DuplicateTool {
    /// Name that cannot be added.
    pub name: ToolName,
    /// Source of the rejected tool.
    pub source_name: String,
    /// Name that is already taken.
    pub taken: ToolName,
    /// Source of the tool with the taken name.
    pub taken_by: String,
}

fn clash(name: &ToolName, source_name: &str, taken: &ToolName, taken_by: &str) -> String {
    if name == taken {
        return format!(
            "two tools are called '{name}', one of `{taken_by}` and one of `{source_name}`"
        );
    }
    format!("the tool '{name}' of `{source_name}` cannot be told from '{taken}' of `{taken_by}`")
}

/// Error of a call that did not start. No tool has run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RefusedCall {
    /// The toolset has no tool of that name.
    #[error("there is no tool called '{name}'")]
    UnknownTool {
        /// Name in the call. A long one is cut, and control characters are escaped.
        name: String,
        /// Most similar name in the toolset.
        nearest: Option<ToolName>,
    },
    /// The arguments do not decode.
    #[error(transparent)]
    InvalidArguments(#[from] InvalidArguments),
    /// The call was requested as a dry run, which the tool does not support.
    #[error("'{tool}' has no dry run; nothing was called.")]
    NoDryRun {
        /// Name of the tool.
        tool: ToolName,
    },
    /// The tool has reached its maximum number of calls (`RES-23`).
    #[error(
        "Function '{tool}' has reached its maximum invocation limit, you can no longer use this \
         tool."
    )]
    InvocationsUsedUp {
        /// Name of the tool.
        tool: ToolName,
    },
    /// The tool has reached its maximum number of failures (`RES-23`).
    #[error(
        "Function '{tool}' has reached its maximum failure limit, you tried to use this tool too many times and it \
         kept failing."
    )]
    FailuresUsedUp {
        /// Name of the tool.
        tool: ToolName,
    },
}

impl Toolset {
    /// Returns a toolset without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all tools of `source`, or none of them.
    ///
    /// # Errors
    /// Returns an error for the first name that is already taken or can be confused with a taken
    /// one.
    pub fn add(&mut self, source: Arc<dyn ToolSource>) -> Result<(), DuplicateTool> {
        let definitions = source.definitions();
        let mut names = definitions.iter().map(|definition| &definition.name);
        if let Some(taken) = names.find_map(|name| self.taken(&source, name)) {
            return Err(taken);
        }
        if let Some(unrestricted) = self.unrestricted_mut() {
            unrestricted.add(Arc::clone(&source))?;
        }
        Arc::make_mut(&mut self.inner).add(&source, &definitions);
        Ok(())
    }

    fn taken(&self, source: &Arc<dyn ToolSource>, name: &ToolName) -> Option<DuplicateTool> {
        let ToolsetState { entries, names, .. } = &*self.inner;
        let entry = entries.get(names.taken(name.as_str(), |entry| name_of(entries, entry))?)?;
        Some(DuplicateTool {
            name: name.clone(),
            source_name: source.name().to_owned(),
            taken: entry.definition.name.clone(),
            taken_by: entry.source.name().to_owned(),
        })
    }

    /// Removes a tool. Returns whether it existed.
    pub fn remove(&mut self, tool: &str) -> bool {
        let Some(index) = self.position(tool) else { return false };
        if let Some(unrestricted) = self.unrestricted_mut() {
            unrestricted.remove(tool);
        }
        let ToolsetState { entries, names, .. } = Arc::make_mut(&mut self.inner);
        entries.remove(index);
        *names = NameIndex::default();
        for index in 0..entries.len() {
            names.take(index, |entry| name_of(entries, entry));
        }
        true
    }

    /// Returns a toolset that has only the tools for which `is_offered` returns true. Its tools can
    /// still call the other tools that they are granted.
    #[must_use]
    pub fn restrict(&self, is_offered: impl Fn(&ToolDefinition) -> bool) -> Self {
        let mut state = ToolsetState {
            sink: self.inner.sink.clone(),
            unrestricted: Some(self.unrestricted().clone()),
            ..ToolsetState::default()
        };
        let ToolsetState { entries, names, .. } = &mut state;
        for entry in self.inner.entries.iter().filter(|entry| is_offered(&entry.definition)) {
            entries.push(entry.clone());
            names.take(entries.len() - 1, |entry| name_of(entries, entry));
        }
        Self { inner: Arc::new(state) }
    }

    /// Returns the toolset that this one was [restricted](Self::restrict) from, or this one.
    #[must_use]
    pub fn unrestricted(&self) -> &Self {
        self.inner.unrestricted.as_ref().unwrap_or(self)
    }

    fn unrestricted_mut(&mut self) -> Option<&mut Self> {
        // Clones the inner part only if there is something to change.
        self.inner.unrestricted.as_ref()?;
        Arc::make_mut(&mut self.inner).unrestricted.as_mut()
    }

    /// Counts the calls of a tool against its limits (`RES-23`). Returns whether the tool exists.
    pub fn count_usage(&mut self, tool: &str, usage: Arc<Usage>) -> bool {
        if let Some(unrestricted) = self.unrestricted_mut() {
            unrestricted.count_usage(tool, Arc::clone(&usage));
        }
        let index = self.position(tool);
        let ToolsetState { entries, .. } = Arc::make_mut(&mut self.inner);
        let entry = index.and_then(|index| entries.get_mut(index));
        entry.map(|entry| entry.usage = Some(usage)).is_some()
    }

    /// Reports all calls to `sink` from now on, and to no other.
    pub fn set_sink(&mut self, sink: Arc<dyn CallSink>) {
        if let Some(unrestricted) = self.unrestricted_mut() {
            unrestricted.set_sink(Arc::clone(&sink));
        }
        Arc::make_mut(&mut self.inner).sink = Some(sink);
    }

    /// Returns the sink that receives the calls, for a toolset that is built instead of this one.
    #[must_use]
    pub fn sink(&self) -> Option<&Arc<dyn CallSink>> {
        self.inner.sink.as_ref()
    }

    /// Returns the definitions in the order in which they were added.
    pub fn definitions(&self) -> impl ExactSizeIterator<Item = &Arc<ToolDefinition>> + Clone {
        self.inner.entries.iter().map(|entry| &entry.definition)
    }

    /// Returns the definitions in the order in which they were added, with the source of each.
    pub fn tools(
        &self,
    ) -> impl ExactSizeIterator<Item = (&Arc<ToolDefinition>, &Arc<dyn ToolSource>)> {
        self.inner.entries.iter().map(|entry| (&entry.definition, &entry.source))
    }

    /// Returns the index of a tool in the order of [`definitions`](Self::definitions).
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        let ToolsetState { entries, names, .. } = &*self.inner;
        names.find(name, |entry| name_of(entries, entry))
    }

    /// Looks up `name`, decodes `arguments` (JSON, `None` if absent) and runs the call to its end.
    ///
    /// # Errors
    /// [`RefusedCall`] if the tool does not exist, its arguments do not decode, or it has reached a
    /// limit. In these cases nothing has run.
    pub async fn call(
        &self,
        name: &str,
        arguments: Option<&[u8]>,
        context: &CallContext,
    ) -> Result<Completion, RefusedCall> {
        let ended = self.call_entry(name, arguments, context).await;
        ended.inspect_err(|refused| {
            log::refused(beginning(name), refused, context);
            if let Some(sink) = &self.inner.sink {
                sink.refused(name, refused, context);
            }
        })
    }

    async fn call_entry(
        &self,
        name: &str,
        arguments: Option<&[u8]>,
        context: &CallContext,
    ) -> Result<Completion, RefusedCall> {
        let entry = self.lookup(name)?;
        let started = Instant::now();
        let traced;
        let context = match &context.trace {
            Some(trace) => {
                traced = CallContext { trace: Some(trace.child()), ..context.clone() };
                &traced
            }
            None => context,
        };
        let arguments =
            entry.definition.input.decode(name, arguments, &DecodeOptions::default())?;
        let decode = started.elapsed();
        let dropped = arguments.dropped().to_vec();
        let inner = context.outer.as_ref().and(context.inner_calls.as_deref());
        let asked = InnerCall {
            call_id: &context.call_id,
            outer_call_id: context.outer.as_ref().map(|outer| outer.call_id.as_str()),
            tool: &entry.definition,
            source: &*entry.source,
        };
        let sink = self.inner.sink.as_deref();
        let observed = ObservedCall {
            context,
            tool: &entry.definition,
            source: &*entry.source,
            began: started + decode,
        };
        if let Some(Err(failure)) = inner.map(|inner| inner.admit(&asked)) {
            let guard = SinkGuard::begin(sink, observed, arguments.value());
            let outcome = Outcome::Failure(*failure);
            let mut completion = not_admitted(&entry.definition.name, context, outcome);
            guard.end(&mut completion);
            return Ok(completion);
        }
        if context.file_effects.is_dry_run && !entry.source.supports_dry_run(&entry.definition.name)
        {
            return Err(RefusedCall::NoDryRun { tool: entry.definition.name.clone() });
        }
        entry.start()?;
        let guard = SinkGuard::begin(sink, observed, arguments.value());
        let call =
            ToolCall { tool: &entry.definition, arguments, toolset: Some(self.unrestricted()) };
        let mut completion = match inner {
            Some(inner) => inner.invoke(call, &*entry.source, context).await,
            None => entry.source.invoke(call, context).await,
        };
        entry.end(&completion.outcome);
        completion.record.is_dry_run = context.file_effects.is_dry_run;
        // First the arguments that decoding dropped, then those that the source dropped.
        completion.record.dropped.splice(0..0, dropped);
        completion.record.phases.decode = decode;
        if let Some(inner) = inner {
            inner.ended(&asked, &completion.record);
        }
        guard.end(&mut completion);
        log::ended(entry.source.name(), name, &completion);
        Ok(completion)
    }

    /// Returns the definition of a tool.
    ///
    /// # Errors
    /// [`RefusedCall::UnknownTool`] with the most similar name.
    pub fn definition(&self, name: &str) -> Result<&Arc<ToolDefinition>, RefusedCall> {
        self.lookup(name).map(|entry| &entry.definition)
    }

    /// Returns whether the user has to approve each call of a tool that a model makes. An unknown
    /// tool needs no approval, because it does not run.
    #[must_use]
    pub fn needs_approval(&self, name: &str) -> bool {
        self.lookup(name).is_ok_and(|entry| entry.source.needs_approval(&entry.definition.name))
    }

    /// Returns the origin of a tool, or `None` if the tool is unknown.
    #[must_use]
    pub fn origin(&self, name: &str) -> Option<ToolOrigin> {
        self.lookup(name).ok().map(|entry| entry.source.origin(&entry.definition.name))
    }

    /// Returns whether the user has to approve a call with these arguments (JSON, `None` if
    /// absent). If the arguments do not decode, returns whether some call of the tool needs
    /// approval; the call itself is refused later.
    #[must_use]
    pub fn needs_approval_for(&self, name: &str, arguments: Option<&[u8]>) -> bool {
        if !self.needs_approval(name) {
            return false;
        }
        let Ok(entry) = self.lookup(name) else { return false };
        match entry.definition.input.decode(name, arguments, &DecodeOptions::default()) {
            Ok(arguments) => {
                entry.source.needs_approval_for(&entry.definition.name, arguments.value())
            }
            Err(_) => true,
        }
    }

    /// Returns the source of a tool.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&Arc<dyn ToolSource>> {
        self.lookup(name).ok().map(|entry| &entry.source)
    }

    /// Returns the sources in the order in which they were added, except those without tools.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<dyn ToolSource>> {
        let entries = &self.inner.entries;
        entries.iter().enumerate().filter_map(|(index, entry)| {
            let before = index.checked_sub(1).and_then(|before| entries.get(before));
            let is_first = before.is_none_or(|before| !Arc::ptr_eq(&before.source, &entry.source));
            is_first.then_some(&entry.source)
        })
    }

    fn lookup(&self, name: &str) -> Result<&ToolsetEntry, RefusedCall> {
        let entries = &self.inner.entries;
        self.position(name).and_then(|index| entries.get(index)).ok_or_else(|| {
            let names = entries.iter().map(|e| e.definition.name.as_str());
            let nearest = ToolName::nearest(name, names);
            RefusedCall::UnknownTool { name: quoted(name), nearest }
        })
    }
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.definitions().map(|tool| tool.name.as_str()).collect();
        f.debug_struct("Toolset").field("tools", &names).finish_non_exhaustive()
    }
}

impl ToolsetState {
    fn add(&mut self, source: &Arc<dyn ToolSource>, definitions: &[Arc<ToolDefinition>]) {
        let Self { entries, names, .. } = self;
        for definition in definitions {
            entries.push(ToolsetEntry {
                definition: Arc::clone(definition),
                source: Arc::clone(source),
                usage: None,
            });
            names.take(entries.len() - 1, |entry| name_of(entries, entry));
        }
    }
}

/// Returns the result of an inner call that was not admitted.
fn not_admitted(tool: &ToolName, context: &CallContext, outcome: Outcome) -> Completion {
    let mut record = CallRecord::default();
    record.call_id.clone_from(&context.call_id);
    record.session.clone_from(&context.session);
    record.tool = Some(tool.clone());
    record.is_denied = true;
    record.set_outcome(&outcome);
    Completion::new(outcome, record)
}

/// Returns the beginning of a name that a model or a client chose.
fn beginning(name: &str) -> &str {
    let end = name.char_indices().nth(UNKNOWN_NAME_CHARS_MAX).map(|(end, _)| end);
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}

/// Returns a name that a model or a client chose as one readable line of a message.
fn quoted(name: &str) -> String {
    let beginning = beginning(name);
    let mut line = String::new();
    for character in beginning.chars() {
        match character.is_control() {
            true => line.extend(character.escape_unicode()),
            false => line.push(character),
        }
    }
    if beginning.len() < name.len() {
        line.push('…');
    }
    line
}

fn name_of(entries: &[ToolsetEntry], entry: usize) -> &str {
    entries.get(entry).map_or("", |entry| entry.definition.name.as_str())
}

impl ToolsetEntry {
    fn start(&self) -> Result<(), RefusedCall> {
        let tool = || self.definition.name.clone();
        match self.usage.as_ref().map_or(Ok(()), |usage| usage.start()) {
            Ok(()) => Ok(()),
            Err(UsedUp::Invocations) => Err(RefusedCall::InvocationsUsedUp { tool: tool() }),
            Err(UsedUp::Failures) => Err(RefusedCall::FailuresUsedUp { tool: tool() }),
        }
    }

    fn end(&self, outcome: &Outcome) {
        if let Some(usage) = &self.usage
            && matches!(outcome, Outcome::Failure(_) | Outcome::Error(_))
        {
            usage.failed();
        }
    }
}

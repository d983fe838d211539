//! The tool `run_code`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use cofferdam_files::SharedStore;
use cofferdam_tool::cut::{shortened, size};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::invoke::ResumedProgram;
use cofferdam_tool::label::{StatedBy, StatedLabels};
use cofferdam_tool::{
    Annotations, CallContext, Completion, DecodeOptions, ErrorType, Outcome, Output, ToolCall,
    ToolDefinition, ToolError, ToolFailure, ToolName, ToolSource, Toolset,
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::approval::{CallApprover, CodeApproval, Decision, ProgramRules};
use crate::builtins::Builtins;
use crate::catalog::Catalog;

use crate::description;
use crate::ledger::record::{self, UnusableLedger};
use crate::ledger::{LedgerKey, SuspendedPrograms};
use crate::memory::{AppliedChanges, Memory, Owner, RunValues};
use crate::question;
use crate::run::{CodeRun, EarlierRun, MadeCall, NewRun, RunEnd};
use crate::types::Type;
use crate::{CodeError, Language, LedgerError, LedgerSeal};

/// Name of the tool.
pub const RUN_CODE: &str = "run_code";
/// Name of the source.
const SOURCE: &str = "code_mode";
/// Maximum bytes of a program.
const CODE_BYTES_MAX: usize = 256 * 1024;
/// Maximum bytes of a result that the model sees.
const RESULT_BYTES_MAX: usize = 20 * 1024;
/// Maximum bytes of printed lines that the model sees.
const LOGS_BYTES_MAX: usize = 4 * 1024;
/// Number of results of a tool that its observed type is made of.
const OBSERVED_MAX: usize = 32;

/// Settings of code mode.
#[derive(Default)]
pub struct CodeOptions {
    /// Language of the programs, which is that of the interpreter.
    pub language: Language,
    /// Programs that a user must approve before they run.
    pub approval: CodeApproval,
    /// Asks about calls of programs that need approval. Without it, the caller of the program is
    /// asked if its client can show a form.
    pub approver: Option<Arc<dyn CallApprover>>,
    /// Rules about calls of programs, unless the caller of a program has rules, as an agent does.
    /// Without any, a call needs approval if the source of its tool requires it.
    pub rules: Option<Arc<dyn ProgramRules>>,
    /// Seals ledgers of programs that a caller keeps until a user decides. Without it, no program
    /// is kept.
    pub seal: Option<Arc<dyn LedgerSeal>>,
    /// Types of results, by tool, for tools without an output schema: those that were observed
    /// before.
    pub observed: BTreeMap<String, Type>,
    /// Mode that this one replaces. If it has the same interpreter, its stored values, suspended
    /// programs and observed types remain.
    pub replaces: Option<Arc<CodeMode>>,
}

/// Source of one tool, `run_code`, which runs a program of the model. The program calls the tools
/// of a toolset.
///
/// Every call of a program is decoded, granted, limited, labelled and recorded like any other. The
/// file changes of a run are one transaction: they are made if the program succeeds.
pub struct CodeMode {
    definitions: Arc<[Arc<ToolDefinition>]>,
    interpreter: Arc<dyn ToolSource>,
    /// Tool of the interpreter that runs a program.
    interpret: Arc<ToolDefinition>,
    /// Tools that programs can call, with those functions that every program has.
    tools: Toolset,
    state: Arc<ModeState>,
    language: Language,
    approval: CodeApproval,
}

/// State that all runs of programs with the same tools share.
pub(crate) struct ModeState {
    pub(crate) catalog: Catalog,
    /// Tools that programs can call.
    callable: Toolset,
    /// Digests of these tools, once a ledger needs them.
    digests: OnceLock<Arc<BTreeMap<String, String>>>,
    pub(crate) policy: ApprovalPolicy,
    /// Whether the source of some tool requires approval.
    pub(crate) has_approvals: bool,
    builtins: Arc<dyn ToolSource>,
    pub(crate) past: Arc<PastRuns>,
}

/// Approvals of the calls that programs make.
#[derive(Clone)]
pub(crate) struct ApprovalPolicy {
    pub(crate) approver: Option<Arc<dyn CallApprover>>,
    pub(crate) rules: Option<Arc<dyn ProgramRules>>,
    pub(crate) seal: Option<Arc<dyn LedgerSeal>>,
}

/// Remains of earlier runs, which outlive a change of the tools.
#[derive(Default)]
pub(crate) struct PastRuns {
    pub(crate) memory: Memory,
    pub(crate) suspended: Arc<SuspendedPrograms>,
    observed: Mutex<BTreeMap<String, ObservedType>>,
    has_run: AtomicBool,
}

/// Type of the results of a tool that have been seen.
#[derive(Debug, Clone)]
struct ObservedType {
    ty: Type,
    count: usize,
}

impl ModeState {
    /// Returns whether a source is that of the functions that every program has.
    pub(crate) fn is_builtin(&self, source: &dyn ToolSource) -> bool {
        std::ptr::addr_eq(source, Arc::as_ptr(&self.builtins))
    }

    /// Returns the digests of the tools that programs can call.
    pub(crate) fn digests(&self) -> Arc<BTreeMap<String, String>> {
        Arc::clone(self.digests.get_or_init(|| Arc::new(record::digests(&self.callable))))
    }

    /// Returns the file stores that programs can change.
    pub(crate) fn stores(&self) -> Vec<SharedStore> {
        let stores = self.callable.sources().flat_map(|source| source.file_stores());
        stores.filter_map(|store| store.downcast_ref::<SharedStore>().cloned()).collect()
    }

    /// Adds a result to the observed type of a tool that declares none.
    pub(crate) fn observe(&self, tool: &ToolName, value: &Value) {
        if self.catalog.lacks_output(tool) {
            self.past.observe(tool, value);
        }
    }
}

impl PastRuns {
    /// Applies the changes of a successful run to the values of its session, and adds a note about
    /// them to what the model sees.
    fn remember(
        &self,
        owner: Owner,
        values: &RunValues,
        whole: Option<Value>,
        outcome: &mut Outcome,
    ) {
        let bytes = whole.as_ref().map(size).unwrap_or_default();
        let AppliedChanges { result, refusal } = self.memory.apply(owner, values, whole);
        let result = result.map(|name| {
            format!(
                "The result has {bytes} bytes and was shortened. The whole value is \
                 load(\"{name}\") in a later program: select what you need there."
            )
        });
        let refusal = refusal.map(|reason| {
            format!(
                "The values that the program stored and removed are unchanged, because other \
                 programs have stored values since it began: {reason}."
            )
        });
        let notes: Vec<_> = result.into_iter().chain(refusal).collect();
        if let (false, Outcome::Ok(Output::Value(Value::Object(shown)))) =
            (notes.is_empty(), outcome)
        {
            shown.insert("note".to_owned(), notes.join(" ").into());
        }
    }

    /// Returns the observed types of results.
    pub(crate) fn observed(&self) -> BTreeMap<String, Type> {
        let observed = self.observed.lock();
        observed.iter().map(|(tool, observed)| (tool.clone(), observed.ty.clone())).collect()
    }

    /// Adds a result to the observed type of a tool, unless enough have been seen.
    fn observe(&self, tool: &ToolName, value: &Value) {
        let mut all = self.observed.lock();
        match all.get_mut(tool.as_str()) {
            Some(known) if known.count >= OBSERVED_MAX => {}
            Some(known) => {
                known.count += 1;
                known.ty = known.ty.clone().joined(Type::observed([value]));
            }
            None => {
                let observed = ObservedType { ty: Type::observed([value]), count: 1 };
                all.insert(tool.to_string(), observed);
            }
        }
    }
}

impl CodeMode {
    /// Creates the tool from an interpreter, which offers one tool of the same name, and the tools
    /// that programs can call.
    ///
    /// # Errors
    /// [`CodeError`] if the interpreter is something else, or if a tool cannot be called from a
    /// program.
    pub fn new(
        interpreter: Arc<dyn ToolSource>,
        tools: &Toolset,
        options: CodeOptions,
    ) -> Result<Self, CodeError> {
        let CodeOptions { language, approval, approver, rules, seal, observed, replaces } = options;
        let policy = ApprovalPolicy { approver, rules, seal };
        let has_same_interpreter = |earlier: &Arc<Self>| {
            let origin = |of: &Arc<dyn ToolSource>| of.origin(&earlier.interpret.name);
            earlier.language == language && origin(&earlier.interpreter) == origin(&interpreter)
        };
        let past = match replaces.filter(has_same_interpreter) {
            Some(earlier) => Arc::clone(&earlier.state.past),
            None => {
                let once = |(tool, ty)| (tool, ObservedType { ty, count: 1 });
                let observed = Mutex::new(observed.into_iter().map(once).collect());
                Arc::new(PastRuns { observed, ..PastRuns::default() })
            }
        };
        Self::create(interpreter, tools, language, approval, policy, past)
    }

    /// Creates the tool for other tools. Stored values and suspended programs remain.
    ///
    /// # Errors
    /// [`CodeError`] if a tool cannot be called from a program.
    pub fn over(&self, tools: &Toolset) -> Result<Self, CodeError> {
        Self::create(
            Arc::clone(&self.interpreter),
            tools,
            self.language,
            self.approval,
            self.state.policy.clone(),
            Arc::clone(&self.state.past),
        )
    }

    fn create(
        interpreter: Arc<dyn ToolSource>,
        tools: &Toolset,
        language: Language,
        approval: CodeApproval,
        policy: ApprovalPolicy,
        past: Arc<PastRuns>,
    ) -> Result<Self, CodeError> {
        let found = interpreter.definitions();
        let interpret = found.iter().find(|tool| tool.name.as_str() == RUN_CODE).cloned();
        let interpret = interpret
            .ok_or_else(|| CodeError::NoInterpreter { name: interpreter.name().to_owned() })?;
        let catalog = Catalog::new(language, tools)?;
        let definition = definition(language, &catalog.description(&past.observed()))?;
        let builtins: Arc<dyn ToolSource> = Arc::new(Builtins::new()?);
        let has_approvals = tools.tools().any(|(tool, source)| source.needs_approval(&tool.name));
        let callable = tools.clone();
        let mut tools = tools.clone();
        tools.add(Arc::clone(&builtins))?;
        let digests = OnceLock::new();
        let state = ModeState { catalog, callable, digests, policy, has_approvals, builtins, past };
        Ok(Self {
            definitions: Arc::from([Arc::new(definition)]),
            interpreter,
            interpret,
            tools,
            state: Arc::new(state),
            language,
            approval,
        })
    }

    /// Returns the tools that programs can call.
    #[must_use]
    pub fn callable(&self) -> &Toolset {
        &self.state.callable
    }

    async fn run(&self, code: &str, context: &CallContext) -> Completion {
        let key = LedgerKey {
            owner: Owner::of(context),
            code: code.to_owned(),
            interpreter: self
                .interpreter
                .plugin_identity()
                .map(|plugin| plugin.digest.to_string())
                .unwrap_or_default(),
            tools: Arc::clone(self.state.catalog.json()),
        };
        let resumed = context.inner_calls.as_ref().filter(|_| context.outer.is_none());
        let earlier = match resumed.and_then(|checks| checks.resumed()) {
            Some(resumed) => match self.reopen(resumed, &key).await {
                Ok(earlier) => Some(earlier),
                Err(error) => return unusable(context, &error),
            },
            None => {
                let suspended = &self.state.past.suspended;
                let asker = context.asker.as_deref();
                let was_asked = asker.is_some_and(|asker| question::was_asked(code, asker));
                let ledger = match was_asked {
                    true => suspended.take_ended(&key).await,
                    false => suspended.take(&key),
                };
                if was_asked && ledger.is_none() {
                    // The client has answered a question of a run that cannot continue.
                    return unusable(context, &UnusableLedger::Forgotten);
                }
                ledger.map(|ledger| EarlierRun { ledger, decided: None })
            }
        };
        let owner = key.owner.clone();
        let in_progress = Arc::new(());
        let fresh = NewRun {
            seed: fresh_seed(),
            now: milliseconds_now(),
            in_progress: Arc::downgrade(&in_progress),
        };
        let run = Arc::new(CodeRun::new(Arc::clone(&self.state), context, key, earlier, fresh));
        let arguments = json!({
            "code": code,
            "catalog": **self.state.catalog.json(),
            "seed": run.seed.to_string(),
            "now": run.now,
        });
        let arguments = match serde_json::to_vec(&arguments) {
            Ok(text) => {
                self.interpret.input.decode(RUN_CODE, Some(&text), &DecodeOptions::default())
            }
            Err(error) => return unavailable(context, &error.to_string()),
        };
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(error) => return unavailable(context, &error.to_string()),
        };
        let call = ToolCall { tool: &self.interpret, arguments, toolset: Some(&self.tools) };
        let inner = Arc::clone(&run);
        let context = CallContext { inner_calls: Some(inner), ..context.clone() };
        let mut completion = tokio::select! {
            completion = self.interpreter.invoke(call, &context) => completion,
            message = run.stopped() => {
                Completion::ended(Outcome::Failure(ToolFailure::new(message)), &context)
            }
        };
        // A program that does not wait for a call can end although the run was to stop. No call is
        // running any more, so the answer is final.
        if let (Outcome::Ok(_), Some(message)) = (&completion.outcome, run.objection()) {
            completion.outcome = Outcome::Failure(ToolFailure::new(message));
        }
        let RunEnd { values, calls, count } = run.end(&completion.outcome);
        let (outcome, whole) = outcome(completion.outcome, &calls, count);
        completion.outcome = outcome;
        if matches!(completion.outcome, Outcome::Ok(_)) {
            match run.files().finish(context.file_effects).await {
                Ok(changes) => {
                    completion.record.set_files(changes);
                    self.state.past.remember(owner, &values, whole, &mut completion.outcome);
                }
                Err(error) => {
                    completion.record.set_files(error.committed.clone());
                    completion.outcome = Outcome::Error(error.into());
                }
            }
        }
        completion.record.set_outcome(&completion.outcome);
        completion
    }
}

impl CodeMode {
    /// Returns the state of a suspended program, if its ledger is valid and belongs to it.
    async fn reopen(
        &self,
        resumed: ResumedProgram,
        key: &LedgerKey,
    ) -> Result<EarlierRun, UnusableLedger> {
        let seal = self.state.policy.seal.as_ref().ok_or(LedgerError::Invalid)?;
        let json = seal.open(&resumed.ledger)?;
        let (tools, stores) = (self.state.digests(), self.state.stores());
        let (ledger, call) = record::read(&json, key, &tools, &stores).await?;
        let decision = match (resumed.is_approved, resumed.reason) {
            (true, _) => Decision::Approved,
            (false, reason) => {
                let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                Decision::Rejected(format!(
                    "the user did not approve the call to '{}'{reason}",
                    call.tool
                ))
            }
        };
        Ok(EarlierRun { ledger, decided: Some((call, decision)) })
    }
}

/// Returns the completion of a suspended program that cannot continue.
fn unusable(context: &CallContext, error: &UnusableLedger) -> Completion {
    tracing::warn!("a program that waited for an approval cannot continue: {error}");
    let failure = ToolFailure {
        suggestion: Some(
            "Check what the calls before the approval have changed. Then write a program that \
             makes only the calls that are missing."
                .to_owned(),
        ),
        ..ToolFailure::new(format!(
            "The program cannot continue after the approval: {error}. Nothing was called again, \
             and no file change was kept."
        ))
    };
    Completion::ended(Outcome::Failure(failure), context)
}

/// Returns the definition that models see.
fn definition(language: Language, tools: &str) -> Result<ToolDefinition, CodeError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "code": {"type": "string", "description": format!("{language} program.")},
            "language": {"enum": [language.name()]},
        },
        "required": ["code"],
        "additionalProperties": false,
    });
    // Declarations of tools have no room for the declarations of others.
    let declaration = Declaration::new(RUN_CODE, "Runs a program.", schema.to_string());
    Ok(ToolDefinition {
        title: Some("Run a program".to_owned()),
        description: description::of(language, tools),
        annotations: Annotations { long_running: Some(true), ..Annotations::default() },
        ..declaration.compile()?
    })
}

/// Returns the outcome of a run as the model sees it, and the whole result if that is shortened.
fn outcome(outcome: Outcome, calls: &[MadeCall], count: usize) -> (Outcome, Option<Value>) {
    let mut whole = None;
    let outcome = match outcome {
        Outcome::Ok(Output::Value(Value::Object(mut answer))) => {
            let result = answer.remove("result").unwrap_or_default();
            let logs = answer.remove("logs");
            let mut shown = Map::new();
            match shortened(&result, RESULT_BYTES_MAX) {
                None => {
                    shown.insert("result".to_owned(), result);
                }
                Some(cut) => {
                    whole = Some(result);
                    shown.insert("result".to_owned(), cut);
                }
            }
            if let Some(logs) = logs {
                shown.insert("logs".to_owned(), shortened(&logs, LOGS_BYTES_MAX).unwrap_or(logs));
            }
            Outcome::Ok(Output::Value(Value::Object(shown)))
        }
        Outcome::Ok(_) => Outcome::Error(
            ToolError::new(ErrorType::InvalidResult)
                .with_detail("the interpreter returned no object"),
        ),
        Outcome::Failure(failure) => Outcome::Failure(failed(failure, calls, count)),
        Outcome::Error(error) => Outcome::Error(advised(error)),
        other => other,
    };
    (outcome, whole)
}

/// Returns the failure of a program with what is known about the run.
fn failed(failure: ToolFailure, calls: &[MadeCall], count: usize) -> ToolFailure {
    let mut value = match failure.value.clone() {
        Some(Value::Object(mut value)) => {
            let error = value.remove("error");
            let mut shown = match error {
                Some(Value::Object(error)) => error,
                _ => Map::new(),
            };
            if let Some(logs) = value.remove("logs") {
                shown.insert("logs".to_owned(), shortened(&logs, LOGS_BYTES_MAX).unwrap_or(logs));
            }
            shown
        }
        _ => Map::new(),
    };
    value.insert("message".to_owned(), failure.message.clone().into());
    if count > 0 {
        value.insert("calls".to_owned(), serde_json::to_value(calls).unwrap_or_default());
        if count > calls.len() {
            value.insert("calls_left_out".to_owned(), (count - calls.len()).into());
        }
        value.insert("changes_kept".to_owned(), false.into());
    }
    ToolFailure { value: Some(Value::Object(value)), ..failure }
}

/// Adds advice for the model to an error of the sandbox.
fn advised(error: ToolError) -> ToolError {
    let limits = [
        (ErrorType::Timeout, "The program took too long. Do less in one program."),
        (
            ErrorType::CpuLimit,
            "The program computed for too long and was stopped: look for a loop that does not end, \
             or do less in one program.",
        ),
        (
            ErrorType::MemoryLimit,
            "The program used too much memory: hold less at once, for example in parts.",
        ),
        (ErrorType::OutputLimit, "The program returned too much: select what you need."),
        (ErrorType::TrapStackOverflow, "The program called itself too deeply: use a loop."),
    ];
    let advice = limits.into_iter().find(|(kind, _)| kind.name() == error.type_name());
    match advice {
        None => error,
        Some((kind, advice)) => error.with_error_value(|_| {
            json!({
                "type": kind.name(),
                "message": format!("{advice} No change was kept."),
            })
        }),
    }
}

fn unavailable(context: &CallContext, detail: &str) -> Completion {
    let error = ToolError::new(ErrorType::PluginUnavailable).with_detail(detail);
    Completion::ended(Outcome::Error(error), context)
}

fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0)
}

fn milliseconds_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

#[async_trait]
impl ToolSource for CodeMode {
    fn name(&self) -> &str {
        SOURCE
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn needs_approval(&self, _tool: &ToolName) -> bool {
        match self.approval {
            CodeApproval::Never => false,
            CodeApproval::First => !self.state.past.has_run.load(Ordering::Relaxed),
            CodeApproval::Always => true,
        }
    }

    fn supports_dry_run(&self, _tool: &ToolName) -> bool {
        true
    }

    /// A program does nothing by itself. Each of its calls is checked with the label of everything
    /// that the program has.
    fn labels(&self, _tool: &ToolName) -> StatedLabels {
        StatedLabels { accepts_untrusted: Some(true), ..StatedLabels::default() }
    }

    fn states_for(&self) -> StatedBy {
        StatedBy::Program
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        self.state.past.has_run.store(true, Ordering::Relaxed);
        let code = call.arguments.value().get("code").and_then(Value::as_str).unwrap_or_default();
        let completion = if code.len() > CODE_BYTES_MAX {
            let failure = ToolFailure::new(format!(
                "the program has {} bytes, and at most {CODE_BYTES_MAX} are accepted; read large \
                 data by a tool instead of writing it into the program",
                code.len()
            ));
            Completion::ended(Outcome::Failure(failure), context)
        } else {
            self.run(code, context).await
        };
        let mut completion = completion;
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }
}

#[cfg(test)]
mod tests;

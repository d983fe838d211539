//! Form of a ledger outside of the process: JSON, which the caller seals.
//!
//! A ledger holds digests of everything that the program depends on: its source, the interpreter
//! and each tool with the origin of its source. Numbers are kept as the text that they had, so that
//! arguments are compared exactly.

use std::collections::{BTreeMap, HashMap};

use cofferdam_files::{SharedStore, TransactionRecord};
use cofferdam_tool::cut::size;
use cofferdam_tool::label::Label;
use cofferdam_tool::output::parse_json;
use cofferdam_tool::recording::RecordedOutcome;
use cofferdam_tool::{CallContext, Completion, ToolName, Toolset};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::LedgerError;
use crate::ledger::{CompletedCall, Ledger, LedgerKey, PendingCall};
use crate::memory::{Owner, SessionValues, ValuesRecord};

/// Version of the format.
const VERSION: u32 = 1;
/// Maximum bytes of a ledger as JSON, without file changes if it stays in memory. A session with
/// two of them can still be read.
pub(crate) const LEDGER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum bytes of the files that a suspended program has written.
const FILES_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// Maximum number of changed tools that a message names.
const NAMED_MAX: usize = 3;

/// A ledger with everything that it belongs to.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LedgerRecord {
    version: u32,
    owner: Owner,
    /// Digest of the source of the program.
    source: String,
    /// Digest of the interpreter.
    interpreter: String,
    /// Digests of the tools that the program can call, by name.
    tools: BTreeMap<String, String>,
    seed: u64,
    now: u64,
    values: ValuesRecord,
    calls: Vec<CallForm>,
    pending: PendingForm,
    files: TransactionRecord,
}

/// A completed call.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct CallForm {
    number: u64,
    tool: String,
    /// Arguments as JSON text.
    arguments: String,
    outcome: RecordedOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<Label>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_denied: bool,
}

/// The call that waits for a decision.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct PendingForm {
    number: u64,
    tool: String,
    /// Arguments as JSON text.
    arguments: String,
}

/// Reason why a program cannot be suspended.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnkeepableLedger {
    #[error("its results and stored values have more than {LEDGER_BYTES_MAX} bytes")]
    TooLarge,
    #[error("its file changes cannot be kept: {0}")]
    Files(#[from] cofferdam_files::UnrecordedChanges),
    #[error("other waiting programs already use the available space")]
    NoSpace,
}

/// Reason why a program cannot continue.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnusableLedger {
    #[error(transparent)]
    Seal(#[from] LedgerError),
    #[error(
        "its ledger no longer exists: it waited for too long, the host was restarted, or the \
         program continued from it before, and calls after it may have been made"
    )]
    Forgotten,
    #[error("its ledger belongs to another session")]
    OtherSession,
    #[error("its ledger belongs to another program")]
    OtherProgram,
    #[error("the interpreter has changed since")]
    OtherInterpreter,
    #[error("tools have changed since: {0}")]
    OtherTools(String),
    #[error(transparent)]
    Files(#[from] cofferdam_files::UnrestoredChanges),
}

/// Remaining room of a ledger that is being written.
struct LeftBytes(usize);

impl LeftBytes {
    fn take(&mut self, bytes: usize) -> Result<(), UnkeepableLedger> {
        self.0 = self.0.checked_sub(bytes).ok_or(UnkeepableLedger::TooLarge)?;
        Ok(())
    }

    /// Returns the text of a value, after its size was checked.
    fn text(&mut self, value: &impl Serialize) -> Result<String, UnkeepableLedger> {
        self.take(size(value))?;
        serde_json::to_string(value).map_err(|_| UnkeepableLedger::TooLarge)
    }
}

/// Returns the bytes of a ledger that stays in memory: those of its values and calls as JSON.
///
/// # Errors
/// [`UnkeepableLedger::TooLarge`].
pub(crate) fn bytes(ledger: &Ledger) -> Result<u64, UnkeepableLedger> {
    let mut left = LeftBytes(LEDGER_BYTES_MAX);
    left.take(ledger.values.bytes())?;
    for call in ledger.calls.values() {
        left.take(size(&call.arguments))?;
        left.take(size(&RecordedOutcome::from(&call.completion.outcome)))?;
    }
    Ok((LEDGER_BYTES_MAX - left.0) as u64)
}

/// Returns the JSON form of a ledger. Sizes are checked before anything is copied.
///
/// # Errors
/// [`UnkeepableLedger`].
pub(crate) async fn write(
    key: &LedgerKey,
    tools: &BTreeMap<String, String>,
    ledger: &Ledger,
    pending: &PendingCall,
    stores: &[SharedStore],
) -> Result<Vec<u8>, UnkeepableLedger> {
    let mut left = LeftBytes(LEDGER_BYTES_MAX);
    let files = ledger.files.record(FILES_BYTES_MAX, stores).await?;
    left.take(size(&files))?;
    left.take(ledger.values.bytes())?;
    let mut numbers: Vec<_> = ledger.calls.keys().copied().collect();
    numbers.sort_unstable();
    let mut calls = Vec::with_capacity(numbers.len());
    for number in numbers {
        let Some(call) = ledger.calls.get(&number) else { continue };
        let arguments = left.text(&call.arguments)?;
        let outcome = RecordedOutcome::from(&call.completion.outcome);
        left.take(size(&outcome))?;
        calls.push(CallForm {
            number,
            tool: call.tool.to_string(),
            arguments,
            outcome,
            label: call.completion.record.label.clone(),
            is_denied: call.completion.record.is_denied,
        });
    }
    let record = LedgerRecord {
        version: VERSION,
        owner: key.owner.clone(),
        source: digest(key.code.as_bytes()),
        interpreter: key.interpreter.clone(),
        tools: tools.clone(),
        seed: ledger.seed,
        now: ledger.now,
        values: ledger.values.record(),
        calls,
        pending: PendingForm {
            number: pending.number,
            tool: pending.tool.to_string(),
            arguments: left.text(&pending.arguments)?,
        },
        files,
    };
    // Quotes inside of texts are escaped, so the whole can be larger than its parts.
    if size(&record) > LEDGER_BYTES_MAX {
        return Err(UnkeepableLedger::TooLarge);
    }
    serde_json::to_vec(&record).map_err(|_| UnkeepableLedger::TooLarge)
}

/// Returns a ledger and the call that waits. Nothing of the program has run then.
///
/// # Errors
/// [`UnusableLedger`] if the ledger is not that of this program, or something has changed.
pub(crate) async fn read(
    json: &[u8],
    key: &LedgerKey,
    tools: &BTreeMap<String, String>,
    stores: &[SharedStore],
) -> Result<(Ledger, PendingCall), UnusableLedger> {
    let record: LedgerRecord = serde_json::from_slice(json).map_err(|_| LedgerError::Invalid)?;
    if record.version != VERSION {
        return Err(LedgerError::Invalid.into());
    }
    if record.owner != key.owner {
        return Err(UnusableLedger::OtherSession);
    }
    if record.source != digest(key.code.as_bytes()) {
        return Err(UnusableLedger::OtherProgram);
    }
    if record.interpreter != key.interpreter {
        return Err(UnusableLedger::OtherInterpreter);
    }
    if record.tools != *tools {
        return Err(UnusableLedger::OtherTools(changed(&record.tools, tools)));
    }
    let calls: Option<HashMap<_, _>> = record.calls.into_iter().map(completed).collect();
    let calls = calls.ok_or(LedgerError::Invalid)?;
    let pending = pending(record.pending).ok_or(LedgerError::Invalid)?;
    let values = SessionValues::of_record(record.values).ok_or(LedgerError::Invalid)?;
    let ledger = Ledger { calls, ..Ledger::new((record.seed, record.now), values, None) };
    ledger.files.restore(record.files, stores).await?;
    Ok((ledger, pending))
}

fn completed(form: CallForm) -> Option<(u64, CompletedCall)> {
    let tool = ToolName::new(form.tool).ok()?;
    let outcome = form.outcome.into_outcome()?;
    let mut completion = Completion::ended(outcome, &CallContext::default());
    completion.record.tool = Some(tool.clone());
    completion.record.label = form.label;
    completion.record.is_denied = form.is_denied;
    Some((form.number, CompletedCall { tool, arguments: object(&form.arguments)?, completion }))
}

fn pending(form: PendingForm) -> Option<PendingCall> {
    let tool = ToolName::new(form.tool).ok()?;
    Some(PendingCall { number: form.number, tool, arguments: object(&form.arguments)? })
}

fn object(json: &str) -> Option<Map<String, Value>> {
    match parse_json(json) {
        Ok(Value::Object(arguments)) => Some(arguments),
        _ => None,
    }
}

/// Returns the names of tools that differ.
fn changed(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> String {
    let differs = |name: &&String| before.get(*name) != now.get(*name);
    let new = now.keys().filter(|name| !before.contains_key(*name));
    let names: Vec<_> = before.keys().chain(new).filter(differs).collect();
    let shown: Vec<_> = names.iter().take(NAMED_MAX).map(|name| format!("'{name}'")).collect();
    match names.len().checked_sub(NAMED_MAX) {
        None | Some(0) => shown.join(", "),
        Some(more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns the digests of the tools that programs can call: of their definitions, and of the
/// origins of their sources, which contain the digest of a plugin's component.
pub(crate) fn digests(tools: &Toolset) -> BTreeMap<String, String> {
    let described = tools.tools().map(|(tool, source)| {
        let output = tool.output.as_ref().map(|output| output.published());
        let parts = serde_json::json!([
            source.origin(&tool.name),
            tool.title,
            tool.description,
            tool.input.published(),
            output,
            tool.annotations,
        ]);
        (tool.name.to_string(), digest(parts.to_string().as_bytes()))
    });
    described.collect()
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests;

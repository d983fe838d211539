//! Model and tools of a conversation that runs again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_agent::{
    ChatClient, ChatError, ChatErrorKind, ChatRequest, FunctionResult, Reply, ReplyStream,
};
use cofferdam_record::{CallEntry, CallFilter, CallList, Log, LogDamage, UtcTime, redacted_text};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{
    CallContext, Completion, Content, Outcome, Output, ToolCall, ToolDefinition, ToolFailure,
    ToolSource,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::recorded::RecordedTurn;
use super::{ConversationDifference, ConversationReport};
use crate::Result;
use crate::error::Context as _;
use crate::replay::{ReplayDifference, ReplayPlugins, compare, run_to_end};

/// Name of the source of recorded results.
const SOURCE: &str = "recorded";
/// Schema of every tool: the arguments were checked when they were recorded.
const SCHEMA: &str = r#"{"type":"object","additionalProperties":true}"#;

/// Replay of the turns of a conversation, one after the other.
pub(super) struct TurnReplay {
    log: Log,
    /// Calls of the session, without those that other calls made.
    calls: Vec<CallEntry>,
    /// Damage of the segments that the calls were looked for in.
    damage: LogDamage,
    /// Plugin whose calls run, if not all do.
    plugin: Option<String>,
    plugins: tokio::sync::Mutex<ReplayPlugins>,
    progress: Arc<ReplayProgress>,
}

/// Progress of a replay, which the model and the tools of its turns share.
#[derive(Default)]
pub(super) struct ReplayProgress(Mutex<ProgressState>);

#[derive(Default)]
struct ProgressState {
    report: ConversationReport,
    turn: usize,
    /// Ids of the calls of the turn that are known to differ.
    different: BTreeSet<String>,
}

/// The recorded model of one turn.
pub(super) struct RecordedReplies {
    turn: Arc<RecordedTurn>,
    progress: Arc<ReplayProgress>,
    requests: RequestCount,
}

/// Number of requests to a model. Clones share it.
#[derive(Clone, Default)]
pub(super) struct RequestCount(Arc<AtomicUsize>);

/// The tools of one turn.
pub(super) struct RecordedResults {
    turn: Arc<RecordedTurn>,
    replay: Arc<TurnReplay>,
    definitions: Arc<[Arc<ToolDefinition>]>,
}

impl RequestCount {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl TurnReplay {
    pub(super) fn new(
        log: &Log,
        plugins: ReplayPlugins,
        plugin: Option<&str>,
        session: &str,
    ) -> Result<Self> {
        let filter = CallFilter { session: Some(session.to_owned()), ..CallFilter::default() };
        let CallList { mut calls, damage, .. } =
            log.query(&filter).context("the log cannot be read")?;
        calls.retain(|call| call.outer.is_none());
        Ok(Self {
            log: log.clone(),
            calls,
            damage,
            plugin: plugin.map(str::to_owned),
            plugins: tokio::sync::Mutex::new(plugins),
            progress: Arc::default(),
        })
    }

    pub(super) fn progress(&self) -> &Arc<ReplayProgress> {
        &self.progress
    }

    pub(super) fn damage(&self) -> &LogDamage {
        &self.damage
    }

    /// Returns the recorded call with an id that its caller gave, nearest to the reply that made
    /// it: a session that began anew may have used the id before.
    fn entry(&self, call_id: &str, at: UtcTime) -> Option<&CallEntry> {
        let calls = self.calls.iter().filter(|call| call.call == call_id);
        calls.min_by_key(|call| call.at.micros().abs_diff(at.micros()))
    }

    /// Returns whether a call is to run.
    fn runs(&self, call: &CallEntry) -> bool {
        call.recording.is_some()
            && self.plugin.as_ref().is_none_or(|plugin| call.plugin.as_ref() == Some(plugin))
    }
}

impl ReplayProgress {
    pub(super) fn begin(&self, turn: usize) {
        let mut progress = self.0.lock();
        progress.turn = turn;
        progress.different.clear();
    }

    pub(super) fn report(&self) -> ConversationReport {
        self.0.lock().report.clone()
    }

    /// Adds a difference, of a call or of the turn.
    pub(super) fn add(&self, call: Option<DifferentCall<'_>>, difference: ReplayDifference) {
        let mut progress = self.0.lock();
        let turn = progress.turn;
        progress.different.extend(call.map(|call| call.call_id.to_owned()));
        progress.report.differences.push(ConversationDifference {
            turn,
            call: call.map(|call| call.number),
            tool: call.map(|call| call.tool.to_owned()),
            id: call.and_then(|call| call.id.map(str::to_owned)),
            difference,
        });
    }
}

/// Call whose replay differs.
#[derive(Clone, Copy)]
pub(super) struct DifferentCall<'c> {
    call_id: &'c str,
    number: usize,
    tool: &'c str,
    /// Id in the log.
    id: Option<&'c str>,
}

impl RecordedReplies {
    pub(super) fn new(turn: Arc<RecordedTurn>, progress: Arc<ReplayProgress>) -> Self {
        Self { turn, progress, requests: RequestCount::default() }
    }

    pub(super) fn requests(&self) -> RequestCount {
        self.requests.clone()
    }

    /// Compares the results that a request has of the last calls with the recorded ones.
    fn compare(&self, number: usize, request: &ChatRequest) {
        let Some(step) = self.turn.steps.get(number) else { return };
        let results = request.messages.iter().flat_map(|message| message.results());
        for replayed in results {
            let Some(recorded) = step.results.get(&replayed.call_id) else { continue };
            let is_known = self.progress.0.lock().different.contains(&replayed.call_id);
            let text = redacted_text(&replayed.result);
            if !is_known && (text != recorded.result || replayed.is_error != recorded.is_error) {
                let call_id = replayed.call_id.as_str();
                let number = self.turn.position(call_id).map_or(0, |(number, _)| number);
                let tool = self.turn.calls().find(|call| call.call_id == call_id);
                let tool = tool.map_or("", |call| &call.name);
                let call = DifferentCall { call_id, number, tool, id: None };
                let difference = compare::shown_results(&recorded.result, &text);
                self.progress.add(Some(call), difference);
            }
        }
    }
}

#[async_trait]
impl ChatClient for RecordedReplies {
    fn model(&self) -> &str {
        SOURCE
    }

    async fn reply(&self, request: ChatRequest) -> std::result::Result<Reply, ChatError> {
        let number = self.requests.0.fetch_add(1, Ordering::Relaxed);
        self.compare(number, &request);
        match self.turn.steps.get(number) {
            Some(step) => Ok(Reply { messages: step.reply.clone(), ..Reply::default() }),
            None => Err(ChatError::new(ChatErrorKind::ScriptEnded, "the recorded turn ends here")),
        }
    }

    async fn stream(&self, request: ChatRequest) -> std::result::Result<ReplyStream, ChatError> {
        self.reply(request).await.map(ReplyStream::from)
    }
}

impl RecordedResults {
    pub(super) fn new(turn: Arc<RecordedTurn>, replay: Arc<TurnReplay>) -> Self {
        let names: BTreeSet<_> = turn.calls().map(|call| call.name.clone()).collect();
        // The loop itself answers calls of a name that no tool can have.
        let definitions = names
            .into_iter()
            .filter_map(|name| Declaration::new(name, "A recorded tool.", SCHEMA).compile().ok());
        let definitions = definitions.map(Arc::new).collect();
        Self { turn, replay, definitions }
    }

    /// Returns the outcome of a call. The future is boxed here because the compiler takes seconds
    /// to check it for `Send` under the lifetime bounds of `async_trait`.
    fn outcome<'a>(&'a self, tool: &'a str, call_id: &'a str) -> BoxFuture<'a, Outcome> {
        self.replayed_outcome(tool, call_id).boxed()
    }

    async fn replayed_outcome(&self, tool: &str, call_id: &str) -> Outcome {
        let recorded = self.turn.result(call_id);
        let (number, at) = self.turn.position(call_id).unwrap_or_default();
        let entry = self.replay.entry(call_id, at).filter(|call| self.replay.runs(call));
        if let Some(entry) = entry {
            let call = DifferentCall { call_id, number, tool, id: Some(&entry.id) };
            match self.run(entry, call).await {
                Ok(Some(outcome)) => return outcome,
                Ok(None) => return recorded_outcome(recorded),
                Err(reason) => {
                    self.replay.progress.0.lock().report.failed.push((entry.id.clone(), reason));
                }
            }
        }
        self.replay.progress.0.lock().report.calls_from_log += 1;
        recorded_outcome(recorded)
    }

    /// Runs a call again. Returns its outcome if it differs from the recorded one.
    ///
    /// # Errors
    /// The reason why the call cannot run, in words.
    async fn run(
        &self,
        entry: &CallEntry,
        call: DifferentCall<'_>,
    ) -> std::result::Result<Option<Outcome>, String> {
        let recording = self.replay.log.recording(entry).map_err(|error| error.to_string())?;
        let recording = Arc::new(recording.ok_or("the recording was pruned")?);
        let plugin = self.replay.plugins.lock().await.of(&recording).await;
        let plugin = plugin.map_err(|error| format!("{error:#}"))?;
        let ran = run_to_end(&plugin, &recording).await;
        let (report, completion) = ran.map_err(|error| error.to_string())?;
        let mut progress = self.replay.progress.0.lock();
        progress.report.calls += 1;
        progress.report.calls_in_other_components += usize::from(!report.is_same_component);
        progress.report.gaps.extend(report.gaps.iter().cloned());
        drop(progress);
        if report.is_identical() {
            return Ok(None);
        }
        for difference in report.differences {
            self.replay.progress.add(Some(call), difference);
        }
        Ok(Some(completion.outcome))
    }
}

#[async_trait]
impl ToolSource for RecordedResults {
    fn name(&self) -> &str {
        SOURCE
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let outcome = self.outcome(call.tool.name.as_str(), &context.call_id).await;
        Completion::ended(outcome, context)
    }
}

/// Returns the outcome that gives the model the recorded result.
fn recorded_outcome(recorded: Option<&FunctionResult>) -> Outcome {
    let Some(FunctionResult { result, items, is_error, .. }) = recorded else {
        // The recorded turn ends here, so that no model gets this.
        return Outcome::Failure(ToolFailure::bare("The result was not recorded."));
    };
    if *is_error {
        return Outcome::Failure(ToolFailure::bare(result));
    }
    if items.is_empty() {
        return Outcome::Ok(Output::Value(result.as_str().into()));
    }
    let blobs = items.iter().map(|item| Content::Blob {
        media_type: item.media_type.clone(),
        data: STANDARD.decode(&item.data).unwrap_or_default(),
    });
    Outcome::Ok(Output::Contents(
        [Content::Text(result.clone())].into_iter().chain(blobs).collect(),
    ))
}

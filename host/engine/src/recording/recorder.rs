//! Recorder of one call.

use std::collections::BTreeMap;
use std::sync::Arc;

use chacha20::ChaCha12Rng;
use chacha20::rand_core::{Rng as _, SeedableRng};
use cofferdam_files::StoreRecordings;
use cofferdam_tool::recording::{
    CallRecording, RECORDING_VERSION, Readings, RecordedAnswers, RecordedInnerAnswer,
    RecordedInnerCall, RecordedOutcome, RecordedRequest, RecordedTool,
};
use cofferdam_tool::{CallContext, Completion, ErrorType, Limits, Outcome};
use data_encoding::HEXLOWER;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};

use super::Playback;
use super::grants::recorded_plugin;
use super::http::RequestDraft;
use crate::host_api::PluginContext;

/// Maximum number of requests, inner calls and questions that are recorded, each.
const EVENTS_MAX: usize = 1024;
/// Gap of a recording without some inner calls.
const MANY_INNER_CALLS: &str = "the call made many calls of other tools";

/// Records the inputs of a call. In a replay it supplies them from an earlier recording.
#[derive(Default)]
pub(crate) struct CallRecorder {
    stores: Arc<StoreRecordings>,
    state: Mutex<RecorderState>,
    playback: Option<Playback>,
}

/// Inputs so far.
#[derive(Default)]
pub(super) struct RecorderState {
    seed: Option<[u8; 32]>,
    clocks: [Readings; 3],
    pub(super) requests: Vec<RequestDraft>,
    tools: Option<Vec<RecordedTool>>,
    inner_calls: Vec<RecordedInnerCall>,
    waits: Vec<Vec<u32>>,
    can_ask: BTreeMap<String, bool>,
    questions: Vec<RecordedAnswers>,
    gaps: Vec<String>,
}

/// Clock that a guest reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockKind {
    /// Date and time.
    Wall,
    /// Monotonic clock.
    Monotonic,
    /// Time until the deadline.
    TimeLeft,
}

/// Generators of a guest's random numbers, made of one seed.
pub(crate) struct RandomSources {
    pub(crate) secure: ChaCha12Rng,
    pub(crate) insecure: ChaCha12Rng,
    pub(crate) insecure_seed: u128,
}

/// A call that has ended, for its recording.
pub(crate) struct RecordedCall<'c> {
    pub(crate) plugin: &'c PluginContext,
    pub(crate) limits: &'c Limits,
    pub(crate) tool: &'c str,
    pub(crate) arguments: &'c Map<String, Value>,
    pub(crate) context: &'c CallContext,
    pub(crate) completion: &'c Completion,
    /// Digests of the files that the call has written.
    pub(crate) written: BTreeMap<String, String>,
}

impl CallRecorder {
    /// Creates the recorder of a replay.
    pub(crate) fn replaying(playback: Playback) -> Self {
        Self { playback: Some(playback), ..Self::default() }
    }

    /// Returns the recordings of the call's file stores.
    pub(crate) fn stores(&self) -> &Arc<StoreRecordings> {
        &self.stores
    }

    /// Returns the recording that a replay takes its inputs from.
    pub(crate) fn playback(&self) -> Option<&Playback> {
        self.playback.as_ref()
    }

    /// Records the value of a clock at the start of the call. A replay that reads a clock which the
    /// call did not read continues from there: how often the runtime of a language reads its clocks
    /// depends on when it collects garbage, and so on the sizes of the pieces of HTTP bodies.
    pub(crate) fn start_clock(&self, kind: ClockKind, value: u64) {
        if self.playback.is_none() {
            let mut state = self.state();
            state.clocks.get_mut(kind as usize).into_iter().for_each(|clock| clock.start(value));
        }
    }

    /// Records a reading of a clock. `live` reads the clock of the host; a replay does not use it.
    pub(crate) fn read_clock(&self, kind: ClockKind, live: impl FnOnce() -> u64) -> u64 {
        let played = self.playback.as_ref().map(|playback| playback.read_clock(kind));
        let value = played.unwrap_or_else(live);
        let mut state = self.state();
        let is_recorded = state.clocks.get_mut(kind as usize).is_some_and(|clock| clock.add(value));
        if !is_recorded {
            state.add_gap("the guest read a clock too often".to_owned());
        }
        value
    }

    /// Returns the generators of the guest's random numbers. The first call decides about the seed.
    pub(crate) fn random_sources(&self) -> RandomSources {
        let mut state = self.state();
        let played = || self.playback.as_ref().and_then(Playback::seed);
        let seed = *state.seed.get_or_insert_with(|| played().unwrap_or_else(new_seed));
        RandomSources::new(seed)
    }

    /// Records a reason why the call may end differently although it gets the same inputs.
    pub(crate) fn add_gap(&self, gap: impl Into<String>) {
        self.state().add_gap(gap.into());
    }

    /// Records the tools that the guest sees. In a replay they are those of the recording.
    pub(crate) fn list_tools(&self, live: impl FnOnce() -> Vec<RecordedTool>) -> Vec<RecordedTool> {
        let tools = self.playback.as_ref().map_or_else(live, Playback::tools);
        self.state().tools.get_or_insert_with(|| tools.clone());
        tools
    }

    /// Records a call of another tool.
    pub(crate) fn add_inner_call(
        &self,
        tool: String,
        arguments: String,
        answer: RecordedInnerAnswer,
    ) {
        let bytes = tool.len().saturating_add(arguments.len());
        let bytes = bytes.saturating_add(answer_bytes(&answer));
        let count = self.state().inner_calls.len();
        if self.reserve(count, bytes, MANY_INNER_CALLS) {
            let call = RecordedInnerCall { tool, arguments, answer, number: None };
            self.state().inner_calls.push(call);
        }
    }

    /// Records that the guest has started a call of another tool.
    pub(crate) fn add_started_call(&self, number: u32, tool: &str, arguments: &str) {
        let count = self.state().inner_calls.len();
        let bytes = tool.len().saturating_add(arguments.len());
        if self.reserve(count, bytes, MANY_INNER_CALLS) {
            self.state().inner_calls.push(RecordedInnerCall {
                tool: tool.to_owned(),
                arguments: arguments.to_owned(),
                answer: RecordedInnerAnswer::Unread,
                number: Some(number),
            });
        }
    }

    /// Records the answer to a started call.
    pub(crate) fn set_started_answer(&self, number: u32, answer: RecordedInnerAnswer) {
        if !self.reserve(0, answer_bytes(&answer), MANY_INNER_CALLS) {
            return;
        }
        let mut state = self.state();
        let mut calls = state.inner_calls.iter_mut();
        if let Some(call) = calls.find(|call| call.number == Some(number)) {
            call.answer = answer;
        }
    }

    /// Records that the guest has waited for started calls, and the answers that it received.
    pub(crate) fn add_wait(&self, answers: Vec<(u32, RecordedInnerAnswer)>) {
        let count = self.state().waits.len();
        if self.reserve(count, size_of_val(answers.as_slice()), MANY_INNER_CALLS) {
            let numbers = answers.iter().map(|(number, _)| *number).collect();
            self.state().waits.push(numbers);
        }
        for (number, answer) in answers {
            self.set_started_answer(number, answer);
        }
    }

    /// Records whether questions of this kind can be asked.
    pub(super) fn add_can_ask(&self, kind: &str, can_ask: bool) {
        self.state().can_ask.insert(kind.to_owned(), can_ask);
    }

    /// Records questions and their answers.
    pub(super) fn add_questions(&self, answers: RecordedAnswers) {
        let bytes = serde_json::to_vec(&answers).map_or(0, |json| json.len());
        let count = self.state().questions.len();
        if self.reserve(count, bytes, "the call asked many questions") {
            self.state().questions.push(answers);
        }
    }

    /// Reserves memory for one more of `count` events. Returns false, and records `gap`, if it is
    /// used up.
    pub(super) fn reserve(&self, count: usize, bytes: usize, gap: &str) -> bool {
        let has_room = count < EVENTS_MAX && self.stores.reserve(bytes);
        if !has_room {
            self.add_gap(gap);
        }
        has_room
    }

    pub(super) fn state(&self) -> MutexGuard<'_, RecorderState> {
        // A recording stays valid if another thread panicked while it held the lock.
        self.state.lock()
    }

    /// Returns the recording of a call that has ended. Secrets of the plugin are redacted in
    /// variables and configuration values. The log redacts the rest when it stores the recording.
    pub(crate) fn finish(&self, call: RecordedCall<'_>) -> CallRecording {
        let (stores, store_gap) = self.stores.take();
        let RecorderState {
            seed,
            clocks,
            requests,
            tools,
            inner_calls,
            waits,
            can_ask,
            questions,
            gaps,
            ..
        } = std::mem::take(&mut *self.state());
        let [wall_clock, monotonic_clock, time_left_ms] = clocks;
        let RecordedCall { plugin, limits, tool, arguments, context, completion, written } = call;
        let record = &completion.record;
        let mut recording = CallRecording {
            version: RECORDING_VERSION,
            plugin: recorded_plugin(plugin, limits),
            tool: tool.to_owned(),
            arguments: arguments.clone(),
            call_id: context.call_id.clone(),
            session: context.session.clone(),
            seed: seed.map(|seed| HEXLOWER.encode(&seed)),
            wall_clock,
            monotonic_clock,
            time_left_ms,
            stores,
            requests: requests.into_iter().map(RecordedRequest::from).collect(),
            tools,
            inner_calls,
            waits,
            can_ask,
            questions,
            gaps: gaps.into_iter().collect(),
            outcome: RecordedOutcome::from(&completion.outcome),
            changes: record.files.clone(),
            written,
            refused: record.refused.clone(),
            cpu_us: u64::try_from(record.cpu.as_micros()).unwrap_or(u64::MAX),
        };
        let ends = [store_gap, end_gap(&completion.outcome), inner_gap(completion)];
        ends.into_iter().flatten().for_each(|gap| recording.add_gap(gap));
        recording
    }
}

impl RecorderState {
    fn add_gap(&mut self, gap: String) {
        if self.gaps.len() < EVENTS_MAX && !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }
}

impl RandomSources {
    fn new(seed: [u8; 32]) -> Self {
        let mut insecure = ChaCha12Rng::from_seed(seed);
        insecure.set_stream(1);
        let mut seeds = ChaCha12Rng::from_seed(seed);
        seeds.set_stream(2);
        let insecure_seed = (u128::from(seeds.next_u64()) << 64) | u128::from(seeds.next_u64());
        Self { secure: ChaCha12Rng::from_seed(seed), insecure, insecure_seed }
    }
}

fn new_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    // Without random numbers of the system, nothing else of the host would have started.
    let _ = getrandom::fill(&mut seed);
    seed
}

fn answer_bytes(answer: &RecordedInnerAnswer) -> usize {
    serde_json::to_vec(answer).map_or(0, |json| json.len())
}

/// Returns the reason why a call with this outcome may end differently: its end did not depend on
/// the guest alone.
fn end_gap(outcome: &Outcome) -> Option<String> {
    let error = match outcome {
        Outcome::Cancelled => return Some("the caller gave up".to_owned()),
        Outcome::Error(error) => error.error_type()?,
        _ => return None,
    };
    let depends_on_the_host = matches!(
        error,
        ErrorType::Timeout
            | ErrorType::CpuLimit
            | ErrorType::MemoryLimit
            | ErrorType::Conflict
            | ErrorType::PluginUnavailable
    );
    depends_on_the_host.then(|| format!("the call ended with `{}`", error.name()))
}

/// Returns the gap of a call whose inner calls have changed files, which a replay does not repeat.
fn inner_gap(completion: &Completion) -> Option<String> {
    let has_changes = completion.record.inner.iter().any(|inner| !inner.files.is_empty());
    has_changes.then(|| "a call of another tool changed files".to_owned())
}

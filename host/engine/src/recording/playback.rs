//! Supplies the inputs of a call from a recording.

use std::sync::Arc;

use cofferdam_tool::record::Refusal;
use cofferdam_tool::recording::{
    CallRecording, Readings, RecordedAnswers, RecordedInnerAnswer, RecordedInnerCall,
    RecordedRequest, RecordedResponse, RecordedTool,
};
use cofferdam_tool::{Completion, Limits};
use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::recorder::ClockKind;
use crate::Grants;

/// Maximum number of inputs that are listed as missing.
const MISSING_MAX: usize = 64;
/// Step of a clock that is read more often than in the recording.
const STEP_NS: u64 = 1_000_000;

/// Result of a replay.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replay {
    /// Result of the call. Its record has a recording of the replay itself.
    pub completion: Completion,
    /// Inputs that the guest asked for and the recording does not contain, such as
    /// ``look up `/data/new.txt` ``.
    pub missing: Vec<String>,
}

/// Recording that a replay takes its inputs from.
pub(crate) struct Playback {
    recording: Arc<CallRecording>,
    state: Mutex<PlaybackState>,
    missing: Arc<MissingInputs>,
}

/// Response to a request in a replay.
pub(super) enum PlayedResponse {
    /// The recorded response.
    Response(Box<RecordedResponse>),
    /// The guest waited for a response in vain, and waits again.
    Never,
    /// The request was not recorded.
    Missing,
}

/// Inputs that a recording does not contain.
#[derive(Default)]
pub(crate) struct MissingInputs(Mutex<Vec<String>>);

#[derive(Default)]
struct PlaybackState {
    clocks: [Cursor; 3],
    /// True for requests that were answered.
    answered: Vec<bool>,
    inner_calls: usize,
    waits: usize,
    questions: usize,
}

/// Position in the readings of a clock.
#[derive(Default)]
struct Cursor {
    run: usize,
    times: u64,
    /// Last value that was read.
    last: Option<u64>,
}

impl MissingInputs {
    /// Adds an input. There are at most 64.
    pub(super) fn add(&self, input: String) {
        let mut inputs = self.0.lock();
        if inputs.len() < MISSING_MAX && !inputs.contains(&input) {
            inputs.push(input);
        }
    }

    /// Takes the inputs.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Cursor {
    /// Returns the next reading. After the last one, the clock advances by `step`.
    fn next(&mut self, readings: &Readings, step: u64) -> u64 {
        let value = match readings.runs().get(self.run) {
            Some((value, times)) => {
                self.times += 1;
                if self.times >= *times {
                    (self.run, self.times) = (self.run + 1, 0);
                }
                *value
            }
            None => self.last.unwrap_or(STEP_NS).saturating_add(step),
        };
        self.last = Some(value);
        value
    }
}

impl Playback {
    pub(crate) fn new(recording: Arc<CallRecording>) -> Self {
        let answered = vec![false; recording.requests.len()];
        let state = Mutex::new(PlaybackState { answered, ..PlaybackState::default() });
        Self { recording, state, missing: Arc::default() }
    }

    /// Returns the inputs that were asked for in vain.
    pub(crate) fn missing(&self) -> &Arc<MissingInputs> {
        &self.missing
    }

    /// Returns the grants of the recorded call, with stores that answer from the recording.
    pub(crate) fn grants(&self) -> Grants {
        let missing = Arc::clone(&self.missing);
        let report: Arc<dyn Fn(String) + Send + Sync> = Arc::new(move |input| missing.add(input));
        super::grants::played_grants(&self.recording, &report)
    }

    /// Returns the limits of the replay: those of the call, with more time, since this machine may
    /// be slower.
    pub(crate) fn limits(&self) -> Limits {
        let recorded = &self.recording.plugin.limits;
        Limits {
            wall_ms_max: recorded.wall_ms_max.saturating_mul(4),
            cpu_ms_max: recorded.cpu_ms_max.saturating_mul(4),
            ..recorded.clone()
        }
    }

    pub(super) fn read_clock(&self, kind: ClockKind) -> u64 {
        let (readings, step) = match kind {
            ClockKind::Wall => (&self.recording.wall_clock, STEP_NS),
            ClockKind::Monotonic => (&self.recording.monotonic_clock, STEP_NS),
            ClockKind::TimeLeft => (&self.recording.time_left_ms, 0),
        };
        if readings.is_empty() {
            self.missing.add("read a clock".to_owned());
        }
        let mut state = self.state.lock();
        state.clocks.get_mut(kind as usize).map_or(0, |cursor| cursor.next(readings, step))
    }

    pub(super) fn seed(&self) -> Option<[u8; 32]> {
        let seed = self.recording.seed.as_ref()?;
        HEXLOWER.decode(seed.as_bytes()).ok()?.try_into().ok()
    }

    pub(super) fn tools(&self) -> Vec<RecordedTool> {
        if self.recording.tools.is_none() {
            self.missing.add("list the other tools".to_owned());
        }
        self.recording.tools.clone().unwrap_or_default()
    }

    /// Returns the answer to the next call of another tool. It must be the same call as in the
    /// recording.
    pub(crate) fn inner_call(&self, tool: &str, arguments: &str) -> Option<RecordedInnerAnswer> {
        let call = self.next_inner_call(tool, arguments, |call| call.number.is_none())?;
        Some(call.answer.clone())
    }

    /// Returns the number in the recording and the answer of the next call that the guest starts.
    /// It must be the same call as in the recording.
    pub(crate) fn started_call(
        &self,
        tool: &str,
        arguments: &str,
    ) -> Option<(u32, RecordedInnerAnswer)> {
        let call = self.next_inner_call(tool, arguments, |call| call.number.is_some())?;
        Some((call.number?, call.answer.clone()))
    }

    fn next_inner_call(
        &self,
        tool: &str,
        arguments: &str,
        is_kind: impl Fn(&RecordedInnerCall) -> bool,
    ) -> Option<&RecordedInnerCall> {
        let mut state = self.state.lock();
        let next = self.recording.inner_calls.get(state.inner_calls..).unwrap_or_default();
        // A call that is not made any more does not hide those after it.
        let is_same = |call: &RecordedInnerCall| {
            is_kind(call) && call.tool == tool && is_same_json(&call.arguments, arguments)
        };
        match next.iter().position(is_same) {
            Some(skipped) => {
                state.inner_calls = state.inner_calls.saturating_add(skipped).saturating_add(1);
                next.get(skipped)
            }
            None => {
                self.missing.add(format!("call the tool `{}` with {}", cut(tool), cut(arguments)));
                None
            }
        }
    }

    /// Returns the numbers of the started calls whose ends the guest received the next time that it
    /// waited, or `None` after the last time.
    pub(crate) fn next_wait(&self) -> Option<Vec<u32>> {
        let mut state = self.state.lock();
        let numbers = self.recording.waits.get(state.waits).cloned();
        state.waits = state.waits.saturating_add(1);
        numbers
    }

    /// Reports that the guest waits for started calls more often than in the recording.
    pub(crate) fn add_missing_wait(&self) {
        self.missing.add("wait for a call of another tool".to_owned());
    }

    pub(super) fn can_ask(&self, kind: &str) -> bool {
        self.recording.can_ask.get(kind).copied().unwrap_or_else(|| {
            // Who asks without looking first was not seen to look.
            let is_kind = |answers: &RecordedAnswers| {
                answers.questions.iter().any(|(other, _)| other == kind)
            };
            self.recording.questions.iter().any(is_kind)
        })
    }

    /// Returns the answers to the next questions, which must be those of the recording.
    pub(super) fn answers(
        &self,
        questions: &[(String, Map<String, Value>)],
    ) -> Result<Vec<Value>, String> {
        let mut state = self.state.lock();
        match self.recording.questions.get(state.questions) {
            Some(recorded) if recorded.questions == questions => {
                state.questions = state.questions.saturating_add(1);
                recorded.answers.clone()
            }
            _ => {
                let kinds: Vec<_> = questions.iter().map(|(kind, _)| kind.as_str()).collect();
                self.missing.add(format!("ask the caller ({})", kinds.join(", ")));
                Err("the question was not recorded".to_owned())
            }
        }
    }

    /// Returns the response to the first request with this method and URL that was not answered
    /// yet.
    pub(super) fn response(&self, method: &str, url: &str) -> PlayedResponse {
        let mut state = self.state.lock();
        let mut requests = self.recording.requests.iter().zip(&mut state.answered);
        let is_same = |request: &RecordedRequest| request.method == method && request.url == url;
        let found = requests.find(|(request, is_answered)| !**is_answered && is_same(request));
        let Some((request, is_answered)) = found else {
            self.missing.add(format!("send {method} {url}"));
            return PlayedResponse::Missing;
        };
        *is_answered = true;
        match &request.response {
            Some(response) => PlayedResponse::Response(Box::new(response.clone())),
            None => PlayedResponse::Never,
        }
    }

    /// Returns the refusals of the recorded call that depend on what servers and the network did.
    pub(crate) fn network_refusals(&self) -> impl Iterator<Item = &Refusal> {
        let is_of_network = |refusal: &&Refusal| {
            ["limit:", "address:"].iter().any(|kind| refusal.capability.starts_with(kind))
        };
        self.recording.refused.iter().filter(is_of_network)
    }
}

fn is_same_json(left: &str, right: &str) -> bool {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    left == right || parse(left).is_some_and(|left| Some(left) == parse(right))
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(200)).unwrap_or_default()
}

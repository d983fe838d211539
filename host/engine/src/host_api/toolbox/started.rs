//! Inner calls that a guest starts and waits for later: `cofferdam:plugin/tool-calls`.
//!
//! At most [`RUNNING_MAX`] calls run at the same time. A call that has to wait begins, in the order
//! of the starts, when the guest starts another call or waits. The host holds a bounded number of
//! bytes for the guest: a guest that starts calls with long arguments gets errors of the kind
//! `limit`, and no further call begins while the guest leaves long results unread.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use cofferdam_tool::record::InnerRecords;
use cofferdam_tool::{CallRecord, DecodeOptions};
use tokio::task::{Id, JoinError, JoinSet};

use super::inner::{InnerCall, InnerEnd, InnerError};
use super::recorded;
use crate::guest::cofferdam::plugin::tool_calls::{EndedCall, Error, ErrorKind, Host};
use crate::guest::{Content, ResourceBody};
use crate::host_api::CallState;
use crate::recording::CallRecorder;

/// Maximum number of calls of one outer call that run at the same time.
const RUNNING_MAX: usize = 16;
/// Maximum number of calls that one outer call can start. Each of them may leave a result that the
/// guest does not read.
const STARTS_MAX: u32 = 256;
/// Maximum length of the arguments of all calls that wait, in bytes: those of 16 calls with the
/// longest arguments that a tool accepts.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Length of unread results in bytes from which on no further call begins.
const UNREAD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum number of errors about [`STARTS_MAX`] that one wait returns.
const EXCESS_RETURNED_MAX: u32 = 256;
/// Maximum time that the end of the outer call waits for its inner calls to stop. They stop at
/// once unless a function of the host's program blocks its thread.
const STOP_WAIT_MAX: Duration = Duration::from_secs(1);

/// Calls that a guest has started.
#[derive(Default)]
pub(super) struct StartedCalls {
    /// Number of calls that the guest has started, with those beyond [`STARTS_MAX`].
    started: u32,
    /// Number of calls beyond [`STARTS_MAX`] whose ends the guest has received.
    excess_returned: u32,
    waiting: VecDeque<(u32, InnerCall)>,
    waiting_bytes: usize,
    tasks: JoinSet<InnerEnd>,
    running: HashMap<Id, RunningCall>,
    /// Calls that have ended, in the order of their ends, until the guest receives them.
    ended: Vec<EndedCall>,
    ended_bytes: usize,
    /// Calls of a replay that the guest has not received, in the order of their starts.
    played: Vec<PlayedCall>,
}

struct RunningCall {
    number: u32,
    /// Record for the case that the call is stopped.
    stopped: CallRecord,
}

/// Started call of a replay.
struct PlayedCall {
    number: u32,
    /// Number of the call in the recording, or `None` if the recording does not contain it.
    recorded: Option<u32>,
    /// Outcome, or `None` if the recorded guest did not receive it.
    outcome: Option<Result<Vec<Content>, Error>>,
}

impl StartedCalls {
    /// Adds a call that ends without running.
    fn add_ended(&mut self, call: u32, error: InnerError) {
        self.ended.push(EndedCall { call, outcome: Err(error.into()) });
    }

    /// Adds a call that begins when there is room.
    fn add(&mut self, number: u32, call: InnerCall, records: &mut InnerRecords) {
        self.collect(records);
        let bytes = call.arguments_json.len();
        let options = DecodeOptions::default();
        // Decoded here only if the text is too long, because it would have to be stored otherwise.
        if bytes > options.text_bytes_max
            && let Ok(definition) = call.toolset.definition(&call.name)
            && let Err(error) =
                definition.input.decode(&call.name, Some(call.arguments_json.as_bytes()), &options)
        {
            return self.add_ended(number, InnerError::InvalidArguments(error.to_string()));
        }
        if self.waiting_bytes.saturating_add(bytes) > WAITING_BYTES_MAX {
            let message = format!(
                "the arguments of the calls that wait are longer than {WAITING_BYTES_MAX} bytes; \
                 wait for the calls that are running first"
            );
            return self.add_ended(number, InnerError::Limit(message));
        }
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        self.waiting.push_back((number, call));
        self.begin_waiting();
    }

    /// Begins as many calls as there is room for.
    fn begin_waiting(&mut self) {
        while self.running.len() < RUNNING_MAX
            && self.ended_bytes < UNREAD_BYTES_MAX
            && let Some((number, call)) = self.waiting.pop_front()
        {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(call.arguments_json.len());
            let (runtime, stopped) = (call.runtime.clone(), call.stopped_record());
            let id = self.tasks.spawn_on(call.run(), &runtime).id();
            self.running.insert(id, RunningCall { number, stopped });
        }
    }

    /// Takes the ends of calls that have ended, without waiting.
    fn collect(&mut self, records: &mut InnerRecords) {
        while let Some(joined) = self.tasks.try_join_next_with_id() {
            self.end(joined, records);
        }
    }

    fn end(&mut self, joined: Result<(Id, InnerEnd), JoinError>, records: &mut InnerRecords) {
        let (id, ended) = match joined {
            Ok((id, ended)) => (id, Some(ended)),
            Err(error) => (error.id(), None),
        };
        let Some(RunningCall { number, stopped }) = self.running.remove(&id) else { return };
        let InnerEnd { result, record } =
            ended.unwrap_or_else(|| InnerEnd::of_panic(Some(stopped)));
        records.extend(record);
        let ended = EndedCall { call: number, outcome: result.map_err(Error::from) };
        self.ended_bytes = self.ended_bytes.saturating_add(result_bytes(&ended));
        self.ended.push(ended);
    }

    /// Returns the calls that have ended since the last time. Waits for the first of them if
    /// `waits`, unless no call is left.
    async fn next_ended(&mut self, waits: bool, records: &mut InnerRecords) -> Vec<EndedCall> {
        loop {
            self.collect(records);
            self.begin_waiting();
            if !self.ended.is_empty() || !waits {
                break;
            }
            match self.tasks.join_next_with_id().await {
                Some(joined) => self.end(joined, records),
                None => break,
            }
        }
        self.ended_bytes = 0;
        let ended = std::mem::take(&mut self.ended);
        self.begin_waiting();
        ended
    }

    /// Returns whether the guest has started calls whose ends it has not received, except those
    /// beyond [`STARTS_MAX`].
    fn has_unread(&self) -> bool {
        let is_live = !self.waiting.is_empty() || !self.running.is_empty();
        is_live || !self.ended.is_empty() || !self.played.is_empty()
    }

    /// Returns the ends of calls beyond [`STARTS_MAX`].
    fn next_excess(&mut self) -> Vec<EndedCall> {
        let first = STARTS_MAX.saturating_add(self.excess_returned).saturating_add(1);
        let last = self.started.min(first.saturating_add(EXCESS_RETURNED_MAX - 1));
        let numbers = first..=last;
        self.excess_returned = self.excess_returned.max(last.saturating_sub(STARTS_MAX));
        let message =
            || format!("one call of a plugin can start at most {STARTS_MAX} calls of tools");
        let ended = |call| {
            let error = Error::from(InnerError::Limit(message()));
            EndedCall { call, outcome: Err(error) }
        };
        numbers.map(ended).collect()
    }

    /// Returns the next ends of a replay. Returns an empty list only if `may_be_empty` or if no
    /// call is left.
    fn next_played(&mut self, recorder: &CallRecorder, may_be_empty: bool) -> Vec<EndedCall> {
        // Calls that the recording does not contain have ended at once.
        let mut ended: Vec<_> = self.take_played(|call| call.recorded.is_none());
        while ended.is_empty() {
            let Some(batch) = recorder.playback().and_then(|playback| playback.next_wait()) else {
                break;
            };
            for number in batch {
                ended.extend(self.take_played(|call| call.recorded == Some(number)));
            }
            if may_be_empty {
                return ended;
            }
        }
        if ended.is_empty() && !may_be_empty && !self.played.is_empty() {
            if let Some(playback) = recorder.playback() {
                playback.add_missing_wait();
            }
            ended = self.take_played(|_| true);
        }
        ended
    }

    fn take_played(&mut self, is_taken: impl Fn(&PlayedCall) -> bool) -> Vec<EndedCall> {
        let taken = self.played.extract_if(.., |call| is_taken(call));
        let ended = |PlayedCall { number, outcome, .. }| {
            let missing = || Err(Error::from(InnerError::Cancelled));
            EndedCall { call: number, outcome: outcome.unwrap_or_else(missing) }
        };
        taken.map(ended).collect()
    }

    /// Stops all calls and adds their records. Those that did not begin have none.
    pub(super) async fn stop(mut self, records: &mut InnerRecords) {
        self.collect(records);
        self.waiting.clear();
        self.tasks.abort_all();
        let stopped = async {
            while let Some(joined) = self.tasks.join_next_with_id().await {
                // The records of stopped calls follow.
                if let Ok((id, ended)) = joined {
                    self.running.remove(&id);
                    records.extend(ended.record);
                }
            }
        };
        let _ = tokio::time::timeout(STOP_WAIT_MAX, stopped).await;
        let mut running: Vec<_> = self.running.into_values().collect();
        running.sort_by_key(|call| call.number);
        records.extend(running.into_iter().map(|call| call.stopped));
    }
}

impl Host for CallState {
    async fn start(&mut self, name: String, arguments_json: String) -> u32 {
        let started = self.toolbox.started.get_or_insert_default();
        started.started = started.started.saturating_add(1);
        let number = started.started;
        if number > STARTS_MAX {
            return number;
        }
        if let Some(recorder) = self.recorder.clone() {
            recorder.add_started_call(number, &name, &arguments_json);
            if recorder.playback().is_some() {
                self.start_played(&recorder, number, &name, &arguments_json);
                return number;
            }
        }
        let call = self.inner_call(name, arguments_json);
        let started = self.toolbox.started.get_or_insert_default();
        match call {
            Ok(call) => started.add(number, call, &mut self.toolbox.records),
            Err(error) => {
                started.add_ended(number, error);
                // Recorded although the guest may never receive it, because a replay refuses the
                // same tools.
                if let (Some(recorder), Some(ended)) = (&self.recorder, started.ended.last()) {
                    recorder.set_started_answer(number, recorded::outcome(&ended.outcome));
                }
            }
        }
        number
    }

    async fn wait_any(&mut self) -> Vec<EndedCall> {
        let recorder = self.recorder.clone();
        let Some(started) = &mut self.toolbox.started else { return Vec::new() };
        let mut returned = started.next_excess();
        if !started.has_unread() {
            return returned;
        }
        let waits = returned.is_empty();
        let ended = match recorder.as_ref().filter(|recorder| recorder.playback().is_some()) {
            Some(recorder) => started.next_played(recorder, !waits),
            None => started.next_ended(waits, &mut self.toolbox.records).await,
        };
        if let Some(recorder) = &recorder {
            let answers = ended.iter().map(|ended| (ended.call, recorded::outcome(&ended.outcome)));
            recorder.add_wait(answers.collect());
        }
        returned.extend(ended);
        returned
    }
}

impl CallState {
    /// Starts a call in a replay.
    fn start_played(
        &mut self,
        recorder: &CallRecorder,
        number: u32,
        name: &str,
        arguments_json: &str,
    ) {
        let played =
            recorder.playback().and_then(|playback| playback.started_call(name, arguments_json));
        let call = match played {
            Some((recorded, answer)) => PlayedCall {
                number,
                recorded: Some(recorded),
                outcome: recorded::to_guest_outcome(answer),
            },
            None => {
                let error = InnerError::unknown_tool(name, std::iter::empty());
                PlayedCall { number, recorded: None, outcome: Some(Err(Error::from(error))) }
            }
        };
        let kind = call.outcome.as_ref().and_then(|outcome| Some(outcome.as_ref().err()?.kind));
        if let Some(ErrorKind::UnknownTool | ErrorKind::Denied) = kind
            && let Ok(name) = cofferdam_tool::ToolName::new(name)
        {
            self.refuse_tool(name, None);
        }
        self.toolbox.started.get_or_insert_default().played.push(call);
    }
}

/// Returns the length of a result in bytes.
fn result_bytes(ended: &EndedCall) -> usize {
    let bytes = |content: &Content| match content {
        Content::Text(text) | Content::Json(text) => text.len(),
        Content::Blob(blob) => blob.data.len(),
        Content::Resource(resource) => match &resource.body {
            ResourceBody::Text(text) => text.len(),
            ResourceBody::Blob(data) => data.len(),
        },
        Content::Link(link) => link.uri.len(),
    };
    ended.outcome.as_ref().map_or(0, |contents| contents.iter().map(bytes).sum())
}

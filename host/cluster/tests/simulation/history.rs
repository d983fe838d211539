//! Events of a simulation, and the promises that they must keep.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::scenario::Faults;

/// Kind of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Declared read-only.
    Read,
    /// Without declared effects.
    Write,
}

/// A call that a gateway makes.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) gateway: u64,
    pub(crate) number: u64,
    pub(crate) tool: Tool,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) key: Option<Key>,
    /// True if the call may become a task, which other gateways continue.
    pub(crate) is_task: bool,
}

/// Idempotency key of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) number: u64,
    /// True if the arguments are not those of the other calls with the key.
    pub(crate) is_misused: bool,
}

impl Call {
    pub(crate) fn id(&self) -> String {
        format!("{}-{}", self.gateway, self.number)
    }
}

/// End of a call, as its caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// Result of a run.
    Ok { run: Option<u64> },
    /// The caller received the error that nothing was called.
    NotCalled,
    /// The outcome is unknown.
    Unknown,
    /// The key belongs to another call, so that nothing was called.
    Conflict,
    /// The deadline has passed.
    Cancelled,
    /// Anything else, which is always wrong here.
    Other(String),
}

/// Events in their order, and the calls that they belong to.
pub(crate) struct History {
    faults: Faults,
    calls: BTreeMap<String, Call>,
    starts: BTreeMap<String, Vec<u64>>,
    ends: BTreeMap<String, Vec<(u64, End)>>,
    killed_gateways: BTreeSet<u64>,
    gateways: u64,
    /// Calls that became tasks.
    tasks: BTreeSet<String>,
    /// Tasks that no worker had started then.
    waiting: BTreeSet<String>,
    /// Runs that have asked their question, once for each time.
    asked: BTreeMap<String, Vec<u64>>,
    /// Runs, and the runs that their answers are for.
    answered: BTreeMap<String, Vec<(u64, Option<u64>)>>,
    runs: u64,
    lines: Vec<String>,
    now: Box<dyn Fn() -> u64 + Send>,
}

impl History {
    pub(crate) fn new(faults: Faults, gateways: u64) -> Self {
        Self {
            faults,
            gateways,
            tasks: BTreeSet::new(),
            waiting: BTreeSet::new(),
            calls: BTreeMap::new(),
            starts: BTreeMap::new(),
            ends: BTreeMap::new(),
            killed_gateways: BTreeSet::new(),
            asked: BTreeMap::new(),
            answered: BTreeMap::new(),
            runs: 0,
            lines: Vec::new(),
            now: Box::new(|| 0),
        }
    }

    pub(crate) fn with_clock(mut self, now: impl Fn() -> u64 + Send + 'static) -> Self {
        self.now = Box::new(now);
        self
    }

    pub(crate) fn note(&mut self, line: impl fmt::Display) {
        self.lines.push(format!("{:>6} ms  {line}", (self.now)()));
    }

    pub(crate) fn called(&mut self, call: Call) {
        self.note(format_args!(
            "{} is called: {:?}, deadline {:?}, key {:?}",
            call.id(),
            call.tool,
            call.deadline_ms,
            call.key
        ));
        self.calls.insert(call.id(), call);
    }

    /// Returns the number of the run.
    pub(crate) fn started(&mut self, id: &str, worker: u64) -> u64 {
        self.runs += 1;
        let run = self.runs;
        self.note(format_args!("{id} starts on worker {worker} as run {run}"));
        self.starts.entry(id.to_owned()).or_default().push(run);
        run
    }

    /// Notes that the client of a call is asked.
    pub(crate) fn asked(&mut self, id: &str, run: u64) {
        self.note(format_args!("{id} asks for run {run}"));
        self.asked.entry(id.to_owned()).or_default().push(run);
    }

    pub(crate) fn answered(&mut self, id: &str, run: u64, answer: Option<u64>) {
        self.note(format_args!("run {run} of {id} has the answer for {answer:?}"));
        self.answered.entry(id.to_owned()).or_default().push((run, answer));
    }

    pub(crate) fn ended_as(&mut self, id: &str, end: End) {
        self.note(format_args!("{id} ends: {end:?}"));
        let now = (self.now)();
        self.ends.entry(id.to_owned()).or_default().push((now, end));
    }

    /// Notes that a call has become a task.
    pub(crate) fn shared(&mut self, id: &str) {
        self.note(format_args!("{id} is a task"));
        self.tasks.insert(id.to_owned());
        if self.starts_of(id).is_empty() {
            self.waiting.insert(id.to_owned());
        }
    }

    /// Returns the number of tasks whose first gateway was killed and that ended nevertheless.
    pub(crate) fn survivors(&self) -> usize {
        let of_killed = |id: &&String| self.killed_gateways.contains(&self.calls[*id].gateway);
        self.tasks.iter().filter(of_killed).filter(|id| self.ends.contains_key(*id)).count()
    }

    /// Returns the number of tasks that waited for a worker and were run.
    pub(crate) fn waited(&self) -> usize {
        self.waiting.iter().filter(|id| !self.starts_of(id).is_empty()).count()
    }

    /// Returns the number of tasks.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn gateway_killed(&mut self, gateway: u64) {
        self.killed_gateways.insert(gateway);
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.values()
    }

    /// Returns the number of calls that ended like this.
    pub(crate) fn ended(&self, end: &End) -> usize {
        self.ends.values().flatten().filter(|(_, other)| other == end).count()
    }

    /// Returns the number of calls that were started more than once.
    pub(crate) fn restarted(&self) -> usize {
        self.starts.values().filter(|runs| runs.len() > 1).count()
    }

    /// Returns the number of answers that runs have received.
    pub(crate) fn answers(&self) -> usize {
        self.answered.values().map(Vec::len).sum()
    }

    /// Returns the number of calls that ended with the result of another one.
    pub(crate) fn repeated(&self) -> usize {
        let is_repeated = |(id, ends): (&String, &Vec<(u64, End)>)| {
            let own = self.starts_of(id);
            let is_other = |run: &u64| !own.contains(run);
            ends.iter().any(|(_, end)| matches!(end, End::Ok { run: Some(run) } if is_other(run)))
        };
        self.ends.iter().filter(|ended| is_repeated(*ended)).count()
    }

    /// Returns the promises that are broken.
    pub(crate) fn violations(&self) -> Vec<String> {
        let of_calls = self.calls.iter().flat_map(|(id, call)| self.violations_of(id, call));
        of_calls.chain(self.violations_of_keys()).chain(self.violations_of_questions()).collect()
    }

    fn violations_of_questions(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (id, runs) in &self.asked {
            let mut seen = BTreeSet::new();
            for run in runs {
                if !self.starts_of(id).contains(run) {
                    broken
                        .push(format!("{id}: asked for run {run}, which is that of another call"));
                }
                // A gateway that takes a task over asks again.
                if !seen.insert(run) && !self.tasks.contains(id) {
                    broken.push(format!("{id}: run {run} has asked its client again"));
                }
            }
        }
        for (id, answers) in &self.answered {
            for (run, answer) in answers.iter().filter(|(run, answer)| *answer != Some(*run)) {
                broken.push(format!("{id}: run {run} has the answer for {answer:?}"));
            }
        }
        broken
    }

    fn starts_of(&self, id: &str) -> &[u64] {
        self.starts.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the calls that may have the result of this one.
    fn same<'h>(&'h self, call: &'h Call) -> impl Iterator<Item = &'h Call> {
        let is_same = |other: &&Call| {
            other.id() == call.id() || (call.key.is_some() && other.key == call.key)
        };
        self.calls.values().filter(is_same)
    }

    fn violations_of_keys(&self) -> Vec<String> {
        let mut results: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (id, call) in &self.calls {
            let Some(key) = call.key else { continue };
            for (_, end) in self.ends.get(id).into_iter().flatten() {
                if let End::Ok { run: Some(run) } = end {
                    results.entry(key.number).or_default().insert(*run);
                }
            }
        }
        let broken = results.into_iter().filter(|(_, runs)| runs.len() > 1);
        broken.map(|(key, runs)| format!("key {key}: the results of runs {runs:?}")).collect()
    }

    fn violations_of(&self, id: &str, call: &Call) -> Vec<String> {
        let mut broken = Vec::new();
        let starts = self.starts_of(id);
        let starts_max = match call.tool {
            Tool::Write if call.key.is_none() => 1,
            Tool::Write => 2,
            // Without a confirmation, with one, and after the worker was lost; messages may double.
            Tool::Read => 4,
        };
        let runs: Vec<u64> =
            self.same(call).flat_map(|other| self.starts_of(&other.id())).copied().collect();
        let is_misused = self.calls.values().any(|other| match (other.key, call.key) {
            (Some(other), Some(key)) => other.number == key.number && other != key,
            _ => false,
        });
        if starts.len() > starts_max {
            let count = starts.len();
            broken.push(format!("started {count} times, at most {starts_max} is allowed"));
        }
        let ends = self.ends.get(id).map(Vec::as_slice).unwrap_or_default();
        let may_have_no_end = match self.tasks.contains(id) {
            true => self.killed_gateways.len() as u64 == self.gateways,
            false => self.killed_gateways.contains(&call.gateway),
        };
        if ends.len() != 1 && !(may_have_no_end && ends.is_empty()) {
            broken.push(format!("{} ends, 1 is expected", ends.len()));
        }
        for (at_ms, end) in ends {
            let text = match end {
                End::Ok { run } if !run.is_some_and(|run| runs.contains(&run)) => {
                    "the result is that of another run"
                }
                End::Conflict if !is_misused => "a conflict without another call",
                // A doubled message of a read-only call can be declined and run.
                End::NotCalled if call.tool == Tool::Read && self.faults.doubled > 0 => continue,
                End::NotCalled | End::Conflict if !starts.is_empty() => {
                    "started, and the error says that nothing was called"
                }
                End::Cancelled if call.deadline_ms.is_none_or(|deadline| *at_ms < deadline) => {
                    "canceled before its deadline"
                }
                End::Unknown | End::NotCalled if self.faults.are_none() => "failed without a fault",
                End::Other(_) => "ended in a way that is not of the protocol",
                _ => continue,
            };
            broken.push(text.to_owned());
        }
        broken.into_iter().map(|text| format!("{id}: {text}")).collect()
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.faults)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

//! CPU time that recording and counting take per call: `cargo bench -p cofferdam-record`.
//!
//! Times are CPU times, so that other work on the machine changes them little. `WORK_NS` is the time
//! of a call itself; 16 threads call.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for developers")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_record::{CallMetrics, PayloadMode, RecordOptions, Recorder};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::sink::{CallSink, ObservedCall};
use cofferdam_tool::{
    CallContext, Completion, Functions, Outcome, Output, ToolDefinition, ToolSource,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

/// CPU time of a call without recording.
const WORK_NS: u64 = 9_000;
const THREADS: usize = 16;
const CALLS_PER_THREAD: u64 = 20_000;

/// A tool without a plugin, and a call of it.
struct Sample {
    source: Functions,
    tool: Arc<ToolDefinition>,
    context: CallContext,
    arguments: Map<String, Value>,
    completion: Completion,
}

impl Sample {
    fn new() -> Self {
        let schema = r#"{"type":"object","additionalProperties":true}"#;
        let source = Functions::new("samples")
            .with(Declaration::new("echo", "A tool.", schema), async |_, _| Ok(json!(1)))
            .unwrap();
        let tool = Arc::clone(source.definitions().first().unwrap());
        let context = CallContext {
            session: Some("a-session-of-a-chat".to_owned()),
            ..CallContext::new("call_0123456789")
        };
        let arguments = json!({"path": "notes/today.md", "lines": 20});
        let output = Outcome::Ok(Output::Value(json!({"text": "some text of the file"})));
        let completion = Completion::ended(output, &context);
        Self {
            source,
            tool,
            arguments: arguments.as_object().unwrap().clone(),
            context,
            completion,
        }
    }

    fn call(&self, sink: Option<&dyn CallSink>, work: u64) {
        let Some(sink) = sink else { return spin(work) };
        let call = ObservedCall {
            context: &self.context,
            tool: &self.tool,
            source: &self.source,
            began: Instant::now(),
        };
        let number = sink.begin(&call, &self.arguments);
        spin(work);
        sink.end(number, &call, &self.completion);
    }
}

fn spin(rounds: u64) {
    let mut state = 1_u64;
    for _ in 0..rounds {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn ns_per(time: Duration, calls: u64) -> f64 {
    time.as_secs_f64() * 1e9 / calls as f64
}

/// Returns the number of rounds that take `WORK_NS`.
fn calibrate() -> u64 {
    let start = cpu(ClockId::ThreadCPUTime);
    spin(10_000_000);
    let ns = ns_per(cpu(ClockId::ThreadCPUTime) - start, 10_000_000);
    (WORK_NS as f64 / ns) as u64
}

/// Runs all callers. Returns CPU time per call of the callers and of all threads, and calls per
/// second.
fn run(sample: &Sample, sink: Option<&dyn CallSink>, work: u64, after: impl FnOnce()) -> [f64; 3] {
    let (started, process) = (Instant::now(), cpu(ClockId::ProcessCPUTime));
    let callers: Duration = std::thread::scope(|scope| {
        let caller = || {
            let start = cpu(ClockId::ThreadCPUTime);
            (0..CALLS_PER_THREAD).for_each(|_| sample.call(sink, work));
            cpu(ClockId::ThreadCPUTime) - start
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(caller)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    after();
    let calls = CALLS_PER_THREAD * THREADS as u64;
    let all = cpu(ClockId::ProcessCPUTime) - process;
    let rate = calls as f64 / started.elapsed().as_secs_f64();
    [ns_per(callers, calls), ns_per(all, calls), rate]
}

fn main() {
    // `cargo test` builds and starts benches as well.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let (sample, work) = (Sample::new(), calibrate());

    let metrics = CallMetrics::new(None);
    let start = cpu(ClockId::ThreadCPUTime);
    (0..2_000_000).for_each(|_| sample.call(Some(&metrics), 0));
    let alone = ns_per(cpu(ClockId::ThreadCPUTime) - start, 2_000_000);
    let [callers, ..] = run(&sample, Some(&metrics), 0, || ());
    println!("metrics: {alone:.0} ns per call, {callers:.0} ns with {THREADS} threads");

    for mode in [PayloadMode::Digests, PayloadMode::None] {
        for _ in 0..3 {
            let [plain, _, plain_rate] = run(&sample, None, work, || ());
            let directory = tempfile::tempdir().unwrap();
            let mut options = RecordOptions::new(directory.path().join("log"));
            options.payloads = mode;
            let recorder = Recorder::open(options).unwrap();
            let [callers, all, rate] = run(&sample, Some(&recorder), work, || recorder.flush());
            println!(
                "recording, {mode:?}: caller {:.0} ns, writer {:.0} ns of CPU per call; \
                 {:.0} % of the calls per CPU second, {:.0} % per second ({rate:.0})",
                callers - plain,
                all - callers,
                100.0 * plain / all,
                100.0 * rate / plain_rate,
            );
        }
    }
}

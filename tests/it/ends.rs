//! Every way in which a call can end, caused by a real guest and seen as the model sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_engine::Mount;
use cofferdam_files::{FileStore, MemoryStore, Quota};
use cofferdam_tests::{Host, config};
use cofferdam_tool::record::MemoryRefusal;
use cofferdam_tool::{CallContext, Completion, FileAccess, Limits, MountName, Outcome};
use tokio_util::sync::CancellationToken;

/// Maximum delay of an end on a machine that also runs other tests; it only has to fail a guest
/// that is never stopped. `cofferdam-bench` measures the documented figure on an idle machine.
const LATE_MAX: Duration = Duration::from_secs(2);

async fn crash() -> Host {
    crash_within(Limits::default()).await
}

async fn crash_within(limits: Limits) -> Host {
    let mut host = Host::new();
    host.limits = limits;
    host.load("crash").await;
    host
}

/// Checks that a call ends in an error of that type and nothing else, and that the next call works.
async fn ends_as(tool: &str, arguments: &str, error_type: &str) -> Completion {
    ends_within_as(Limits::default(), tool, arguments, error_type).await
}

async fn ends_within_as(
    limits: Limits,
    tool: &str,
    arguments: &str,
    error_type: &str,
) -> Completion {
    let host = crash_within(limits).await;
    let completion = host.call(tool, arguments).await;
    assert_shown(&completion, error_type);
    let next = host.call("ok", "{}").await;
    assert_eq!(next.outcome.shown().unwrap().text(), "ok", "the next call works");
    completion
}

fn assert_shown(completion: &Completion, error_type: &str) {
    let shown = completion.outcome.shown().expect("an error is shown");
    let expected = format!(
        r#"{{"error":{{"message":"An unexpected error occurred ({error_type}). Please try again."}}}}"#
    );
    assert_eq!(shown.text(), expected, "{:?}", completion.record);
    assert!(shown.is_error);
    assert_eq!(completion.record.outcome, "error");
    assert_eq!(completion.record.error_type.as_deref(), Some(error_type));
}

#[tokio::test]
async fn a_panic_is_an_unreachable_and_its_message_stays_here() {
    let completion = ends_as("panic", r#"{"message":"secret"}"#, "Trap.Unreachable").await;
    assert!(
        completion.record.stderr_tail.contains("secret"),
        "{:?}",
        completion.record.stderr_tail
    );
    assert!(completion.record.backtrace.is_some());
}

#[tokio::test]
async fn an_abort_is_an_unreachable() {
    ends_as("abort", "{}", "Trap.Unreachable").await;
}

#[tokio::test]
async fn a_division_by_zero() {
    ends_as("divide_by_zero", "{}", "Trap.IntegerDivideByZero").await;
}

#[tokio::test]
async fn an_access_outside_memory() {
    ends_as("out_of_bounds", "{}", "Trap.MemoryOutOfBounds").await;
}

#[tokio::test]
async fn a_stack_overflow() {
    ends_as("stack_overflow", "{}", "Trap.StackOverflow").await;
}

#[tokio::test]
async fn an_exit_with_any_code() {
    ends_as("exit", r#"{"code":0}"#, "GuestExit").await;
    ends_as("exit", r#"{"code":3}"#, "GuestExit").await;
}

#[tokio::test]
async fn a_memory_bomb() {
    ends_as("allocate", r#"{"mebibytes":1000}"#, "MemoryLimit").await;
}

#[tokio::test]
async fn a_refused_growth_that_the_guest_handles_is_no_error() {
    let completion = crash().await.call("grow_handled", "{}").await;
    assert_eq!(completion.outcome.shown().unwrap().text(), "ok");
    assert_eq!(completion.record.outcome, "ok");
}

#[tokio::test]
async fn a_result_that_is_too_large() {
    ends_as("huge_output", r#"{"bytes":1048577}"#, "OutputLimit").await;
    ends_as("huge_output", r#"{"bytes":40000000}"#, "OutputLimit").await;
    let largest = crash().await.call("huge_output", r#"{"bytes":1048576}"#).await;
    assert_eq!(largest.record.outcome, "ok", "exactly the limit passes (RES-18)");
}

/// A result that is much too large is refused before it is copied, whatever the plugin may write:
/// the host never learns its length.
#[tokio::test]
async fn a_result_is_measured_before_it_is_copied() {
    let mut host = Host::new();
    let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
    host.grants.mounts =
        vec![Mount::new(MountName::new("data").unwrap(), store, FileAccess::ReadWrite)];
    host.load("crash").await;
    for (bytes, is_copied) in [(1_048_577, true), (4_000_000, false), (40_000_000, false)] {
        let completion = host.call("huge_output", &format!(r#"{{"bytes":{bytes}}}"#)).await;
        assert_shown(&completion, "OutputLimit");
        let Outcome::Error(error) = &completion.outcome else { panic!("{completion:?}") };
        let detail = error.detail.as_deref().unwrap_or_default();
        let knows_length = detail.contains(&format!("the result is {bytes} bytes long"));
        assert_eq!(knows_length, is_copied, "{detail}");
    }
}

/// A copy of an answer counts against the memory of the process.
#[tokio::test]
async fn a_large_answer_needs_memory_of_the_process() {
    let call = async |host: &Host| host.call("huge_output", r#"{"bytes":1048576}"#).await;
    let peak = call(&crash().await).await.record.memory_peak_bytes;
    let mut config = config();
    // One plugin may have seven eighths: enough for the guest and for half of its answer.
    config.budget.memory_bytes_max = (peak + 512 * 1024) * 8 / 7;
    let mut host = Host::with(config);
    host.load("crash").await;
    let completion = call(&host).await;
    assert_shown(&completion, "MemoryLimit");
    assert_eq!(completion.record.memory_refused_by, Some(MemoryRefusal::Process));
    let next = host.call("huge_output", r#"{"bytes":1000}"#).await;
    assert_eq!(next.record.outcome, "ok", "the memory of the first call came back");
}

async fn times_out(tool: &str, arguments: &str) {
    let limits = Limits { wall_ms_max: 300, ..Limits::default() };
    let started = Instant::now();
    let completion = ends_within_as(limits, tool, arguments, "Timeout").await;
    assert_eq!(completion.outcome.transient(), Some(true));
    assert!(started.elapsed() < Duration::from_millis(300) + LATE_MAX, "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_busy_loop_times_out() {
    times_out("spin", "{}").await;
}

#[tokio::test]
async fn a_busy_loop_uses_up_its_cpu_time() {
    let limits = Limits { cpu_ms_max: 50, ..Limits::default() };
    let completion = ends_within_as(limits, "spin", "{}", "CpuLimit").await;
    assert_eq!(
        completion.outcome.transient(),
        Some(false),
        "trying again would only burn as much again"
    );
    assert!(completion.record.cpu >= Duration::from_millis(50), "{:?}", completion.record.cpu);
    assert!(
        completion.record.cpu < Duration::from_millis(50) + LATE_MAX,
        "{:?}",
        completion.record.cpu
    );
}

#[tokio::test]
async fn waiting_uses_no_cpu_time() {
    let host = crash_within(Limits { cpu_ms_max: 100, ..Limits::default() }).await;
    let completion = host.call("sleep", r#"{"ms":300}"#).await;
    assert_eq!(completion.record.outcome, "ok", "{:?}", completion.record);
    assert!(completion.record.cpu < Duration::from_millis(100), "{:?}", completion.record.cpu);
    assert!(completion.record.phases.run >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_long_sleep_in_the_host_times_out() {
    times_out("sleep", r#"{"ms":600000}"#).await;
}

#[tokio::test]
async fn standard_input_is_closed_and_blocks_no_reader() {
    let completion = crash().await.call("read_stdin", "{}").await;
    assert_eq!(completion.record.outcome, "ok", "{:?}", completion.record);
}

#[tokio::test]
async fn a_reported_failure_is_shown_and_is_no_trap() {
    let completion = crash().await.call("fail", "{}").await;
    let shown = completion.outcome.shown().unwrap();
    assert!(shown.is_error);
    assert!(shown.text().starts_with(r#"{"error":{"message":""#), "{}", shown.text());
    assert_eq!(completion.record.outcome, "failure");
    assert_eq!(completion.record.error_type, None);
}

#[tokio::test]
async fn json_that_is_none_or_too_deep_is_an_invalid_result() {
    for guest in ["bad_json", "deep_json"] {
        let mut host = Host::new();
        host.load(guest).await;
        assert_shown(&host.call(guest, "{}").await, "InvalidResult");
    }
}

#[tokio::test]
async fn a_capability_that_is_withheld_is_refused_and_recorded() {
    let mut host = Host::new();
    host.load("connects").await;
    let completion = host.call("connects", "{}").await;
    assert_eq!(
        completion.outcome.shown().unwrap().text(),
        "ok",
        "the guest sees an error and goes on (RES-10)"
    );
    let [refused] = &completion.record.refused[..] else {
        panic!("{:?}", completion.record.refused)
    };
    assert!(refused.capability.starts_with("wasi:sockets/"), "{refused:?}");
    assert_eq!(refused.times, 1);
}

async fn is_cancelled(context: CallContext) {
    let host = crash().await;
    let started = Instant::now();
    let completion = host.try_call("sleep", r#"{"ms":600000}"#, &context).await.unwrap();
    assert!(matches!(completion.outcome, Outcome::Cancelled), "{:?}", completion.outcome);
    assert_eq!(completion.outcome.shown(), None, "nothing is shown (RES-12)");
    assert_eq!(completion.record.outcome, "cancelled");
    assert!(started.elapsed() < LATE_MAX);
}

#[tokio::test]
async fn cancellation_before_and_during_a_call() {
    let token = CancellationToken::new();
    token.cancel();
    is_cancelled(CallContext { cancellation: token, ..CallContext::new("before") }).await;

    let token = CancellationToken::new();
    let later = token.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        later.cancel();
    });
    is_cancelled(CallContext { cancellation: token, ..CallContext::new("during") }).await;
}

#[tokio::test]
async fn the_callers_deadline_is_cancellation_and_not_a_timeout() {
    let deadline = tokio::time::Instant::now() + Duration::from_millis(100);
    is_cancelled(CallContext { deadline: Some(deadline), ..CallContext::new("deadline") }).await;
}

#[tokio::test]
async fn a_busy_loop_can_be_cancelled() {
    let host = crash().await;
    let deadline = tokio::time::Instant::now() + Duration::from_millis(50);
    let context = CallContext { deadline: Some(deadline), ..CallContext::new("busy") };
    let completion = host.try_call("spin", "{}", &context).await.unwrap();
    assert!(matches!(completion.outcome, Outcome::Cancelled), "{:?}", completion.outcome);
}

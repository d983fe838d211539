//! Tests that measure their process and therefore need one of their own: each starts this test
//! binary again for itself.

use std::process::Command;

use cofferdam_tool::permission::HttpRule;

use super::*;
use crate::network::server::Server;

/// Variable that is set in the process of a single test.
const ALONE: &str = "COFFERDAM_TEST_ALONE";

/// Rounds of calls in a row after which as many files and threads are open as before.
const ROUNDS_SAME: u32 = 5;
/// Maximum number of rounds.
const ROUNDS_MAX: u32 = 30;

/// Runs `test` in a process of its own. `name` is the full name of the calling test.
fn alone(name: &str, test: impl Fn()) {
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let this = std::env::current_exe().unwrap();
    let run =
        Command::new(this).args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    println!("{said}");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("1 passed"), "no test is called {name}: {said}");
}

/// Returns a number of `/proc/self/status`.
fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}

/// Raises the limit on open files to its maximum.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

async fn a_thousand_sleep() {
    let host = host(pool_of(PoolSize::default().concurrent_calls_max), Limits::default()).await;
    let mut calls = JoinSet::new();
    let started = Instant::now();
    for _ in 0..1000 {
        // One plugin may have seven eighths of the permits; the other calls wait for a second.
        spawn(&mut calls, &host, "sleep", r#"{"ms":1000}"#, &CallContext::new("waits"));
    }
    while let Some(completion) = calls.join_next().await {
        let record = completion.unwrap().record;
        assert_eq!(record.outcome, "ok", "{record:?}");
    }
    let mebibytes = status("VmHWM") >> 10;
    println!("1000 calls that sleep for 1 s: {:?}, {mebibytes} MiB at most", started.elapsed());
    assert!(mebibytes < 1024);
}

#[cfg(target_os = "linux")]
#[test]
fn a_thousand_calls_that_wait_fit_into_a_process() {
    alone("scheduling::alone::a_thousand_calls_that_wait_fit_into_a_process", || {
        for runtime in runtimes() {
            runtime.block_on(a_thousand_sleep());
        }
    });
}

async fn a_thousand_wait_for_a_server() {
    let server = Server::start().await;
    let mut host = Host::with(pool_of(PoolSize::default().concurrent_calls_max));
    host.grants.http = vec![server.url("/").parse::<HttpRule>().unwrap().into()];
    host.load("http").await;
    let (host, arguments) =
        (Arc::new(host), serde_json::json!({ "url": server.url("/slow/3000") }).to_string());
    let mut calls = JoinSet::new();
    let started = Instant::now();
    for _ in 0..1000 {
        let (host, arguments) = (Arc::clone(&host), arguments.clone());
        calls.spawn(async move { host.call("http", &arguments).await });
    }
    while let Some(completion) = calls.join_next().await {
        let completion = completion.unwrap();
        let answer = completion.outcome.shown().unwrap().text();
        assert!(answer.ends_with("late"), "{answer} {:?}", completion.record);
    }
    let (mebibytes, at_once) = (status("VmHWM") >> 10, server.open_most());
    println!(
        "1000 calls that wait 3 s for a server, {at_once} at one time: {:?}, {mebibytes} MiB at \
         most",
        started.elapsed()
    );
    assert!(mebibytes < 1024);
    assert!(at_once > 500, "{at_once}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_thousand_calls_that_wait_for_a_slow_server_fit_into_a_process() {
    alone(
        "scheduling::alone::a_thousand_calls_that_wait_for_a_slow_server_fit_into_a_process",
        || {
            // Both ends of every connection are in this process.
            raise_open_files();
            for runtime in runtimes() {
                runtime.block_on(a_thousand_wait_for_a_server());
            }
        },
    );
}

#[cfg(target_os = "linux")]
#[test]
fn an_engine_starts_fast_and_small_however_many_slots_it_has() {
    alone("scheduling::alone::an_engine_starts_fast_and_small_however_many_slots_it_has", || {
        for slots in [64, 256, 1024] {
            let (before, started) = (status("VmRSS"), Instant::now());
            let engine = cofferdam_engine::Engine::new(pool_of(slots)).unwrap();
            let (took, grown) = (started.elapsed(), status("VmRSS").saturating_sub(before));
            println!(
                "{slots} slots: {took:?}, {grown} KiB, {} GiB of addresses",
                status("VmSize") >> 20
            );
            assert!(took < Duration::from_secs(5) && grown < 64 << 10);
            drop(engine);
        }
    });
}

async fn threads_and_files_return() {
    // One plugin may have seven eighths of the permits, so no call waits here.
    let host = host(pool_of(64), Limits { wall_ms_max: 100, ..Limits::default() }).await;
    let round = async || {
        let mut calls = JoinSet::new();
        for number in 0..32 {
            let tool = if number % 2 == 0 { "spin" } else { "sleep" };
            spawn(&mut calls, &host, tool, "{}", &CallContext::new("runaway"));
        }
        while let Some(completion) = calls.join_next().await {
            let record = completion.unwrap().record;
            assert_eq!(record.error_type.as_deref(), Some("Timeout"), "{record:?}");
        }
        (open_files(), status("Threads"))
    };
    // Resources started on first use stay: for example the pool of a core that calls for the first
    // time in a later round. Anything that calls leave behind would change every round.
    let (mut last, mut same) = (round().await, 0);
    for _ in 0..ROUNDS_MAX {
        let again = round().await;
        same = if again == last { same + 1 } else { 0 };
        last = again;
        if same == ROUNDS_SAME {
            break;
        }
    }
    assert_eq!(same, ROUNDS_SAME, "files and threads change in every round: {last:?} at last");
    println!("{} files and {} threads before and after 160 runaway calls", last.0, last.1);
}

#[cfg(target_os = "linux")]
#[test]
fn files_and_threads_return_to_their_number() {
    alone("scheduling::alone::files_and_threads_return_to_their_number", || {
        for runtime in runtimes() {
            runtime.block_on(threads_and_files_return());
        }
    });
}

/// Returns the median duration of a trivial call.
async fn median(host: &Host) -> Duration {
    let mut times = Vec::new();
    for _ in 0..200 {
        times.push(trivial(host).await);
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap()
}

async fn a_busy_neighbour() {
    let host = host(pool_of(16), Limits::default()).await;
    median(&host).await;
    let quiet = median(&host).await;
    let (mut busy, token) = (JoinSet::new(), CancellationToken::new());
    for _ in 0..cores() + 2 {
        spawn(&mut busy, &host, "spin", "{}", &cancelled_by(&token));
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let noisy = median(&host).await;
    token.cancel();
    let ratio = noisy.as_secs_f64() / quiet.as_secs_f64();
    println!(
        "a trivial call: {quiet:?} alone, {noisy:?} with a busy plugin on every core, ratio \
         {ratio:.2}"
    );
    assert!(ratio < 20.0);
}

#[test]
fn a_busy_plugin_on_every_core_does_not_hold_up_another() {
    alone("scheduling::alone::a_busy_plugin_on_every_core_does_not_hold_up_another", || {
        for runtime in runtimes() {
            runtime.block_on(a_busy_neighbour());
        }
    });
}

async fn memory_returns() {
    let host = host(pool_of(64), Limits::default()).await;
    let storm = async |calls: usize| {
        let mut running = JoinSet::new();
        for _ in 0..calls {
            let context = CallContext::new("storm");
            spawn(&mut running, &host, "allocate", r#"{"mebibytes":4}"#, &context);
        }
        while let Some(completion) = running.join_next().await {
            assert_eq!(completion.unwrap().record.outcome, "ok");
        }
    };
    storm(2).await;
    let before = status("VmRSS");
    storm(48).await;
    let (after, ended) = (status("VmRSS"), Instant::now());
    // 48 small pools of pages take more memory than may stay.
    let most = before + (16 << 10);
    while status("VmRSS") > most && ended.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (now, waited) = (status("VmRSS"), ended.elapsed());
    println!("{before} KiB before, {after} KiB after 48 calls, {now} KiB {waited:?} later");
    assert!(now <= most, "{before} {after} {now}");
    // Calls work with the memory that was released.
    storm(8).await;
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_a_storm_of_calls_has_used_comes_back() {
    alone("scheduling::alone::memory_that_a_storm_of_calls_has_used_comes_back", || {
        let [_, many_threads] = runtimes();
        many_threads.block_on(memory_returns());
    });
}

async fn a_result_is_not_copied() {
    let host = host(pool_of(8), Limits::default()).await;
    let result = async |bytes: u64| {
        host.call("huge_output", &serde_json::json!({ "bytes": bytes }).to_string()).await.record
    };
    assert_eq!(result(1000).await.outcome, "ok");
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    let record = result(40_000_000).await;
    assert_eq!(record.error_type.as_deref(), Some("OutputLimit"), "{record:?}");
    let (grown, guest) = (status("VmHWM").saturating_sub(before), record.memory_peak_bytes >> 10);
    println!("{grown} KiB more at the peak, {guest} KiB of them the guest's");
    assert!(grown < guest + (8 << 10), "{grown} {guest}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_beyond_its_limit_is_refused_before_it_is_copied() {
    alone("scheduling::alone::a_result_beyond_its_limit_is_refused_before_it_is_copied", || {
        let [one_thread, _] = runtimes();
        one_thread.block_on(a_result_is_not_copied());
    });
}

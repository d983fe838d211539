//! Cost of recording: time on the caller's thread, bytes on disk, and the time of queries.
//!
//! `cargo run --release -p cofferdam-record --example cost [CALLS]`

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "an example"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_record::{CallFilter, Log, PayloadMode, RecordOptions, Recorder};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{CallContext, Functions, Toolset};
use serde_json::json;

fn toolset() -> Toolset {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;
    let double = Declaration::new("double", "Twice a number.", schema);
    let functions = Functions::new("math")
        .with(double, async |arguments, _| Ok(json!(2 * arguments.value()["a"].as_i64().unwrap())))
        .unwrap();
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

fn wait() {
    // The time that a call of a plugin takes, without its heap and its cache misses.
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(9) {
        std::hint::spin_loop();
    }
}

async fn measure(
    toolset: &Toolset,
    calls: usize,
    has_pause: bool,
) -> (Duration, Duration, Duration) {
    let mut times = Vec::with_capacity(calls);
    let started = Instant::now();
    for index in 0..calls {
        let context = CallContext {
            session: Some("session-1".to_owned()),
            ..CallContext::new(format!("call_{index}"))
        };
        let arguments = format!(r#"{{"a":{index}}}"#);
        if has_pause {
            wait();
        }
        let start = Instant::now();
        toolset.call("double", Some(arguments.as_bytes()), &context).await.unwrap();
        times.push(start.elapsed());
    }
    let total = started.elapsed();
    times.sort_unstable();
    (times[calls / 2], times[calls * 99 / 100], total)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let calls: usize = std::env::args().nth(1).map_or(200_000, |text| text.parse().unwrap());
    let plain = toolset();
    let temporary = tempfile::tempdir().unwrap();
    for payloads in [PayloadMode::None, PayloadMode::Digests] {
        let directory = temporary.path().join(format!("{payloads:?}"));
        let options = RecordOptions { payloads, ..RecordOptions::new(&directory) };
        let recorder = Arc::new(Recorder::open(options).unwrap());
        let mut recorded = plain.clone();
        recorded.set_sink(Arc::clone(&recorder) as Arc<dyn CallSink>);
        for has_pause in [true, false] {
            for _ in 0..3 {
                let (base, base_high, _) = measure(&plain, 50_000, has_pause).await;
                let (with, with_high, _) = measure(&recorded, 50_000, has_pause).await;
                println!(
                    "{payloads:?}, pause {has_pause}: p50 {base:?} -> {with:?}, p99 {base_high:?} -> {with_high:?}"
                );
                recorder.flush();
            }
        }
        println!("{:?}", recorder.health());
    }
    let directory = temporary.path().join("queries");
    let options = RecordOptions::new(&directory);
    let recorder = Arc::new(Recorder::open(options).unwrap());
    let mut recorded = plain.clone();
    recorded.set_sink(Arc::clone(&recorder) as Arc<dyn CallSink>);
    let (_, _, total) = measure(&recorded, calls, false).await;
    let start = Instant::now();
    recorder.close();
    println!("{calls} calls in {total:?}, closed after {:?} more", start.elapsed());
    let bytes: u64 = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    println!("{} bytes on disk for each call", bytes / calls as u64);
    let log = Log::open(&directory).unwrap();
    let all = CallFilter::default();
    for (name, filter) in [
        ("newest 50", CallFilter { limit: Some(50), ..all.clone() }),
        (
            "tool, 50",
            CallFilter { tool: Some("double".to_owned()), limit: Some(50), ..all.clone() },
        ),
        (
            "error, 50",
            CallFilter { outcome: Some("error".to_owned()), limit: Some(50), ..all.clone() },
        ),
        (
            "slow, 50",
            CallFilter {
                slower_than: Some(Duration::from_micros(1)),
                limit: Some(50),
                ..all.clone()
            },
        ),
        (
            "text, 50",
            CallFilter { text: Some("call_77777".to_owned()), limit: Some(50), ..all.clone() },
        ),
        ("text of none", CallFilter { text: Some("nowhere".to_owned()), ..all.clone() }),
        ("lost", CallFilter { outcome: Some("lost".to_owned()), ..all.clone() }),
    ] {
        let start = Instant::now();
        let found = log.query(&filter).unwrap().calls.len();
        println!("{name}: {found} in {:?}", start.elapsed());
    }
    let start = Instant::now();
    let (stats, _) = log.stats(&all).unwrap();
    println!("stats: {stats:?} in {:?}", start.elapsed());
    let start = Instant::now();
    let report = cofferdam_record::verify(&directory, &[], None).unwrap();
    println!(
        "verify: {} lines, intact {} in {:?}",
        report.lines,
        report.is_intact(),
        start.elapsed()
    );
}

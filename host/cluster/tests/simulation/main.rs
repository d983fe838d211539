//! Simulation of gateways and workers on a bus that loses, delays and doubles messages, with nodes
//! that pause, die and lose their connections.
//!
//! A seed decides everything: the faults, the calls and the order of events. Time is that of a
//! paused clock in one thread, and no code under test uses random numbers, so a seed gives the same
//! history each time; a test checks this. What is not simulated: parallel threads, and the bus
//! itself, which the tests with real servers cover.
//!
//! `COFFERDAM_SIMULATION_SEEDS=FROM..TO` selects other seeds.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, in which a panic is the message"
)]

mod cluster;
mod connection;
mod history;
mod inner;
mod network;
mod results;
mod scale;
mod scenario;
mod task;
mod waiting;

use std::ops::Range;

use history::{Call, End, History, Key, Tool};
use scenario::{Faults, run};

const SEEDS: &str = "COFFERDAM_SIMULATION_SEEDS";

/// Number of seeds that a run of all tests has time for.
const SEEDS_BY_DEFAULT: u64 = 96;

fn seeds() -> Range<u64> {
    let Ok(typed) = std::env::var(SEEDS) else { return 0..SEEDS_BY_DEFAULT };
    let range =
        typed.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("expected {SEEDS}=FROM..TO, found `{typed}`"))
}

#[test]
fn each_history_keeps_the_promises() {
    let (mut calls, mut unknown, mut restarted) = (0, 0, 0);
    let (mut repeated, mut conflicts, mut answers) = (0, 0, 0);
    let (mut tasks, mut waited, mut survivors) = (0, 0, 0);
    for seed in seeds() {
        let history = run(seed);
        let violations = history.violations();
        assert!(
            violations.is_empty(),
            "seed {seed} breaks a promise:\n{}\n\n{history}\n\nto run it again:\n\
             {SEEDS}={seed}..{} cargo test -p cofferdam-cluster --test simulation",
            violations.join("\n"),
            seed + 1
        );
        calls += history.calls().count();
        unknown += history.ended(&End::Unknown);
        restarted += history.restarted();
        repeated += history.repeated();
        conflicts += history.ended(&End::Conflict);
        answers += history.answers();
        tasks += history.tasks();
        waited += history.waited();
        survivors += history.survivors();
    }
    if seeds() == (0..SEEDS_BY_DEFAULT) {
        // Otherwise the faults are too rare to test anything.
        assert!(calls > 2000 && unknown > 20 && restarted > 10, "{calls} {unknown} {restarted}");
        assert!(
            repeated > 100 && conflicts > 20 && answers > 200,
            "{repeated} {conflicts} {answers}"
        );
        assert!(tasks > 200 && waited > 50 && survivors > 5, "{tasks} {waited} {survivors}");
    }
    println!(
        "{calls} calls, {unknown} with an unknown outcome, {restarted} started again, {repeated} \
         with a stored result, {conflicts} conflicts, {answers} answers, {tasks} tasks, of which \
         {waited} waited for a worker and {survivors} survived their gateway"
    );
}

#[test]
fn a_seed_gives_the_same_history_each_time() {
    for seed in 0..6 {
        assert_eq!(run(seed).to_string(), run(seed).to_string(), "seed {seed}");
    }
}

#[test]
fn the_checker_finds_what_is_broken() {
    let mut history = History::new(Faults::of(3), 2);
    let call = |number, tool| Call {
        gateway: 0,
        number,
        tool,
        deadline_ms: None,
        key: None,
        is_task: false,
    };
    for (number, tool) in [(1, Tool::Write), (2, Tool::Read), (3, Tool::Write), (4, Tool::Write)] {
        history.called(call(number, tool));
    }
    let first = history.started("0-1", 0);
    history.started("0-1", 1);
    history.ended_as("0-1", End::Ok { run: Some(first) });
    history.ended_as("0-2", End::Ok { run: Some(7) });
    history.started("0-3", 0);
    history.ended_as("0-3", End::NotCalled);
    let key = Some(Key { number: 9, is_misused: false });
    for number in 5..8 {
        history.called(Call { key, ..call(number, Tool::Write) });
        let run = history.started(&format!("0-{number}"), 0);
        history.ended_as(&format!("0-{number}"), End::Ok { run: Some(run.min(5)) });
    }
    history.called(Call { key, ..call(8, Tool::Write) });
    history.ended_as("0-8", End::Conflict);
    for (id, run) in [("0-1", first), ("0-1", first), ("0-3", first)] {
        history.asked(id, run);
    }
    history.answered("0-1", first, Some(2));
    assert_eq!(
        history.violations(),
        [
            "0-1: started 2 times, at most 1 is allowed",
            "0-2: the result is that of another run",
            "0-3: started, and the error says that nothing was called",
            "0-4: 0 ends, 1 is expected",
            "0-8: a conflict without another call",
            "key 9: the results of runs {4, 5}",
            "0-1: run 1 has asked its client again",
            "0-3: asked for run 1, which is that of another call",
            "0-1: run 1 has the answer for Some(2)",
        ]
    );
}

//! Guests that look for traces of an earlier call.

use super::arena::named;
use super::{Arena, End, Ended, Launch, attacks};

attacks! {
    /// A counter in memory survives.
    a_counter_in_memory: Launch::Steps(|arena| Box::pin(async move {
        for _ in 0..20 {
            assert_says(arena.call("remember", "remember", "{}").await, "1");
        }
        Ended::AsExpected
    })) => End::AsExpected,
    /// New memory holds data of another call.
    pages_of_another_call: Launch::Steps(|arena| Box::pin(finds_nothing(arena, "leave_traces", 20)))
        => End::AsExpected,
    /// New memory holds data of a call that was stopped.
    pages_of_a_call_that_timed_out: Launch::Steps(|arena| Box::pin(async move {
        arena.host.limits.wall_ms_max = 100;
        finds_nothing(arena, "print_for_ever", 5).await
    })) => End::AsExpected,
    /// Handles of an earlier call still exist under the same numbers.
    handles_of_another_call: Launch::Steps(|arena| Box::pin(async move {
        for _ in 0..5 {
            arena.call("hostile", "attack", &named("hoard_pollables")).await;
        }
        // The first handle of this call works as usual.
        assert_says(arena.call("hostile", "attack", &named("read_what_never_comes")).await, "Err(\"closed\")");
        Ended::AsExpected
    })) => End::AsExpected,
    /// The log of an earlier call is in the record of the next one.
    the_log_of_another_call: Launch::Steps(|arena| Box::pin(async move {
        arena.call("floods", "floods", "{}").await;
        let Ended::Called(next) = arena.call("remember", "remember", "{}").await else { panic!("it loads") };
        assert_eq!((next.record.stdout_tail.as_str(), next.record.stderr_tail.as_str()), ("", ""));
        Ended::AsExpected
    })) => End::AsExpected,
    /// A pool of one instance: each call reuses the memory of the last one.
    the_only_slot_of_a_pool: Launch::Steps(|_| Box::pin(async move {
        let mut config = cofferdam_tests::config();
        config.cache_directory = Some(cofferdam_tests::shared_cache());
        config.pool.concurrent_calls_max = 1;
        let mut arena = Arena::with(cofferdam_tests::Host::with(config)).await;
        finds_nothing(&mut arena, "leave_traces", 10).await
    })) => End::AsExpected,
}

/// Calls one tool and then another one that looks for traces, `times` times.
async fn finds_nothing(arena: &mut Arena, first: &str, times: usize) -> Ended {
    for _ in 0..times {
        arena.call("hostile", "attack", &named(first)).await;
        let wall = std::mem::replace(&mut arena.host.limits.wall_ms_max, 30_000);
        assert_says(arena.call("hostile", "attack", &named("find_traces")).await, "0");
        arena.host.limits.wall_ms_max = wall;
    }
    Ended::AsExpected
}

fn assert_says(ended: Ended, expected: &str) {
    let Ended::Called(completion) = ended else { panic!("the guest loads") };
    let shown = completion.outcome.shown().expect("the call ends");
    assert_eq!(shown.text(), expected, "{:?}", completion.record.detail);
}

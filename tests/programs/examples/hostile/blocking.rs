//! Waits for events that never come.

use cofferdam_test_programs::Content;
use wasip2::clocks::monotonic_clock::{subscribe_duration, subscribe_instant};
use wasip2::io::poll::poll;

const YEAR_NS: u64 = 365 * 24 * 3600 * 1_000_000_000;

pub fn attack(name: &str) -> Option<Vec<Content>> {
    match name {
        "sleep_for_a_year" => subscribe_duration(YEAR_NS).block(),
        "wait_for_the_end_of_time" => subscribe_instant(u64::MAX).block(),
        "poll_nothing" => drop(poll(&[])),
        "poll_many_that_are_never_ready" => {
            let pollables: Vec<_> = (0..100).map(|_| subscribe_duration(YEAR_NS)).collect();
            poll(&pollables.iter().collect::<Vec<_>>());
        }
        "sleep_a_nanosecond_at_a_time" => loop {
            subscribe_duration(1).block();
        },
        "read_what_never_comes" => {
            let stdin = wasip2::cli::stdin::get_stdin();
            let read = stdin.blocking_read(1 << 20);
            return super::text(format!("{:?}", read.map_err(|_| "closed")));
        }
        _ => return None,
    }
    super::text("came back")
}

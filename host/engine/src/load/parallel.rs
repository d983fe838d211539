//! Parallel map for small computations, on all cores.

use std::num::NonZero;
use std::thread;

/// Minimum number of items per thread: starting a thread takes as long as several dozen
/// computations.
const ITEMS_PER_THREAD_MIN: usize = 128;

/// Returns the results of `compute` for the items, in order. `compute` receives the position of the
/// item.
pub(crate) fn map<'i, T: Sync, R: Send>(
    items: &'i [T],
    compute: impl Fn(usize, &'i T) -> R + Sync,
) -> Vec<R> {
    let share = items.len().div_ceil(available()).max(ITEMS_PER_THREAD_MIN);
    let compute_chunk = &|(chunk, items): (usize, &'i [T])| {
        let start = chunk * share;
        items
            .iter()
            .enumerate()
            .map(|(index, item)| compute(start + index, item))
            .collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let mut chunks = items.chunks(share).enumerate();
        let first = chunks.next();
        let others: Vec<_> =
            chunks.map(|chunk| scope.spawn(move || compute_chunk(chunk))).collect();
        let mut results = first.map(compute_chunk).unwrap_or_default();
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}

/// Returns the number of computations that can run at the same time.
pub(crate) fn available() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_complete_and_in_order_for_any_number_of_items() {
        for count in
            [0, 1, ITEMS_PER_THREAD_MIN, ITEMS_PER_THREAD_MIN + 1, 10 * ITEMS_PER_THREAD_MIN + 3]
        {
            let items: Vec<usize> = (100..100 + count).collect();
            let results = map(&items, |position, item| (position, *item));
            assert_eq!(results, items.iter().copied().enumerate().collect::<Vec<_>>());
        }
    }
}

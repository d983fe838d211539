//! The same little work for each of many things, on all cores.

use std::num::NonZero;
use std::thread;

/// Things that a thread is worth starting for: it takes as long to start as what is done for some dozens of them.
const SHARE_MIN: usize = 128;

/// What `work` makes of each of `items`, in their order. It is told the place of the item.
pub(crate) fn side_by_side<'i, T: Sync, R: Send>(
    items: &'i [T],
    work: impl Fn(usize, &'i T) -> R + Sync,
) -> Vec<R> {
    let share = items.len().div_ceil(at_once()).max(SHARE_MIN);
    let work_on = &|(part, items): (usize, &'i [T])| {
        let place = part * share;
        items.iter().enumerate().map(|(index, item)| work(place + index, item)).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let mut parts = items.chunks(share).enumerate();
        let first = parts.next();
        let others: Vec<_> = parts.map(|part| scope.spawn(move || work_on(part))).collect();
        let mut done = first.map(work_on).unwrap_or_default();
        for other in others {
            // What has panicked there panics here.
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    })
}

/// What can be done at the same time.
pub(crate) fn at_once() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_done_in_order_however_many_there_are() {
        for count in [0, 1, SHARE_MIN, SHARE_MIN + 1, 10 * SHARE_MIN + 3] {
            let items: Vec<usize> = (100..100 + count).collect();
            let done = side_by_side(&items, |place, item| (place, *item));
            assert_eq!(done, items.iter().copied().enumerate().collect::<Vec<_>>());
        }
    }
}

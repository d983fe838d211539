//! Aligns the calls of a run with the expected ones, in their order.

use super::{ObservedCall, is_match, to_usize};
use crate::case::ExpectedCall;

/// Slot of the expected sequence that calls can fill.
#[derive(Clone, Copy)]
struct Slot<'e> {
    expected: &'e ExpectedCall,
    /// True if no call has to fill it.
    is_optional: bool,
    /// True if any number of calls can fill it.
    is_repeated: bool,
}

/// Number of extra calls of a state that cannot be reached.
const UNREACHABLE: usize = usize::MAX;

/// Returns the minimum number of calls that are left when the others make up the expected sequence;
/// `None` if no calls make it up.
pub(super) fn extra(expected: &[ExpectedCall], calls: &[&ObservedCall]) -> Option<usize> {
    let slots: Vec<_> = expected.iter().flat_map(|one| slots(one, calls.len())).collect();
    // `state[n]` is the minimum number of extra calls after the first n slots.
    let mut state = vec![UNREACHABLE; slots.len() + 1];
    if let Some(start) = state.first_mut() {
        *start = 0;
    }
    state = advance(&state, &slots, |extra| extra, |_| false);
    for call in calls {
        state = advance(
            &state,
            &slots,
            |extra| extra.saturating_add(1),
            |slot| is_match(slot.expected, call),
        );
    }
    state.last().copied().filter(|extra| *extra != UNREACHABLE)
}

/// Returns the state after a call that is extra at the cost of `skip`, or fills a slot for which
/// `fills` is true.
fn advance(
    state: &[usize],
    slots: &[Slot<'_>],
    skip: impl Fn(usize) -> usize,
    fills: impl Fn(Slot<'_>) -> bool,
) -> Vec<usize> {
    let mut next = Vec::with_capacity(state.len());
    // The slot before, with the number of extra calls before it: in the old state and the new one.
    let mut before: Option<(Slot<'_>, usize, usize)> = None;
    for (index, old) in state.iter().enumerate() {
        let mut extra = skip(*old);
        if let Some((slot, old_before, new_before)) = before {
            if slot.is_optional {
                extra = extra.min(new_before);
            }
            if !slot.is_repeated && fills(slot) {
                extra = extra.min(old_before);
            }
        }
        let slot = slots.get(index).copied();
        if let Some(slot) = slot
            && slot.is_repeated
            && fills(slot)
        {
            extra = extra.min(*old);
        }
        next.push(extra);
        before = slot.map(|slot| (slot, *old, extra));
    }
    next
}

/// Returns the slots of an expected call: those that have to be filled, then those that can be.
fn slots(expected: &ExpectedCall, calls: usize) -> impl Iterator<Item = Slot<'_>> {
    let min = to_usize(expected.min());
    let required = Slot { expected, is_optional: false, is_repeated: false };
    let (optional, count) = match expected.capacity() {
        // More slots than calls would stay empty.
        Some(max) => (false, to_usize(max).saturating_sub(min).min(calls)),
        None => (true, 1),
    };
    let optional = Slot { expected, is_optional: true, is_repeated: optional };
    std::iter::repeat_n(required, min).chain(std::iter::repeat_n(optional, count))
}

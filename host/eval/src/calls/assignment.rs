//! Assigns the calls of a run to the expected calls, in any order.

use std::collections::VecDeque;

use super::{ObservedCall, is_match, to_usize};
use crate::case::ExpectedCall;

/// Assignment of calls, each to at most one expected call. First as many minimums as possible are
/// met, then as many calls as possible are assigned; calls that a `max` could refuse go first.
pub(super) struct Assignment {
    /// Expected calls that each call matches, by index.
    matches: Vec<Vec<usize>>,
    /// Calls that are assigned to each expected call, by index.
    assigned: Vec<Vec<usize>>,
}

/// Step of a search for room: the expected call that gives up a call, if any, and that call.
#[derive(Clone, Copy)]
struct AugmentingStep {
    from: Option<usize>,
    call: usize,
}

impl Assignment {
    pub(super) fn of(expected: &[ExpectedCall], calls: &[&ObservedCall]) -> Self {
        let matches_of = |call: &&ObservedCall| {
            let matching = expected.iter().enumerate().filter(|(_, one)| is_match(one, call));
            matching.map(|(index, _)| index).collect()
        };
        let mut assignment = Self {
            matches: calls.iter().map(matches_of).collect(),
            assigned: vec![Vec::new(); expected.len()],
        };
        let mins: Vec<_> = expected.iter().map(|one| to_usize(one.min())).collect();
        let capacities: Vec<_> =
            expected.iter().map(|one| one.capacity().map_or(usize::MAX, to_usize)).collect();
        let has_max = |index: &usize| expected.get(*index).is_some_and(|one| one.max.is_some());
        let indices = 0..calls.len();
        let (first, then): (Vec<_>, Vec<_>) = indices.partition(|call| {
            assignment.matches.get(*call).is_some_and(|matches| matches.iter().any(has_max))
        });
        let order: Vec<_> = first.into_iter().chain(then).collect();
        let mut unassigned = Vec::new();
        for call in order {
            if !assignment.assign(call, &mins) {
                unassigned.push(call);
            }
        }
        for call in unassigned {
            assignment.assign(call, &capacities);
        }
        assignment
    }

    /// Returns the number of calls that are assigned to each expected call.
    pub(super) fn counts(&self) -> impl Iterator<Item = usize> {
        self.assigned.iter().map(Vec::len)
    }

    /// Returns whether a minimum is not met.
    pub(super) fn has_missing(&self, expected: &[ExpectedCall]) -> bool {
        expected.iter().zip(self.counts()).any(|(one, count)| count < to_usize(one.min()))
    }

    /// Returns the calls that are not assigned, in their order.
    pub(super) fn unassigned<'c>(&self, calls: &[&'c ObservedCall]) -> Vec<&'c ObservedCall> {
        let mut is_assigned = vec![false; calls.len()];
        for call in self.assigned.iter().flatten() {
            if let Some(is_assigned) = is_assigned.get_mut(*call) {
                *is_assigned = true;
            }
        }
        let left = calls.iter().zip(is_assigned).filter(|(_, is_assigned)| !is_assigned);
        left.map(|(call, _)| *call).collect()
    }

    /// Assigns a call, moving others if that makes room for it: an augmenting path of a bipartite
    /// matching. Returns whether there is room. What is assigned stays assigned.
    fn assign(&mut self, call: usize, capacities: &[usize]) -> bool {
        let mut steps: Vec<Option<AugmentingStep>> = vec![None; self.assigned.len()];
        let mut waiting = VecDeque::new();
        self.reach(AugmentingStep { from: None, call }, &mut steps, &mut waiting);
        while let Some(index) = waiting.pop_front() {
            let assigned = self.assigned.get(index).map_or(&[][..], Vec::as_slice);
            if capacities.get(index).is_some_and(|capacity| assigned.len() < *capacity) {
                self.shift(index, &steps);
                return true;
            }
            for call in assigned {
                self.reach(
                    AugmentingStep { from: Some(index), call: *call },
                    &mut steps,
                    &mut waiting,
                );
            }
        }
        false
    }

    /// Notes the step to each expected call that the search has not reached.
    fn reach(
        &self,
        step: AugmentingStep,
        steps: &mut [Option<AugmentingStep>],
        waiting: &mut VecDeque<usize>,
    ) {
        for index in self.matches.get(step.call).into_iter().flatten() {
            if let Some(known @ None) = steps.get_mut(*index) {
                *known = Some(step);
                waiting.push_back(*index);
            }
        }
    }

    /// Moves the calls along the steps that lead to an expected call with room.
    fn shift(&mut self, mut index: usize, steps: &[Option<AugmentingStep>]) {
        while let Some(Some(AugmentingStep { from, call })) = steps.get(index).copied() {
            if let Some(calls) = self.assigned.get_mut(index) {
                calls.push(call);
            }
            let Some(from) = from else { return };
            if let Some(calls) = self.assigned.get_mut(from) {
                calls.retain(|one| *one != call);
            }
            index = from;
        }
    }
}

//! Alternatives and conditions: selects the schemas that apply to a value (`ARG-21`).

use super::check;
use super::decoder::Decoder;
use super::draft::{FinishedDraft, ValueDraft};
use super::path::Path;
use super::problem::{self, Problem};
use crate::schema::{Choice, SchemaCondition, SchemaId, SchemaNode};

impl<'a> Decoder<'a> {
    /// Takes the first branch that accepts the value without tolerance, or else the first that
    /// accepts it with tolerance.
    ///
    /// This holds for `oneOf` as for `anyOf`: a value that a second branch would also accept
    /// belongs to the first. A model cannot know which of two overlapping branches the schema's
    /// author meant to exclude, so it could never pass such a value.
    pub(super) fn choose(&mut self, choice: &'a Choice, draft: &mut ValueDraft<'a>, at: &Path<'_>) {
        if draft.is_invalid() {
            return;
        }
        let passes: &[bool] = if self.is_strict() { &[true] } else { &[true, false] };
        for strict in passes {
            for branch in &choice.branches {
                if self.accept(*branch, draft, at, *strict) {
                    return;
                }
            }
        }
        let hint = if self.is_reporting() { self.hint(choice, draft, at) } else { None };
        self.report(|| Problem { hint, ..problem::constraint(at, choice.keyword) });
        *draft = ValueDraft::Invalid;
    }

    /// Decodes a copy of the value by a branch and validates the result by it. If both succeed, the
    /// copy replaces the value.
    fn accept(
        &mut self,
        branch: SchemaId,
        draft: &mut ValueDraft<'a>,
        at: &Path<'_>,
        strict: bool,
    ) -> bool {
        if self.meter.is_exhausted() {
            return false;
        }
        let mut copy = draft.copy(&mut self.meter);
        let accepted = self.attempt(strict, |decoder| {
            decoder.apply(branch, &mut copy, at);
            !decoder.should_stop() && decoder.passes(branch, &copy)
        });
        if accepted {
            *draft = copy;
        }
        accepted
    }

    /// Returns whether a draft would be valid if it were finished now.
    fn passes(&mut self, id: SchemaId, draft: &ValueDraft<'a>) -> bool {
        let mut finished = FinishedDraft::default();
        let value = draft.copy(&mut self.meter).finish(&super::TOP, &mut finished);
        finished.problems.is_empty() && check::is_valid(self.plan, id, &value, &mut self.meter)
    }

    /// Tests `if` on the value as decoded so far, then continues decoding with `then` or `else`.
    /// Members named by a passing `if` become declared.
    pub(super) fn condition(
        &mut self,
        condition: SchemaCondition,
        draft: &mut ValueDraft<'a>,
        at: &Path<'_>,
    ) {
        if draft.is_invalid() {
            return;
        }
        let passes = self.passes(condition.test, draft);
        if let (true, ValueDraft::Object(object), Some(test)) =
            (passes, &mut *draft, &self.plan.node(condition.test).object)
        {
            for entry in &mut object.entries {
                entry.declared |= test.index.contains_key(entry.name.as_ref());
            }
        }
        if let Some(next) = if passes { condition.then } else { condition.otherwise } {
            self.apply(next, draft, at);
        }
    }

    /// Applies each of `dependentSchemas` whose member is present.
    pub(super) fn dependents(
        &mut self,
        node: &'a SchemaNode,
        draft: &mut ValueDraft<'a>,
        at: &Path<'_>,
    ) {
        for (name, dependent) in &node.dependents {
            if self.has_member(draft, name) {
                self.apply(*dependent, draft, at);
            }
        }
    }

    fn has_member(&mut self, draft: &ValueDraft<'a>, name: &str) -> bool {
        match draft {
            ValueDraft::Object(object)
                if self.meter.spend(u64::try_from(object.entries.len()).unwrap_or(u64::MAX)) =>
            {
                object.entries.iter().any(|entry| entry.name == name)
            }
            ValueDraft::Text(json) => {
                json.as_object().is_some_and(|object| object.get(name).is_some())
            }
            ValueDraft::Value(value) => value.get(name).is_some(),
            ValueDraft::Object(_) | ValueDraft::List(_) | ValueDraft::Invalid => false,
        }
    }
}

//! Alternatives and conditions: which schemas apply to a value (`ARG-21`).

use super::check;
use super::decoder::Decoder;
use super::draft::{Draft, Finished};
use super::path::Path;
use super::problem::{self, Problem};
use crate::schema::{Choice, Condition, Node, SchemaId};

impl<'a> Decoder<'a> {
    /// The first branch that accepts the value without tolerance, or else the first that accepts it
    /// at all.
    ///
    /// This holds for `oneOf` as it does for `anyOf`: a value that a second branch would accept as
    /// well belongs to the first. A model cannot know which of two overlapping branches a stranger
    /// meant to exclude, and it could never pass such a value.
    pub(super) fn choose(&mut self, choice: &'a Choice, draft: &mut Draft<'a>, at: &Path<'_>) {
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
        *draft = Draft::Invalid;
    }

    /// Decodes a copy of the value by a branch and validates the result by it. The copy becomes the
    /// value if both went well.
    fn accept(
        &mut self,
        branch: SchemaId,
        draft: &mut Draft<'a>,
        at: &Path<'_>,
        strict: bool,
    ) -> bool {
        if self.meter.is_exhausted() {
            return false;
        }
        let mut copy = draft.copy(&mut self.meter);
        let accepted = self.attempt(strict, |decoder| {
            decoder.apply(branch, &mut copy, at);
            !decoder.is_hopeless() && decoder.passes(branch, &copy)
        });
        if accepted {
            *draft = copy;
        }
        accepted
    }

    /// Whether a draft, were it finished, is valid.
    fn passes(&mut self, id: SchemaId, draft: &Draft<'a>) -> bool {
        let mut finished = Finished::default();
        let value = draft.copy(&mut self.meter).finish(&super::TOP, &mut finished);
        finished.problems.is_empty() && check::is_valid(self.plan, id, &value, &mut self.meter)
    }

    /// `if` looks at the value as it has been decoded so far; `then` or `else` goes on decoding it.
    /// Members that `if` names are declared by it.
    pub(super) fn condition(&mut self, condition: Condition, draft: &mut Draft<'a>, at: &Path<'_>) {
        if draft.is_invalid() {
            return;
        }
        let passes = self.passes(condition.test, draft);
        if let (true, Draft::Object(object), Some(test)) =
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

    /// `dependentSchemas`: each applies if its member is there.
    pub(super) fn dependents(&mut self, node: &'a Node, draft: &mut Draft<'a>, at: &Path<'_>) {
        for (name, dependent) in &node.dependents {
            if self.has_member(draft, name) {
                self.apply(*dependent, draft, at);
            }
        }
    }

    fn has_member(&mut self, draft: &Draft<'a>, name: &str) -> bool {
        match draft {
            Draft::Object(object)
                if self.meter.spend(u64::try_from(object.entries.len()).unwrap_or(u64::MAX)) =>
            {
                object.entries.iter().any(|entry| entry.name == name)
            }
            Draft::Text(json) => json.as_object().is_some_and(|object| object.get(name).is_some()),
            Draft::Value(value) => value.get(name).is_some(),
            Draft::Object(_) | Draft::List(_) | Draft::Invalid => false,
        }
    }
}

//! Applies a plan to a value: the order of the steps and the handling of problems.

use std::collections::HashMap;

use serde_json::Value;

use super::convert::{self, Fault};
use super::draft::{FinishedDraft, ValueDraft};
use super::meter::Meter;
use super::path::Path;
use super::problem::{self, FoundKind, Problem};
use super::{Arguments, InvalidArguments, TOP, UnusableDefault, check};
use crate::json::{self, Json};
use crate::schema::{AllowedValues, Kind, SchemaId, SchemaNode, SchemaPlan};

/// State of one decoding.
pub(super) struct Decoder<'a> {
    pub(super) plan: &'a SchemaPlan,
    pub(super) tool: &'a str,
    pub(super) meter: Meter,
    strict: bool,
    problems: Problems,
    /// JSON of defaults that may not be decoded yet, while defaults are being completed.
    texts: Option<&'a HashMap<SchemaId, &'a Json<'a>>>,
}

/// Collector of problems. For an alternative on trial, only the presence of a problem matters.
enum Problems {
    Reported(Vec<Problem>),
    Tried { failed: bool },
}

impl<'a> Decoder<'a> {
    pub(super) fn new(plan: &'a SchemaPlan, tool: &'a str, strict: bool) -> Self {
        Self {
            plan,
            tool,
            meter: Meter::new(),
            strict,
            problems: Problems::Reported(vec![]),
            texts: None,
        }
    }

    pub(super) fn for_default(
        plan: &'a SchemaPlan,
        texts: &'a HashMap<SchemaId, &'a Json<'a>>,
        meter: Meter,
    ) -> Self {
        let problems = Problems::Reported(vec![]);
        Self { plan, tool: "", meter, strict: true, problems, texts: Some(texts) }
    }

    pub(super) fn steps_left(&self) -> u64 {
        self.meter.steps_left()
    }

    /// Decodes the argument object.
    pub(super) fn run(mut self, object: &'a Json<'a>) -> Result<Arguments, InvalidArguments> {
        let tool = self.tool;
        let (value, mut dropped) = self.whole(SchemaPlan::ROOT, ValueDraft::Text(object));
        let problems = self.reported();
        if self.meter.is_exhausted() {
            return Err(problem::too_much_work(tool));
        }
        match value {
            Value::Object(value) if problems.is_empty() => {
                dropped.sort_unstable();
                Ok(Arguments { value, dropped })
            }
            _ => Err(InvalidArguments::new(problems)),
        }
    }

    /// Decodes a default.
    pub(super) fn default_value(
        &mut self,
        id: SchemaId,
        draft: ValueDraft<'a>,
    ) -> Result<Value, UnusableDefault> {
        if draft.is_null() && self.plan.node(id).nullable {
            return Ok(Value::Null);
        }
        let (value, _) = self.whole(id, draft);
        let problems = self.reported();
        if self.meter.is_exhausted() {
            return Err(UnusableDefault::TooMuchWork);
        }
        match InvalidArguments::new(problems) {
            none if none.problems().is_empty() => Ok(value),
            some => Err(UnusableDefault::Problem(some.to_string())),
        }
    }

    /// Converts, drops and validates. Returns the value and the paths that were dropped.
    fn whole(&mut self, id: SchemaId, mut draft: ValueDraft<'a>) -> (Value, Vec<String>) {
        let mut finished = FinishedDraft::default();
        self.apply(id, &mut draft, &TOP);
        let value = draft.finish(&TOP, &mut finished);
        for problem in finished.problems {
            self.report(|| problem);
        }
        let known = self.reported();
        let problems = check::problems(self.plan, self.tool, id, &value, known, &mut self.meter);
        self.problems = Problems::Reported(problems);
        (value, finished.dropped)
    }

    /// Returns true if problems are reported with their messages.
    pub(super) fn is_reporting(&self) -> bool {
        matches!(self.problems, Problems::Reported(_))
    }

    /// Runs `attempt` and returns its problems instead of adding them to those found so far.
    pub(super) fn explain(&mut self, attempt: impl FnOnce(&mut Self)) -> Vec<Problem> {
        let outer = std::mem::replace(&mut self.problems, Problems::Reported(vec![]));
        attempt(self);
        let problems = self.reported();
        self.problems = outer;
        problems
    }

    fn reported(&mut self) -> Vec<Problem> {
        match &mut self.problems {
            Problems::Reported(problems) => std::mem::take(problems),
            Problems::Tried { .. } => vec![],
        }
    }

    /// Records a problem. Its message is built only if it will be reported.
    pub(super) fn report(&mut self, problem: impl FnOnce() -> Problem) {
        match &mut self.problems {
            Problems::Reported(problems) => problems.push(problem()),
            Problems::Tried { failed } => *failed = true,
        }
    }

    /// Returns whether going on is pointless: the alternative failed, or the work is used up.
    pub(super) fn should_stop(&self) -> bool {
        self.meter.is_exhausted() || matches!(self.problems, Problems::Tried { failed: true })
    }

    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    /// Runs `attempt` with its own problems and returns whether it had none.
    pub(super) fn attempt(
        &mut self,
        strict: bool,
        attempt: impl FnOnce(&mut Self) -> bool,
    ) -> bool {
        let outer = std::mem::replace(&mut self.problems, Problems::Tried { failed: false });
        let outer_strict = std::mem::replace(&mut self.strict, strict);
        let accepted = attempt(self) && !self.should_stop();
        self.strict = outer_strict;
        self.problems = outer;
        accepted
    }

    /// Applies a schema to a supplied value. A problem with the value itself is reported and makes
    /// it invalid; problems with its parts are reported and leave the rest intact.
    ///
    /// Drafts are changed in place here and below, because passing them by value costs stack on
    /// each level of a value.
    pub(super) fn apply(&mut self, id: SchemaId, draft: &mut ValueDraft<'a>, at: &Path<'_>) {
        // A value that already failed is not reported again by the next schema.
        if draft.is_invalid() {
            return;
        }
        if !self.meter.enter() {
            *draft = ValueDraft::Invalid;
            return;
        }
        let node = self.plan.node(id);
        self.apply_node(node, draft, at);
        self.meter.leave();
    }

    /// Applies `$ref`, the schema's own keywords, `allOf`, alternatives and conditions, in this
    /// order (`ARG-21`).
    fn apply_node(&mut self, node: &'a SchemaNode, draft: &mut ValueDraft<'a>, at: &Path<'_>) {
        if let Some(keyword) = node.never {
            self.report(|| problem::constraint(at, keyword));
            *draft = ValueDraft::Invalid;
            return;
        }
        if let Some(target) = node.reference {
            self.apply(target, draft, at);
        }
        if !draft.is_invalid() {
            self.own(node, draft, at);
        }
        for part in &node.all_of {
            self.apply(*part, draft, at);
        }
        for choice in &node.choices {
            self.choose(choice, draft, at);
        }
        self.dependents(node, draft, at);
        if let Some(condition) = node.condition {
            self.condition(condition, draft, at);
        }
    }

    fn own(&mut self, node: &'a SchemaNode, draft: &mut ValueDraft<'a>, at: &Path<'_>) {
        if let Some(members) = &node.members {
            self.member(node, members, draft, at);
        } else if node.kinds.is_empty() {
            self.unconverted(node, draft, at);
        } else {
            self.convert(node, draft, at);
        }
    }

    /// Converts to the value's own kind if it is declared, else to the first declared kind that
    /// accepts the value (`ARG-20`).
    fn convert(&mut self, node: &'a SchemaNode, draft: &mut ValueDraft<'a>, at: &Path<'_>) {
        match own_kind(&node.kinds, draft.found()) {
            Some(Kind::Array) => self.array(node.array.as_deref(), draft, at),
            Some(Kind::Object) => self.object(node.object.as_deref(), draft, at),
            Some(kind) => self.convert_to(std::slice::from_ref(kind), node, draft, at),
            None if self.strict => self.convert_to(&[], node, draft, at),
            None => self.convert_to(&node.kinds, node, draft, at),
        }
    }

    /// Converts to the first of `kinds` that accepts the value.
    fn convert_to(
        &mut self,
        kinds: &[Kind],
        node: &SchemaNode,
        draft: &mut ValueDraft<'a>,
        at: &Path<'_>,
    ) {
        let found = draft.found();
        let mut fault = Fault::Kind;
        for kind in kinds {
            match convert::scalar(kind, draft, self.strict, &mut self.meter) {
                Ok(value) => {
                    *draft = ValueDraft::Value(value);
                    return;
                }
                // Reports a number out of range in preference to a value of the wrong kind; it is
                // more specific.
                Err(Fault::Range) => fault = Fault::Range,
                Err(Fault::Kind) => {}
            }
        }
        *draft = ValueDraft::Invalid;
        self.report(|| {
            let expected: Vec<_> = node.kinds.iter().map(Kind::expected).collect();
            match fault {
                Fault::Kind => problem::kind(at, &expected, found),
                Fault::Range => problem::range(at, &expected),
            }
        });
    }

    /// Applies a schema that converts nothing. Its object keywords still declare members, so that
    /// `{"required": ["a"]}` works within `anyOf`, and the format of a string is checked.
    fn unconverted(&mut self, node: &'a SchemaNode, draft: &mut ValueDraft<'a>, at: &Path<'_>) {
        if let (Some(text), Some(format)) = (draft.as_str(), node.format)
            && convert::formatted(text, format, self.strict).is_none()
        {
            self.report(|| problem::kind(at, &[format.expected()], FoundKind::String));
            *draft = ValueDraft::Invalid;
        } else if node.object.is_some() && draft.found() == FoundKind::Object {
            self.object(node.object.as_deref(), draft, at);
        }
    }

    /// Matches `enum` and `const`: a member that is equal, also after conversion to a declared kind
    /// (`ARG-34`), or that differs only in case if all members are strings (`ARG-18`).
    fn member(
        &mut self,
        node: &'a SchemaNode,
        members: &'a AllowedValues,
        draft: &mut ValueDraft<'a>,
        at: &Path<'_>,
    ) {
        let member = match (draft.as_str(), &members.folded) {
            (Some(text), Some(folded)) => spelled(members, folded, text, self.strict),
            (None, Some(_)) => None,
            _ => {
                let value = draft.copy(&mut self.meter).finish(&TOP, &mut FinishedDraft::default());
                let find =
                    |value: &Value| members.values.iter().find(|member| json::equal(member, value));
                find(&value).or_else(|| self.converted(node, draft).and_then(|value| find(&value)))
            }
        };
        if member.is_none() {
            self.report(|| problem::not_a_member(at, members));
        }
        *draft = member.map_or(ValueDraft::Invalid, |member| ValueDraft::Value(member.clone()));
    }

    /// Converts a value of an undeclared kind to the first declared kind that accepts it.
    fn converted(&mut self, node: &SchemaNode, draft: &ValueDraft<'a>) -> Option<Value> {
        if self.strict || own_kind(&node.kinds, draft.found()).is_some() {
            return None;
        }
        let mut kinds = node.kinds.iter();
        kinds.find_map(|kind| convert::scalar(kind, draft, self.strict, &mut self.meter).ok())
    }

    /// Returns the draft of a default, or `None` if the schema has no default.
    pub(super) fn default(&mut self, id: SchemaId, at: &Path<'_>) -> Option<ValueDraft<'a>> {
        let default = self.plan.node(id).default.as_ref()?;
        let Some(texts) = self.texts else {
            let affordable = self.meter.spend(default.weight);
            return Some(if affordable {
                ValueDraft::Value(default.value.clone())
            } else {
                ValueDraft::Invalid
            });
        };
        // At load time defaults complete each other, so the JSON is decoded where it is needed.
        let mut draft = ValueDraft::Text(texts.get(&id)?);
        if draft.is_null() {
            return Some(ValueDraft::Value(Value::Null));
        }
        self.apply(id, &mut draft, at);
        Some(draft)
    }
}

/// Returns the declared kind that a value already has. An integer literal is an integer in
/// preference to a number.
fn own_kind(kinds: &[Kind], found: FoundKind) -> Option<&Kind> {
    let find = |is: fn(&Kind) -> bool| kinds.iter().find(|kind| is(kind));
    let number = || find(|kind| matches!(kind, Kind::Number { .. }));
    match found {
        FoundKind::Null => find(|kind| matches!(kind, Kind::Null)),
        FoundKind::Boolean => find(|kind| matches!(kind, Kind::Boolean)),
        FoundKind::Number(true) => find(|kind| matches!(kind, Kind::Integer(_))).or_else(number),
        FoundKind::Number(false) => number(),
        FoundKind::String => find(|kind| matches!(kind, Kind::Text(_))),
        FoundKind::Array => find(|kind| matches!(kind, Kind::Array)),
        FoundKind::Object => find(|kind| matches!(kind, Kind::Object)),
    }
}

/// Returns the member with exactly this string, or else the only one that differs just in case.
fn spelled<'m>(
    members: &'m AllowedValues,
    folded: &[String],
    text: &str,
    strict: bool,
) -> Option<&'m Value> {
    let exact = members.values.iter().find(|member| member.as_str() == Some(text));
    if exact.is_some() || strict {
        return exact;
    }
    let text = text.to_lowercase();
    let mut alike = members.values.iter().zip(folded).filter(|(_, folded)| **folded == text);
    let first = alike.next().map(|(member, _)| member);
    first.filter(|_| alike.next().is_none())
}

//! Applying a plan to a value: the order of the steps, and what happens to problems on the way.

use std::collections::HashMap;

use serde_json::Value;

use super::convert::{self, Fault};
use super::draft::{Draft, Finished};
use super::meter::Meter;
use super::path::Path;
use super::problem::{self, Found, Problem};
use super::{Arguments, InvalidArguments, TOP, Unfit, check};
use crate::json::{self, Json};
use crate::schema::{Kind, Members, Node, Plan, SchemaId};

/// One decoding of one value.
pub(super) struct Decoder<'a> {
    pub(super) plan: &'a Plan,
    pub(super) tool: &'a str,
    pub(super) meter: Meter,
    strict: bool,
    problems: Problems,
    /// While defaults are being completed: the texts of those that may not be decoded yet.
    texts: Option<&'a HashMap<SchemaId, &'a Json<'a>>>,
}

/// Where problems go. An alternative that is tried out needs to know only whether there was one.
enum Problems {
    Reported(Vec<Problem>),
    Tried { failed: bool },
}

impl<'a> Decoder<'a> {
    pub(super) fn new(plan: &'a Plan, tool: &'a str, strict: bool) -> Self {
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
        plan: &'a Plan,
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
        let (value, mut dropped) = self.whole(Plan::ROOT, Draft::Text(object));
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
    pub(super) fn default_value(&mut self, id: SchemaId, draft: Draft<'a>) -> Result<Value, Unfit> {
        if draft.is_null() && self.plan.node(id).nullable {
            return Ok(Value::Null);
        }
        let (value, _) = self.whole(id, draft);
        let problems = self.reported();
        if self.meter.is_exhausted() {
            return Err(Unfit::TooMuchWork);
        }
        match InvalidArguments::new(problems) {
            none if none.problems().is_empty() => Ok(value),
            some => Err(Unfit::Problem(some.to_string())),
        }
    }

    /// Converts, drops and validates: the value and the paths that were dropped.
    fn whole(&mut self, id: SchemaId, mut draft: Draft<'a>) -> (Value, Vec<String>) {
        let mut finished = Finished::default();
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

    /// Returns true if problems are put into words.
    pub(super) fn is_reporting(&self) -> bool {
        matches!(self.problems, Problems::Reported(_))
    }

    /// Runs `attempt` and returns the problems that it met, in place of adding them to those so
    /// far.
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

    /// Notes a problem; it is put into words only if somebody will read it.
    pub(super) fn report(&mut self, problem: impl FnOnce() -> Problem) {
        match &mut self.problems {
            Problems::Reported(problems) => problems.push(problem()),
            Problems::Tried { failed } => *failed = true,
        }
    }

    /// Whether going on is of no use: the alternative failed, or there is no work left.
    pub(super) fn is_hopeless(&self) -> bool {
        self.meter.is_exhausted() || matches!(self.problems, Problems::Tried { failed: true })
    }

    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    /// Runs `attempt` apart from the problems so far; false if it met one.
    pub(super) fn attempt(
        &mut self,
        strict: bool,
        attempt: impl FnOnce(&mut Self) -> bool,
    ) -> bool {
        let outer = std::mem::replace(&mut self.problems, Problems::Tried { failed: false });
        let outer_strict = std::mem::replace(&mut self.strict, strict);
        let accepted = attempt(self) && !self.is_hopeless();
        self.strict = outer_strict;
        self.problems = outer;
        accepted
    }

    /// Applies a schema to a value that is supplied. A problem with the value itself is reported
    /// and leaves it invalid; problems with its parts are reported and leave the rest of it.
    ///
    /// Drafts are changed in place here and below: what is passed by value costs stack on each
    /// level of a value.
    pub(super) fn apply(&mut self, id: SchemaId, draft: &mut Draft<'a>, at: &Path<'_>) {
        // What failed already is not reported by the next schema again.
        if draft.is_invalid() {
            return;
        }
        if !self.meter.enter() {
            *draft = Draft::Invalid;
            return;
        }
        let node = self.plan.node(id);
        self.apply_node(node, draft, at);
        self.meter.leave();
    }

    /// `$ref`, the schema's own keywords, `allOf`, alternatives, conditions: one after another
    /// (`ARG-21`).
    fn apply_node(&mut self, node: &'a Node, draft: &mut Draft<'a>, at: &Path<'_>) {
        if let Some(keyword) = node.never {
            self.report(|| problem::constraint(at, keyword));
            *draft = Draft::Invalid;
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

    fn own(&mut self, node: &'a Node, draft: &mut Draft<'a>, at: &Path<'_>) {
        if let Some(members) = &node.members {
            self.member(node, members, draft, at);
        } else if node.kinds.is_empty() {
            self.unconverted(node, draft, at);
        } else {
            self.convert(node, draft, at);
        }
    }

    /// The value's own kind if it is declared, else the first declared kind that the value converts
    /// to (`ARG-20`).
    fn convert(&mut self, node: &'a Node, draft: &mut Draft<'a>, at: &Path<'_>) {
        match own_kind(&node.kinds, draft.found()) {
            Some(Kind::Array) => self.array(node.array.as_deref(), draft, at),
            Some(Kind::Object) => self.object(node.object.as_deref(), draft, at),
            Some(kind) => self.convert_to(std::slice::from_ref(kind), node, draft, at),
            None if self.strict => self.convert_to(&[], node, draft, at),
            None => self.convert_to(&node.kinds, node, draft, at),
        }
    }

    /// Converts to the first of `kinds` that the value converts to.
    fn convert_to(&mut self, kinds: &[Kind], node: &Node, draft: &mut Draft<'a>, at: &Path<'_>) {
        let found = draft.found();
        let mut fault = Fault::Kind;
        for kind in kinds {
            match convert::scalar(kind, draft, self.strict, &mut self.meter) {
                Ok(value) => {
                    *draft = Draft::Value(value);
                    return;
                }
                // A number out of range says more than a word that is no boolean.
                Err(Fault::Range) => fault = Fault::Range,
                Err(Fault::Kind) => {}
            }
        }
        *draft = Draft::Invalid;
        self.report(|| {
            let expected: Vec<_> = node.kinds.iter().map(Kind::expected).collect();
            match fault {
                Fault::Kind => problem::kind(at, &expected, found),
                Fault::Range => problem::range(at, &expected),
            }
        });
    }

    /// A schema that converts nothing. Its keywords for objects still say which members are
    /// declared, so that `{"required": ["a"]}` within `anyOf` works; a format of strings is looked
    /// at.
    fn unconverted(&mut self, node: &'a Node, draft: &mut Draft<'a>, at: &Path<'_>) {
        if let (Some(text), Some(format)) = (draft.as_str(), node.format)
            && convert::formatted(text, format, self.strict).is_none()
        {
            self.report(|| problem::kind(at, &[format.expected()], Found::String));
            *draft = Draft::Invalid;
        } else if node.object.is_some() && draft.found() == Found::Object {
            self.object(node.object.as_deref(), draft, at);
        }
    }

    /// `enum` and `const`: a member that is equal, also after conversion to a declared kind
    /// (`ARG-34`), or spelled in another case if all members are strings (`ARG-18`).
    fn member(
        &mut self,
        node: &'a Node,
        members: &'a Members,
        draft: &mut Draft<'a>,
        at: &Path<'_>,
    ) {
        let member = match (draft.as_str(), &members.folded) {
            (Some(text), Some(folded)) => spelled(members, folded, text, self.strict),
            (None, Some(_)) => None,
            _ => {
                let value = draft.copy(&mut self.meter).finish(&TOP, &mut Finished::default());
                let find =
                    |value: &Value| members.values.iter().find(|member| json::equal(member, value));
                find(&value).or_else(|| self.converted(node, draft).and_then(|value| find(&value)))
            }
        };
        if member.is_none() {
            self.report(|| problem::not_a_member(at, members));
        }
        *draft = member.map_or(Draft::Invalid, |member| Draft::Value(member.clone()));
    }

    /// Converts a value of none of the declared kinds to the first kind that takes it.
    fn converted(&mut self, node: &Node, draft: &Draft<'a>) -> Option<Value> {
        if self.strict || own_kind(&node.kinds, draft.found()).is_some() {
            return None;
        }
        let mut kinds = node.kinds.iter();
        kinds.find_map(|kind| convert::scalar(kind, draft, self.strict, &mut self.meter).ok())
    }

    /// What a default gives, or nothing if there is none.
    pub(super) fn default(&mut self, id: SchemaId, at: &Path<'_>) -> Option<Draft<'a>> {
        let default = self.plan.node(id).default.as_ref()?;
        let Some(texts) = self.texts else {
            let affordable = self.meter.spend(default.weight);
            return Some(if affordable {
                Draft::Value(default.value.clone())
            } else {
                Draft::Invalid
            });
        };
        // At load the defaults complete each other: the text is decoded where it is needed.
        let mut draft = Draft::Text(texts.get(&id)?);
        if draft.is_null() {
            return Some(Draft::Value(Value::Null));
        }
        self.apply(id, &mut draft, at);
        Some(draft)
    }
}

/// The declared kind that a value already is; an integer literal is an integer before it is a
/// number.
fn own_kind(kinds: &[Kind], found: Found) -> Option<&Kind> {
    let find = |is: fn(&Kind) -> bool| kinds.iter().find(|kind| is(kind));
    let number = || find(|kind| matches!(kind, Kind::Number { .. }));
    match found {
        Found::Null => find(|kind| matches!(kind, Kind::Null)),
        Found::Boolean => find(|kind| matches!(kind, Kind::Boolean)),
        Found::Number(true) => find(|kind| matches!(kind, Kind::Integer(_))).or_else(number),
        Found::Number(false) => number(),
        Found::String => find(|kind| matches!(kind, Kind::Text(_))),
        Found::Array => find(|kind| matches!(kind, Kind::Array)),
        Found::Object => find(|kind| matches!(kind, Kind::Object)),
    }
}

/// The member with exactly that text, or else the only one that differs by case alone.
fn spelled<'m>(
    members: &'m Members,
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

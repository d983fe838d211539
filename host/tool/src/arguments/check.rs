//! Validates a value against all keywords of its schema (`ARG-34`).
//!
//! Arguments are validated after conversion. This differs from JSON Schema in two ways, both of
//! which decoding has settled already: null is valid where `ARG-4` accepts it, whatever other
//! keywords say, so that the value filled in for a missing argument is never rejected (`ARG-37`);
//! and `oneOf` requires at least one branch, not exactly one (`ARG-21`). Results are validated by
//! plain JSON Schema (`RES-22`).
//!
//! The validator is our own because of one requirement: alternatives that refer to each other can
//! make the work double with every level of a value, third parties write the schemas, and a library
//! cannot be interrupted. Here every step is counted. Tests compare the outcome with that of a
//! library.

use std::collections::BTreeSet;

use serde_json::Value;

use super::TOP;
use super::meter::Meter;
use super::path::Path;
use super::problem::{self, FoundKind, Problem};
use crate::json;
use crate::schema::{
    Additional, Check, Contains, CountKind, Kind, ObjectPlan, SchemaCondition, SchemaId,
    SchemaNode, SchemaPlan, is_of,
};

/// Adds the problems of validation to `known`, those of decoding.
pub(super) fn problems(
    plan: &SchemaPlan,
    tool: &str,
    id: SchemaId,
    value: &Value,
    known: Vec<Problem>,
    meter: &mut Meter,
) -> Vec<Problem> {
    let paths: BTreeSet<String> = known.iter().map(|problem| problem.path.clone()).collect();
    let listed = ListedProblems { problems: known, seen: paths.clone(), known: paths };
    let mut checker =
        Checker { plan, tool, meter, dialect: Dialect::Arguments, listed: Some(listed) };
    checker.check(id, value, &TOP);
    checker.listed.map(|listed| listed.problems).unwrap_or_default()
}

/// Returns whether a value that was decoded by a schema is valid by it.
pub(super) fn is_valid(plan: &SchemaPlan, id: SchemaId, value: &Value, meter: &mut Meter) -> bool {
    Checker { plan, tool: "", meter, dialect: Dialect::Arguments, listed: None }
        .check(id, value, &TOP)
}

/// Describes what a result violates, for the operator.
pub(super) fn violations(plan: &SchemaPlan, value: &Value, meter: &mut Meter) -> Vec<String> {
    let listed = Some(ListedProblems::default());
    let mut checker = Checker { plan, tool: "", meter, dialect: Dialect::JsonSchema, listed };
    checker.check(SchemaPlan::ROOT, value, &TOP);
    let problems = checker.listed.map(|listed| listed.problems).unwrap_or_default();
    problems.into_iter().map(|problem| problem.message).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Arguments,
    JsonSchema,
}

/// State of one validation.
pub(super) struct Checker<'c> {
    pub(super) plan: &'c SchemaPlan,
    tool: &'c str,
    pub(super) meter: &'c mut Meter,
    dialect: Dialect,
    /// Problems found so far, or `None` if only the verdict matters.
    listed: Option<ListedProblems>,
}

#[derive(Default)]
struct ListedProblems {
    problems: Vec<Problem>,
    /// Paths that have a problem; each path gets at most one.
    seen: BTreeSet<String>,
    /// Paths where decoding failed. There is no value to judge there, and the values that contain
    /// them are not what the caller meant.
    known: BTreeSet<String>,
}

impl<'c> Checker<'c> {
    /// Checks a value and returns whether it is valid. Stops at the first problem unless problems
    /// are listed.
    pub(super) fn check(&mut self, id: SchemaId, value: &Value, at: &Path<'_>) -> bool {
        if !self.meter.enter() {
            return false;
        }
        let plan = self.plan;
        let valid = self.check_node(plan.node(id), value, at);
        self.meter.leave();
        valid
    }

    /// Returns whether a value is valid, without listing problems.
    pub(super) fn accepts(&mut self, id: SchemaId, value: &Value) -> bool {
        let listed = self.listed.take();
        let valid = self.check(id, value, &TOP);
        self.listed = listed;
        valid
    }

    fn check_node(&mut self, node: &'c SchemaNode, value: &Value, at: &Path<'_>) -> bool {
        if self.dialect == Dialect::Arguments && value.is_null() && node.nullable {
            return true;
        }
        if self.listed.as_ref().is_some_and(|listed| listed.has_known(at)) {
            return true;
        }
        if let Some(keyword) = node.never {
            return self.fail(at, keyword);
        }
        let mut valid = true;
        for check in &node.checks {
            valid &= self.one(node, check, value, at);
            if !valid && self.listed.is_none() {
                return false;
            }
        }
        valid
    }

    fn one(
        &mut self,
        node: &'c SchemaNode,
        check: &'c Check,
        value: &Value,
        at: &Path<'_>,
    ) -> bool {
        match check {
            Check::Reference(target) => self.check(*target, value, at),
            Check::AllOf(parts) => self.all(parts.iter().map(|part| (*part, value)), at),
            Check::Types(types) => {
                types.iter().any(|name| is_of(value, name))
                    || self.wrong_kind(node, types, value, at)
            }
            Check::Properties => self.members(node.object.as_deref(), value, at),
            Check::Items => self.items(node, value, at),
            Check::Required(names) => self.required(names, value, at),
            Check::DependentSchemas => self.dependents(node, value, at),
            Check::Condition(condition) => self.condition(*condition, value, at),
            Check::Members(members) => {
                let is_member = members.values.iter().any(|member| json::equal(member, value));
                is_member || self.judges(at, |checker| checker.no_member(members, at))
            }
            _ => match self.violated(node, check, value) {
                None => true,
                // An element that failed to decode still counts as one.
                Some(keyword @ ("minItems" | "maxItems")) => self.fail(at, keyword),
                Some(keyword) => self.judges(at, |checker| checker.fail(at, keyword)),
            },
        }
    }

    /// Returns the keyword that a value violates, for keywords that report at most one problem, at
    /// the value itself.
    fn violated(
        &mut self,
        node: &'c SchemaNode,
        check: &'c Check,
        value: &Value,
    ) -> Option<&'static str> {
        match (check, value) {
            (Check::Lower(keyword, bound, inclusive), Value::Number(number)) => {
                let order = json::compare(number, bound);
                (order.is_lt() || (order.is_eq() && !inclusive)).then_some(keyword)
            }
            (Check::Upper(keyword, bound, inclusive), Value::Number(number)) => {
                let order = json::compare(number, bound);
                (order.is_gt() || (order.is_eq() && !inclusive)).then_some(keyword)
            }
            (Check::MultipleOf(divisor), Value::Number(number)) => {
                (!json::is_multiple(number, divisor)).then_some("multipleOf")
            }
            (Check::AtLeast(counted, least), _) => {
                (self.count(*counted, value)? < *least).then_some(counted.keywords().0)
            }
            (Check::AtMost(counted, most), _) => {
                (self.count(*counted, value)? > *most).then_some(counted.keywords().1)
            }
            (Check::Pattern(pattern), Value::String(text)) => {
                self.spend_on(text.len() / 32);
                (!pattern.is_match(text)).then_some("pattern")
            }
            (Check::Unique, Value::Array(items)) => {
                self.spend_on(items.len());
                json::has_duplicates(items).then_some("uniqueItems")
            }
            (Check::Contains(contains), Value::Array(items)) => self.contained(*contains, items),
            (Check::PropertyNames(names), Value::Object(members)) => {
                let valid =
                    members.keys().all(|name| self.accepts(*names, &Value::from(name.as_str())));
                (!valid).then_some("propertyNames")
            }
            (Check::DependentRequired(lists), Value::Object(members)) => {
                let lacks = |names: &[String]| names.iter().any(|name| !members.contains_key(name));
                let broken =
                    lists.iter().any(|(name, names)| members.contains_key(name) && lacks(names));
                broken.then_some("dependentRequired")
            }
            (Check::AnyOf(branches), _) => (!self.any(branches, value)).then_some("anyOf"),
            (Check::OneOf(branches), _) => self.one_of(branches, value),
            (Check::Not(refused), _) => self.accepts(*refused, value).then_some("not"),
            (Check::UnevaluatedProperties(rest), Value::Object(members)) => {
                self.unevaluated_member(node, *rest, value, members)
            }
            (Check::UnevaluatedItems(rest), Value::Array(items)) => {
                self.unevaluated_item(node, *rest, value, items)
            }
            _ => None,
        }
    }

    fn count(&mut self, counted: CountKind, value: &Value) -> Option<u64> {
        let count = match (counted, value) {
            (CountKind::Characters, Value::String(text)) => {
                self.spend_on(text.len() / 256);
                text.chars().count()
            }
            (CountKind::Items, Value::Array(items)) => items.len(),
            (CountKind::Members, Value::Object(members)) => members.len(),
            _ => return None,
        };
        u64::try_from(count).ok()
    }

    fn contained(&mut self, contains: Contains, items: &[Value]) -> Option<&'static str> {
        let count = items.iter().filter(|item| self.accepts(contains.node, item)).count();
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        if count < contains.least.unwrap_or(1) {
            return Some(if contains.least.is_some() { "minContains" } else { "contains" });
        }
        (count > contains.most.unwrap_or(u64::MAX)).then_some("maxContains")
    }

    fn any(&mut self, branches: &[SchemaId], value: &Value) -> bool {
        branches.iter().any(|branch| self.accepts(*branch, value))
    }

    fn one_of(&mut self, branches: &[SchemaId], value: &Value) -> Option<&'static str> {
        let valid = match self.dialect {
            Dialect::Arguments => self.any(branches, value),
            Dialect::JsonSchema => {
                branches.iter().filter(|branch| self.accepts(**branch, value)).count() == 1
            }
        };
        (!valid).then_some("oneOf")
    }

    fn all<'v>(
        &mut self,
        parts: impl Iterator<Item = (SchemaId, &'v Value)>,
        at: &Path<'_>,
    ) -> bool {
        let mut valid = true;
        for (part, value) in parts {
            valid &= self.check(part, value, at);
            if !valid && self.listed.is_none() {
                return false;
            }
        }
        valid
    }

    fn members(&mut self, plan: Option<&'c ObjectPlan>, value: &Value, at: &Path<'_>) -> bool {
        let (Some(plan), Value::Object(members)) = (plan, value) else { return true };
        let mut valid = true;
        for (name, member) in members {
            valid &= self.member(plan, name, member, &at.name(name));
            if !valid && self.listed.is_none() {
                return false;
            }
        }
        valid
    }

    fn member(&mut self, plan: &'c ObjectPlan, name: &str, value: &Value, at: &Path<'_>) -> bool {
        self.spend_on(1 + plan.patterns.len());
        let property = plan.index.get(name).and_then(|index| plan.properties.get(*index));
        let patterns = plan
            .patterns
            .iter()
            .filter(|(pattern, _)| pattern.is_match(name))
            .map(|(_, node)| *node);
        let named: Vec<SchemaId> =
            property.map(|property| property.node).into_iter().chain(patterns).collect();
        match plan.additional {
            Additional::Schema(node) if named.is_empty() => self.check(node, value, at),
            Additional::Forbidden if named.is_empty() => {
                let tool = self.tool;
                self.report(at, "additionalProperties", || problem::unexpected(at, tool, None))
            }
            _ => self.all(named.into_iter().map(|node| (node, value)), at),
        }
    }

    fn items(&mut self, node: &'c SchemaNode, value: &Value, at: &Path<'_>) -> bool {
        let (Some(plan), Value::Array(items)) = (&node.array, value) else { return true };
        let mut valid = true;
        for (index, item) in items.iter().enumerate() {
            let Some(node) = plan.prefix.get(index).copied().or(plan.items) else { break };
            valid &= self.check(node, item, &at.index(index));
            if !valid && self.listed.is_none() {
                return false;
            }
        }
        valid
    }

    fn required(&mut self, names: &[String], value: &Value, at: &Path<'_>) -> bool {
        let Value::Object(members) = value else { return true };
        let mut valid = true;
        for name in names.iter().filter(|name| !members.contains_key(*name)) {
            let (at, tool) = (at.name(name), self.tool);
            valid = self.report(&at, "required", || problem::required(&at, tool));
        }
        valid
    }

    fn dependents(&mut self, node: &'c SchemaNode, value: &Value, at: &Path<'_>) -> bool {
        let present = node.dependents.iter().filter(|(name, _)| value.get(name).is_some());
        self.all(present.map(|(_, dependent)| (*dependent, value)), at)
    }

    fn condition(&mut self, condition: SchemaCondition, value: &Value, at: &Path<'_>) -> bool {
        if self.listed.as_ref().is_some_and(|listed| listed.has_known_below(at)) {
            return true;
        }
        let next =
            if self.accepts(condition.test, value) { condition.then } else { condition.otherwise };
        next.is_none_or(|next| self.check(next, value, at))
    }

    fn no_member(&mut self, members: &'c crate::schema::AllowedValues, at: &Path<'_>) -> bool {
        self.report(at, "enum", || problem::not_a_member(at, members))
    }

    fn wrong_kind(
        &mut self,
        node: &'c SchemaNode,
        types: &[&'static str],
        value: &Value,
        at: &Path<'_>,
    ) -> bool {
        let kinds: Vec<&str> = node.kinds.iter().map(Kind::expected).collect();
        let expected = if kinds.is_empty() { types } else { &kinds };
        self.report(at, "type", || problem::kind(at, expected, FoundKind::of(value)))
    }

    /// Runs `judge` unless a part of the value failed to decode: the whole cannot be judged then.
    fn judges(&mut self, at: &Path<'_>, judge: impl FnOnce(&mut Self) -> bool) -> bool {
        let unknown = self.listed.as_ref().is_some_and(|listed| listed.has_known_below(at));
        unknown || judge(self)
    }

    fn fail(&mut self, at: &Path<'_>, keyword: &'static str) -> bool {
        self.report(at, keyword, || problem::constraint(at, keyword))
    }

    /// Lists a problem unless its path already has one. Always returns false: the value is invalid.
    fn report(&mut self, at: &Path<'_>, keyword: &str, problem: impl FnOnce() -> Problem) -> bool {
        let dialect = self.dialect;
        if let Some(listed) = &mut self.listed
            && listed.seen.insert(at.to_string())
        {
            let mut problem = problem();
            if dialect == Dialect::JsonSchema {
                problem.message = format!("'{}' violates '{keyword}'", problem.path);
            }
            listed.problems.push(problem);
        }
        false
    }

    pub(super) fn spend_on(&mut self, amount: usize) {
        self.meter.spend(u64::try_from(amount).unwrap_or(u64::MAX));
    }
}

impl ListedProblems {
    fn has_known(&self, at: &Path<'_>) -> bool {
        !self.known.is_empty() && self.known.contains(&at.to_string())
    }

    fn has_known_below(&self, at: &Path<'_>) -> bool {
        if self.known.is_empty() {
            return false;
        }
        let at = at.to_string();
        let after = |separator: &str| {
            let start = format!("{at}{separator}");
            self.known.range(start.clone()..).next().is_some_and(|path| path.starts_with(&start))
        };
        at.is_empty() || after(".") || after("[")
    }
}

//! Collects the members and elements that a schema has evaluated, for `unevaluatedProperties` and
//! `unevaluatedItems`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::check::Checker;
use crate::schema::{Additional, Check, SchemaId, SchemaNode};

impl<'c> Checker<'c> {
    /// Returns the keyword if an unevaluated member is not valid by `rest`.
    pub(super) fn unevaluated_member(
        &mut self,
        node: &'c SchemaNode,
        rest: SchemaId,
        value: &Value,
        members: &Map<String, Value>,
    ) -> Option<&'static str> {
        let mut evaluated = HashSet::new();
        self.evaluated_members(node, value, members, &mut evaluated);
        let mut others = members.iter().filter(|(name, _)| !evaluated.contains(name.as_str()));
        (!others.all(|(_, member)| self.accepts(rest, member))).then_some("unevaluatedProperties")
    }

    /// Returns the keyword if an unevaluated element is not valid by `rest`.
    pub(super) fn unevaluated_item(
        &mut self,
        node: &'c SchemaNode,
        rest: SchemaId,
        value: &Value,
        items: &[Value],
    ) -> Option<&'static str> {
        let mut evaluated = HashSet::new();
        self.evaluated_items(node, value, items, &mut evaluated);
        let mut others = items.iter().enumerate().filter(|(index, _)| !evaluated.contains(index));
        (!others.all(|(_, item)| self.accepts(rest, item))).then_some("unevaluatedItems")
    }

    fn evaluated_members<'v>(
        &mut self,
        node: &'c SchemaNode,
        value: &Value,
        members: &'v Map<String, Value>,
        evaluated: &mut HashSet<&'v str>,
    ) {
        self.spend_on(members.len());
        if let Some(object) = &node.object {
            let speaks_of_all = object.additional != Additional::Unmentioned;
            let speaks_of = |name: &&String| {
                speaks_of_all
                    || object.index.contains_key(*name)
                    || object.patterns.iter().any(|(pattern, _)| pattern.is_match(name))
            };
            evaluated.extend(members.keys().filter(speaks_of).map(String::as_str));
        }
        for part in self.parts(node, value) {
            let part = self.plan.node(part);
            if part.checks.iter().any(|check| matches!(check, Check::UnevaluatedProperties(_))) {
                evaluated.extend(members.keys().map(String::as_str));
            }
            self.evaluated_members(part, value, members, evaluated);
        }
    }

    fn evaluated_items(
        &mut self,
        node: &'c SchemaNode,
        value: &Value,
        items: &[Value],
        evaluated: &mut HashSet<usize>,
    ) {
        self.spend_on(items.len());
        if let Some(array) = &node.array {
            let end = if array.items.is_some() { items.len() } else { array.prefix.len() };
            evaluated.extend(0..end);
        }
        for check in &node.checks {
            if let Check::Contains(contains) = check {
                let found =
                    items.iter().enumerate().filter(|(_, item)| self.accepts(contains.node, item));
                evaluated.extend(found.map(|(index, _)| index));
            }
        }
        for part in self.parts(node, value) {
            let part = self.plan.node(part);
            if part.checks.iter().any(|check| matches!(check, Check::UnevaluatedItems(_))) {
                evaluated.extend(0..items.len());
            }
            self.evaluated_items(part, value, items, evaluated);
        }
    }

    /// Returns the schemas that apply to the same value and accept it. They form no cycle, so
    /// recursion over them ends.
    fn parts(&mut self, node: &'c SchemaNode, value: &Value) -> Vec<SchemaId> {
        let choices = node.choices.iter().flat_map(|choice| &choice.branches);
        let mut parts: Vec<SchemaId> =
            node.reference.iter().chain(&node.all_of).chain(choices).copied().collect();
        let dependents = node.dependents.iter().filter(|(name, _)| value.get(name).is_some());
        parts.extend(dependents.map(|(_, dependent)| *dependent));
        if let Some(condition) = node.condition {
            parts.push(condition.test);
            let passes = self.accepts(condition.test, value);
            parts.extend(if passes { condition.then } else { condition.otherwise });
        }
        parts.retain(|part| self.accepts(*part, value));
        parts
    }
}

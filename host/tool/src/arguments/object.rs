//! Objects: presence of declared properties (`ARG-2`), maps (`ARG-8`), and undeclared keys
//! (`ARG-24` to `ARG-27`).

use serde_json::Value;

use super::decoder::Decoder;
use super::draft::{DraftEntry, ObjectDraft, ValueDraft};
use super::path::Path;
use super::problem;
use crate::json::JsonObject;
use crate::name::nearest;
use crate::schema::{Additional, ObjectPlan, Property, SchemaId};

/// Longest names that suggestions consider. Comparing two names takes time proportional to the
/// product of their lengths.
const SUGGESTION_BYTES_MAX: usize = 64;

impl<'a> Decoder<'a> {
    /// Decodes the members of an object. An object schema without keywords for members is a map of
    /// anything.
    pub(super) fn object(
        &mut self,
        plan: Option<&'a ObjectPlan>,
        draft: &mut ValueDraft<'a>,
        at: &Path<'_>,
    ) {
        let Some(plan) = plan else { return };
        let was_open = matches!(draft, ValueDraft::Object(_));
        let Some(object) = opened(draft) else { return };
        let members = object.entries.len().saturating_add(plan.properties.len());
        if !self.meter.spend(u64::try_from(members).unwrap_or(u64::MAX)) {
            return;
        }
        object.drops |= plan.drops;
        object.keeps |= plan.keeps;
        self.properties(plan, object, at);
        self.others(plan, object, at);
        self.required_elsewhere(plan, object, at);
        if !was_open {
            let declared_index = |entry: &DraftEntry<'_>| {
                plan.index.get(entry.name.as_ref()).copied().unwrap_or(usize::MAX)
            };
            object.entries.sort_by_key(declared_index);
        }
    }

    fn properties(&mut self, plan: &'a ObjectPlan, object: &mut ObjectDraft<'a>, at: &Path<'_>) {
        let mut positions = vec![None; plan.properties.len()];
        for (position, entry) in object.entries.iter_mut().enumerate() {
            let declared =
                plan.index.get(entry.name.as_ref()).and_then(|index| positions.get_mut(*index));
            if let Some(declared) = declared {
                *declared = Some(position);
                entry.declared = true;
            }
        }
        let mut left_out = vec![false; object.entries.len()];
        for (property, position) in plan.properties.iter().zip(positions) {
            if self.should_stop() {
                return;
            }
            let at = at.name(&property.name);
            match position.and_then(|position| object.entries.get_mut(position)) {
                Some(entry) if entry.draft.is_supplied() => {
                    self.apply(property.node, &mut entry.draft, &at)
                }
                _ => self.absent(property, position, object, &mut left_out, &at),
            }
        }
        retain(&mut object.entries, left_out);
    }

    /// Fills in a property that was not supplied according to its class (`ARG-2`), or marks its
    /// null for removal.
    fn absent(
        &mut self,
        property: &'a Property,
        position: Option<usize>,
        object: &mut ObjectDraft<'a>,
        left_out: &mut [bool],
        at: &Path<'_>,
    ) {
        let given = self.unsupplied(property.node, at);
        if given.is_none() && property.required {
            let tool = self.tool;
            self.report(|| problem::required(at, tool));
        }
        match (given, position.and_then(|position| object.entries.get_mut(position))) {
            (Some(draft), Some(entry)) => entry.draft = draft,
            (Some(draft), None) => {
                let name = property.name.as_str().into();
                object.entries.push(DraftEntry { name, draft, declared: true });
            }
            (None, _) => mark(left_out, position),
        }
    }

    /// Returns the default, or null if null is accepted (`ARG-3`).
    pub(super) fn unsupplied(&mut self, id: SchemaId, at: &Path<'_>) -> Option<ValueDraft<'a>> {
        if let Some(default) = self.default(id, at) {
            return Some(default);
        }
        self.plan.node(id).nullable.then_some(ValueDraft::Value(Value::Null))
    }

    /// Decodes members that `properties` does not name, and those that a pattern also matches.
    fn others(&mut self, plan: &'a ObjectPlan, object: &mut ObjectDraft<'a>, at: &Path<'_>) {
        if plan.patterns.is_empty() && plan.additional == Additional::Unmentioned {
            return;
        }
        let mut left_out = vec![false; object.entries.len()];
        for (entry, left_out) in object.entries.iter_mut().zip(&mut left_out) {
            if self.should_stop() {
                return;
            }
            *left_out = !self.other(plan, entry, at);
        }
        retain(&mut object.entries, left_out);
    }

    /// Decodes one member. Returns false if it is to be removed.
    fn other(&mut self, plan: &'a ObjectPlan, entry: &mut DraftEntry<'a>, at: &Path<'_>) -> bool {
        let is_property = plan.index.contains_key(entry.name.as_ref());
        let name = entry.name.clone();
        let at = at.name(&name);
        let mut is_declared = is_property;
        for (pattern, node) in &plan.patterns {
            if pattern.is_match(&name) {
                is_declared = true;
                if !self.map_value(*node, entry, &at) {
                    return false;
                }
            }
        }
        match plan.additional {
            _ if is_declared => true,
            Additional::Unmentioned => true,
            Additional::Schema(node) => self.map_value(node, entry, &at),
            Additional::Forbidden => {
                self.unexpected(plan, entry, &at);
                true
            }
        }
    }

    /// Decodes a value of a map. A null becomes the default or stays null; if neither is possible,
    /// returns false to remove it (`ARG-8`).
    fn map_value(&mut self, id: SchemaId, entry: &mut DraftEntry<'a>, at: &Path<'_>) -> bool {
        entry.declared = true;
        if entry.draft.is_supplied() {
            self.apply(id, &mut entry.draft, at);
            return true;
        }
        match self.unsupplied(id, at) {
            Some(draft) => {
                entry.draft = draft;
                true
            }
            None => false,
        }
    }

    fn unexpected(&mut self, plan: &'a ObjectPlan, entry: &mut DraftEntry<'a>, at: &Path<'_>) {
        let tool = self.tool;
        let cost = u64::try_from(plan.properties.len()).unwrap_or(u64::MAX);
        let comparable = entry.name.len() <= SUGGESTION_BYTES_MAX && self.meter.spend(cost);
        self.report(|| {
            let names = plan.properties.iter().map(|property| property.name.as_str());
            let names = names.filter(|name| comparable && name.len() <= SUGGESTION_BYTES_MAX);
            problem::unexpected(at, tool, nearest(&entry.name, names))
        });
        entry.declared = true;
        entry.draft = ValueDraft::Invalid;
    }

    /// Checks names that this schema requires and another schema of the same value declares.
    fn required_elsewhere(
        &mut self,
        plan: &'a ObjectPlan,
        object: &ObjectDraft<'a>,
        at: &Path<'_>,
    ) {
        let cost = plan.required_elsewhere.len().saturating_mul(object.entries.len());
        self.meter.spend(u64::try_from(cost).unwrap_or(u64::MAX));
        for name in &plan.required_elsewhere {
            // A null that a schema has accepted is a value; a null that is still text was not
            // supplied.
            let is_there = |entry: &DraftEntry<'_>| {
                entry.name == *name
                    && !matches!(&entry.draft, ValueDraft::Text(json) if json.is_null())
            };
            if !object.entries.iter().any(is_there) {
                let tool = self.tool;
                self.report(|| problem::required(&at.name(name), tool));
            }
        }
    }
}

/// Marks the entry at `position`, if there is one.
fn mark(left_out: &mut [bool], position: Option<usize>) {
    if let Some(mark) = position.and_then(|position| left_out.get_mut(position)) {
        *mark = true;
    }
}

/// Removes the marked entries. Entries that were added after the marks were made stay.
fn retain(entries: &mut Vec<DraftEntry<'_>>, left_out: Vec<bool>) {
    if left_out.contains(&true) {
        let mut left_out = left_out.into_iter();
        entries.retain(|_| !left_out.next().unwrap_or_default());
    }
}

/// Opens an object, member by member.
fn opened<'d, 'a>(draft: &'d mut ValueDraft<'a>) -> Option<&'d mut ObjectDraft<'a>> {
    let entry = |name, draft| DraftEntry { name, draft, declared: false };
    let entries = match std::mem::replace(draft, ValueDraft::Invalid) {
        ValueDraft::Object(object) => {
            *draft = ValueDraft::Object(object);
            return draft.as_object_mut();
        }
        ValueDraft::Text(json) => {
            let members = json.as_object().into_iter().flat_map(JsonObject::members);
            members
                .map(|(name, value)| entry(name.as_ref().into(), ValueDraft::Text(value)))
                .collect()
        }
        ValueDraft::Value(Value::Object(members)) => members
            .into_iter()
            .map(|(name, value)| entry(name.into(), ValueDraft::Value(value)))
            .collect(),
        _ => vec![],
    };
    *draft = ValueDraft::Object(ObjectDraft { entries, ..ObjectDraft::default() });
    draft.as_object_mut()
}

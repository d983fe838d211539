//! Determines which properties must be supplied, and which are null or have a default if they are
//! not (`ARG-2`, `ARG-4`).

use super::plan::{Check, Kind, NodeId, SchemaNode, SchemaPlan};
use super::pointer;
use super::refuse::{SchemaRefusal, refuse};
use super::sites::{Site, Sites};
use crate::declaration::Reason;
use crate::json::{Json, JsonObject};
use crate::schema::{Note, extent, keywords};

/// Determines for every node whether it accepts null. Schemas that apply to the same value form no
/// cycle, so recursion ends.
pub(super) fn fill_nullable(plan: &mut SchemaPlan, sites: &Sites<'_>) {
    let mut known = vec![None; sites.len()];
    for (id, _) in sites.iter() {
        let nullable = accepts_null(plan, sites, id, &mut known);
        if let Some(node) = plan.node_mut(id) {
            node.nullable = nullable;
        }
    }
}

/// Implements `ARG-4`: a stated `type` decides against null if it does not contain it; without one,
/// any keyword that admits null is enough.
fn accepts_null(
    plan: &SchemaPlan,
    sites: &Sites<'_>,
    id: NodeId,
    known: &mut Vec<Option<bool>>,
) -> bool {
    if let Some(Some(answer)) = known.get(id.0) {
        return *answer;
    }
    let node = plan.node(id);
    let schema = sites.get(id).and_then(|site| site.json.as_object());
    let states_type = schema.is_some_and(|schema| schema.get("type").is_some());
    let answer = if node.never.is_some() {
        false
    } else if states_type {
        node.kinds.contains(&Kind::Null)
    } else {
        let mut accepts = |part: NodeId| accepts_null(plan, sites, part, known);
        has_null_member(node)
            || node
                .choices
                .iter()
                .flat_map(|choice| &choice.branches)
                .any(|branch| accepts(*branch))
            || (!node.all_of.is_empty() && node.all_of.iter().all(|part| accepts(*part)))
            || node.reference.is_some_and(&mut accepts)
            || schema.is_none_or(|schema| restricts_nothing(schema) && node.kinds.is_empty())
    };
    if let Some(known) = known.get_mut(id.0) {
        *known = Some(answer);
    }
    answer
}

fn has_null_member(node: &SchemaNode) -> bool {
    let members = |check: &Check| match check {
        Check::Members(members) => members.values.iter().any(serde_json::Value::is_null),
        _ => false,
    };
    node.checks.iter().any(members)
}

/// Returns whether no keyword restricts the type of a value.
fn restricts_nothing(schema: &JsonObject<'_>) -> bool {
    let restricting = ["enum", "const", "anyOf", "oneOf", "allOf", "$ref", "not", "if"];
    !restricting.into_iter().any(|name| schema.get(name).is_some())
}

/// Sorts the properties of every object into the classes of `ARG-2`. Nullability and defaults must
/// be known.
pub(super) fn fill_required(
    plan: &mut SchemaPlan,
    sites: &Sites<'_>,
) -> (Vec<Note>, Vec<SchemaRefusal>) {
    let (mut notes, mut refusals) = (Vec::new(), Vec::new());
    for (id, site) in sites.iter() {
        let at = pointer::join(&site.pointer, "required");
        let Some(listed) = site.json.as_object().and_then(|schema| schema.get("required")) else {
            continue;
        };
        let listed = keywords::names(listed);
        refusals.extend(check_listed_once(&at, &listed).err());
        let mut asked = Vec::new();
        for (index, name) in listed.into_iter().enumerate() {
            let declared = declaration_of(plan, sites, id, &name);
            let Some(property) = declared else {
                let pointer = pointer::join(&at, &index.to_string());
                refusals
                    .push(SchemaRefusal { pointer, reason: Reason::UndeclaredRequired { name } });
                continue;
            };
            match unneeded(plan, property, &site.pointer, &name) {
                Some(note) => notes.push(note),
                None => asked.push(name),
            }
        }
        ask_for(plan, id, asked);
    }
    (notes, refusals)
}

fn check_listed_once(at: &str, listed: &[String]) -> Result<(), SchemaRefusal> {
    let twice = listed
        .iter()
        .enumerate()
        .find(|(index, name)| listed.iter().take(*index).any(|n| n == *name));
    match twice {
        Some((index, name)) => refuse(
            &pointer::join(at, &index.to_string()),
            Reason::ListedTwice { name: name.clone() },
        ),
        None => Ok(()),
    }
}

/// Returns the reason why a listed property need not be supplied, if there is one (`ARG-40`).
fn unneeded(plan: &SchemaPlan, property: NodeId, object: &str, name: &str) -> Option<Note> {
    let node = plan.node(property);
    let (object, property) = (object.to_owned(), name.to_owned());
    if node.default.is_some() {
        return Some(Note::RequiredWithDefault { object, property });
    }
    node.nullable.then_some(Note::RequiredButNullable { object, property })
}

/// Records the names that must be supplied: on the property if it is declared here, as a bare name
/// otherwise.
fn ask_for(plan: &mut SchemaPlan, id: NodeId, asked: Vec<String>) {
    let Some(node) = plan.node_mut(id) else { return };
    if let Some(object) = &mut node.object {
        for property in &mut object.properties {
            property.required = asked.contains(&property.name);
        }
        object.required_elsewhere =
            asked.iter().filter(|name| !object.index.contains_key(*name)).cloned().collect();
    }
    for check in &mut node.checks {
        if let Check::Required(names) = check {
            names.clone_from(&asked);
        }
    }
}

/// Returns the schema of a property that `required` names: declared in the same schema, or in
/// another one that applies to the same object, as in
/// `{"properties": {"a": …}, "anyOf": [{"required": ["a"]}, …]}`.
fn declaration_of(plan: &SchemaPlan, sites: &Sites<'_>, id: NodeId, name: &str) -> Option<NodeId> {
    let mut outermost = id;
    while let Some(around) = sites.get(outermost).and_then(|site| site.around) {
        outermost = around;
    }
    let mut seen = vec![outermost];
    let mut pending = vec![outermost];
    let own = declared_in(plan, id, name);
    own.or_else(|| {
        while let Some(next) = pending.pop() {
            if let Some(found) = declared_in(plan, next, name) {
                return Some(found);
            }
            for part in sites.get(next).map(extent::in_place).unwrap_or_default() {
                if !seen.contains(&part) {
                    seen.push(part);
                    pending.push(part);
                }
            }
        }
        None
    })
}

fn declared_in(plan: &SchemaPlan, id: NodeId, name: &str) -> Option<NodeId> {
    let object = plan.node(id).object.as_ref()?;
    let index = object.index.get(name)?;
    object.properties.get(*index).map(|property| property.node)
}

/// Returns the JSON of the default that applies to a schema: its own, or that of its `$ref` target
/// (`ARG-2`).
pub(super) fn default_text<'s, 'j>(
    sites: &'s Sites<'j>,
    id: NodeId,
) -> Option<(&'s Site<'j>, &'j Json<'j>)> {
    let mut next = Some(id);
    while let Some(site) = next.and_then(|id| sites.get(id)) {
        if let Some(default) = site.json.as_object().and_then(|schema| schema.get("default")) {
            return Some((site, default));
        }
        next = site.reference;
    }
    None
}

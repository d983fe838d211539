//! Defaults, decoded once at load by their own schema and without tolerance (`ARG-38`), and
//! completed by the defaults of their parts (`ARG-7`).
//!
//! A default that contains itself, as in `{"properties": {"child": {"$ref": "#", "default": {}}}}`,
//! has no end, and defaults that contain each other can grow without bound. Both exceed a limit on
//! work, and the declaration is rejected.

use std::collections::HashMap;

use super::plan::{DefaultValue, NodeId, SchemaPlan};
use super::pointer;
use super::presence::default_text;
use super::refuse::SchemaRefusal;
use super::sites::Sites;
use crate::arguments::{UnusableDefault, complete, weight};
use crate::declaration::Reason;
use crate::json::Json;

/// Returns the JSON of the defaults that apply to each schema.
pub(super) fn texts<'j>(sites: &Sites<'j>) -> HashMap<NodeId, &'j Json<'j>> {
    sites.iter().filter_map(|(id, _)| Some((id, default_text(sites, id)?.1))).collect()
}

/// Marks the schemas that have a default, before the values are known.
pub(super) fn mark(plan: &mut SchemaPlan, texts: &HashMap<NodeId, &Json<'_>>) {
    for id in texts.keys() {
        if let Some(node) = plan.node_mut(*id) {
            node.default = Some(DefaultValue { value: serde_json::Value::Null, weight: 0 });
        }
    }
}

/// Decodes each default by the schema that it applies to. Returns a refusal for each that does not
/// decode.
pub(super) fn fill(
    plan: &mut SchemaPlan,
    sites: &Sites<'_>,
    texts: &HashMap<NodeId, &Json<'_>>,
) -> Vec<SchemaRefusal> {
    let mut refusals = Vec::new();
    let mut values = Vec::with_capacity(texts.len());
    let mut steps_left = STEPS_MAX;
    for (id, site) in sites.iter() {
        let Some(text) = texts.get(&id) else { continue };
        let value = match complete(plan, id, text, texts, &mut steps_left) {
            Ok(value) => value,
            Err(unfit) => {
                let own =
                    site.json.as_object().is_some_and(|schema| schema.get("default").is_some());
                let pointer = pointer::join(&site.pointer, if own { "default" } else { "$ref" });
                let is_last = matches!(unfit, UnusableDefault::TooMuchWork);
                refusals.push(SchemaRefusal { pointer, reason: reason(unfit) });
                // The work is used up, so the other defaults cannot be checked.
                if is_last {
                    break;
                }
                continue;
            }
        };
        let weight = weight(&value);
        values.push((id, DefaultValue { value, weight }));
    }
    for (id, default) in values {
        if let Some(node) = plan.node_mut(id) {
            node.default = Some(default);
        }
    }
    refusals
}

/// Maximum work for all defaults of a declaration. One step is about one schema applied to one
/// value: a declaration of 64 KiB needs some thousands.
const STEPS_MAX: u64 = 500_000;

fn reason(unfit: UnusableDefault) -> Reason {
    match unfit {
        UnusableDefault::TooMuchWork => Reason::TooMuchWork,
        UnusableDefault::Problem(problem) => {
            Reason::Default { problem: problem.trim_end_matches('.').to_owned() }
        }
    }
}

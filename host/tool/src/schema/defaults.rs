//! Defaults, decoded once at load: by their own schema and without tolerance (`ARG-38`), and
//! completed by the defaults of what they contain (`ARG-7`).
//!
//! A default that holds itself, as in `{"properties": {"child": {"$ref": "#", "default": {}}}}`,
//! has no end; many that hold each other can become as large as memory. Both run into a limit of
//! work and refuse the declaration.

use std::collections::HashMap;

use super::plan::{DefaultValue, NodeId, Plan};
use super::pointer;
use super::presence::default_text;
use super::refuse::Refusal;
use super::sites::Sites;
use crate::arguments::{Unfit, complete, weight};
use crate::declaration::Reason;
use crate::json::Json;

/// The texts of all defaults that hold for a schema.
pub(super) fn texts<'j>(sites: &Sites<'j>) -> HashMap<NodeId, &'j Json<'j>> {
    sites.iter().filter_map(|(id, _)| Some((id, default_text(sites, id)?.1))).collect()
}

/// Marks the schemas that have a default, before their values are known.
pub(super) fn mark(plan: &mut Plan, texts: &HashMap<NodeId, &Json<'_>>) {
    for id in texts.keys() {
        if let Some(node) = plan.node_mut(*id) {
            node.default = Some(DefaultValue { value: serde_json::Value::Null, weight: 0 });
        }
    }
}

/// Decodes every default by the schema that it holds for; gives back what does not decode.
pub(super) fn fill(
    plan: &mut Plan,
    sites: &Sites<'_>,
    texts: &HashMap<NodeId, &Json<'_>>,
) -> Vec<Refusal> {
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
                let is_last = matches!(unfit, Unfit::TooMuchWork);
                refusals.push(Refusal { pointer, reason: reason(unfit) });
                // With no work left, nothing can be said about the others.
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

/// Work for all defaults of a declaration. One step is about one schema applied to one value: a
/// declaration of 64 KiB needs some thousands.
const STEPS_MAX: u64 = 500_000;

fn reason(unfit: Unfit) -> Reason {
    match unfit {
        Unfit::TooMuchWork => Reason::TooMuchWork,
        Unfit::Problem(problem) => {
            Reason::Default { problem: problem.trim_end_matches('.').to_owned() }
        }
    }
}

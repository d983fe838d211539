//! References: finds the recursive ones and those in a converted schema.

use serde_json::Value;

use crate::schema::keywords::ApplicationSite;
use crate::schema::plan::NodeId;
use crate::schema::sites::Sites;

/// Marks schemas that references lead back to while they are being expanded. Each cycle has at
/// least one of them, so copying everything else terminates.
pub(super) fn recursive(sites: &Sites<'_>) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum VisitState {
        New,
        Open,
        Done,
    }
    let mut states = vec![VisitState::New; sites.len()];
    let mut recursive = vec![false; sites.len()];
    let mut pending = vec![(NodeId(0), true)];
    while let Some((id, enters)) = pending.pop() {
        let (Some(state), Some(site)) = (states.get_mut(id.0), sites.get(id)) else { continue };
        if !enters {
            *state = VisitState::Done;
            continue;
        }
        match *state {
            VisitState::Done => continue,
            VisitState::Open => {
                if let Some(mark) = recursive.get_mut(id.0) {
                    *mark = true;
                }
                continue;
            }
            VisitState::New => *state = VisitState::Open,
        }
        pending.push((id, false));
        let applied = site.children.iter().filter(|child| child.site != ApplicationSite::Nowhere);
        pending.extend(applied.map(|child| (child.node, true)));
        pending.extend(site.reference.map(|target| (target, true)));
    }
    recursive
}

/// Returns all references in a converted schema, and possibly strings in values that look like one.
pub(super) fn references(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                pending.extend(members.values().rev());
            }
            _ => {}
        }
    }
    found
}

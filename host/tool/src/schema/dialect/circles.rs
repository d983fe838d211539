//! References: which of them lead in a circle, and which a written schema holds.

use serde_json::Value;

use crate::schema::keywords::Place;
use crate::schema::plan::NodeId;
use crate::schema::sites::Sites;

/// Marks schemas that references lead back to while they are being expanded. Each circle has at
/// least one of them, so that copying everything else comes to an end.
pub(super) fn recursive(sites: &Sites<'_>) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; sites.len()];
    let mut recursive = vec![false; sites.len()];
    let mut pending = vec![(NodeId(0), true)];
    while let Some((id, enters)) = pending.pop() {
        let (Some(state), Some(site)) = (states.get_mut(id.0), sites.get(id)) else { continue };
        if !enters {
            *state = State::Done;
            continue;
        }
        match *state {
            State::Done => continue,
            State::Open => {
                if let Some(mark) = recursive.get_mut(id.0) {
                    *mark = true;
                }
                continue;
            }
            State::New => *state = State::Open,
        }
        pending.push((id, false));
        let applied = site.children.iter().filter(|child| child.place != Place::Nowhere);
        pending.extend(applied.map(|child| (child.node, true)));
        pending.extend(site.reference.map(|target| (target, true)));
    }
    recursive
}

/// All references in a schema that was written, and perhaps a few texts that look like one.
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

//! Routing of messages (`WF-1` to `WF-4`).

use serde_json::Value;

use super::builder::Graph;
use super::edges::EdgeGroup;
use super::error::WorkflowError;
use super::message::{MessageType, Payload};
use super::snapshot::{Delivery, Snapshot};

/// Adds a message of `source` to the queue, or to the messages that fan-ins hold. A message that no
/// edge takes is dropped.
pub(super) fn send(
    graph: &Graph,
    snapshot: &mut Snapshot,
    source: &str,
    message: &Payload,
    target: Option<&str>,
) -> Result<(), WorkflowError> {
    for (index, group) in
        graph.edges.iter().enumerate().filter(|(_, group)| group.begins_at(source))
    {
        if let EdgeGroup::FanIn { from, to } = group {
            if target.is_none_or(|target| target == to) {
                join(graph, snapshot, (index, from, to), source, message);
            }
            continue;
        }
        for to in chosen(group, &message.value)? {
            let is_meant = target.is_none_or(|target| target == to);
            if is_meant && takes(graph, to, message) {
                snapshot.queue.push(Delivery {
                    to: to.to_owned(),
                    from: vec![source.to_owned()],
                    message: message.clone(),
                    request: None,
                });
            }
        }
    }
    Ok(())
}

/// Returns the targets of a message, in order.
fn chosen<'g>(group: &'g EdgeGroup, value: &Value) -> Result<Vec<&'g str>, WorkflowError> {
    Ok(match group {
        EdgeGroup::Single { to, condition, .. } => {
            let is_taken = condition.as_ref().is_none_or(|condition| condition.holds(value));
            if is_taken { vec![to] } else { Vec::new() }
        }
        EdgeGroup::FanOut { to, .. } => to.iter().map(String::as_str).collect(),
        EdgeGroup::Select { to, selection, .. } => {
            let selected = selection.select(value, to);
            let known =
                selected.iter().map(|id| to.iter().find(|to| *to == id).map(String::as_str));
            match known.collect() {
                Some(known) => known,
                None => return Err(WorkflowError::Selection { selected, targets: to.clone() }),
            }
        }
        EdgeGroup::Switch { cases, default, .. } => {
            let case = cases.iter().find(|(condition, _)| condition.holds(value));
            vec![case.map_or(default.as_str(), |(_, to)| to)]
        }
        EdgeGroup::FanIn { .. } => Vec::new(),
    })
}

/// Holds a message until every source has sent one, then sends one list in declared order (`WF-2`).
fn join(
    graph: &Graph,
    snapshot: &mut Snapshot,
    (index, from, to): (usize, &[String], &str),
    source: &str,
    message: &Payload,
) {
    if !takes(graph, to, &list([message])) {
        return;
    }
    let held = snapshot.joins.entry(index).or_default();
    held.entry(source.to_owned()).or_default().push(message.clone());
    if !from.iter().all(|source| held.get(source).is_some_and(|held| !held.is_empty())) {
        return;
    }
    let held = snapshot.joins.remove(&index).unwrap_or_default();
    let message = list(from.iter().filter_map(|source| held.get(source)).flatten());
    snapshot.queue.push(Delivery {
        to: to.to_owned(),
        from: from.to_vec(),
        message,
        request: None,
    });
}

/// Combines messages into one list.
fn list<'m>(messages: impl IntoIterator<Item = &'m Payload>) -> Payload {
    let messages: Vec<_> = messages.into_iter().collect();
    let first = messages.first().map_or(MessageType::Any, |message| message.message_type.clone());
    let is_one_type = messages.iter().all(|message| message.message_type == first);
    let of = if is_one_type { first } else { MessageType::Any };
    let values = messages.into_iter().map(|message| message.value.clone()).collect();
    Payload { message_type: MessageType::list(of), value: Value::Array(values) }
}

/// Returns whether an executor takes a message.
pub(super) fn takes(graph: &Graph, id: &str, message: &Payload) -> bool {
    let executor = graph.executor(id);
    executor.is_some_and(|executor| executor.accepts().iter().any(|taken| message.fits_type(taken)))
}

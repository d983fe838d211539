//! Checks of a graph, in the order of `WF-7`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::edges::EdgeGroup;
use super::error::InvalidWorkflow;
use super::executor::Executor;
use super::message::MessageType;

/// Checks that all names are known, no edge occurs twice, types fit, and all executors are
/// reachable.
pub(super) fn graph(
    start: &str,
    executors: &[Arc<dyn Executor>],
    indices: &HashMap<String, usize>,
    edges: &[EdgeGroup],
) -> Result<(), InvalidWorkflow> {
    let known = |what: String, id: &str| match indices.contains_key(id) {
        true => Ok(()),
        false => Err(InvalidWorkflow::UnknownExecutor { what, id: id.to_owned() }),
    };
    known("`start`".to_owned(), start)?;
    let all = || edges.iter().flat_map(|group| group.edges());
    for (from, to) in all() {
        known(format!("the edge {from}->{to}"), from)?;
        known(format!("the edge {from}->{to}"), to)?;
    }
    let mut seen = HashSet::new();
    if let Some((from, to)) = all().find(|edge| !seen.insert(*edge)) {
        return Err(InvalidWorkflow::DuplicateEdge { from: from.to_owned(), to: to.to_owned() });
    }
    let executor = |id: &str| indices.get(id).and_then(|index| executors.get(*index));
    for group in edges {
        for (from, to) in group.edges() {
            if let (Some(from), Some(to)) = (executor(from), executor(to)) {
                fitting(from.as_ref(), to.as_ref(), group.is_fan_in())?;
            }
        }
    }
    reachable(start, executors, edges)
}

/// Checks that `to` takes at least one type that `from` sends.
fn fitting(from: &dyn Executor, to: &dyn Executor, is_fan_in: bool) -> Result<(), InvalidWorkflow> {
    let mut sends = from.sends();
    if is_fan_in {
        sends = sends.into_iter().map(MessageType::list).collect();
    }
    let takes = to.accepts();
    if sends.iter().any(|sent| takes.iter().any(|taken| sent.fits(taken))) {
        return Ok(());
    }
    Err(InvalidWorkflow::Types { from: from.id().to_owned(), to: to.id().to_owned(), sends, takes })
}

fn reachable(
    start: &str,
    executors: &[Arc<dyn Executor>],
    edges: &[EdgeGroup],
) -> Result<(), InvalidWorkflow> {
    let mut next: HashMap<&str, Vec<&str>> = HashMap::new();
    for (from, to) in edges.iter().flat_map(EdgeGroup::edges) {
        next.entry(from).or_default().push(to);
    }
    let mut reached = HashSet::new();
    let mut left = vec![start];
    while let Some(id) = left.pop() {
        if reached.insert(id) {
            left.extend(next.get(id).into_iter().flatten());
        }
    }
    let missing: BTreeSet<_> =
        executors.iter().map(|executor| executor.id()).filter(|id| !reached.contains(id)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let ids = missing.into_iter().map(str::to_owned).collect();
    Err(InvalidWorkflow::Unreachable { start: start.to_owned(), ids })
}

//! Structure of a workflow. A run can continue in another workflow with the same structure
//! (`WF-12`).

use data_encoding::HEXLOWER;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::edges::EdgeGroup;
use super::executor::Executor;
use super::outputs::OutputExecutors;

/// Returns a digest of executors with their kinds and types, edges in their order, and output
/// selection. Limits are not included, so that they can be raised for a run that has exceeded them.
pub(super) fn digest(
    start: &str,
    executors: &[Arc<dyn Executor>],
    edges: &[EdgeGroup],
    designated: &OutputExecutors,
) -> String {
    let mut listed: Vec<_> = executors.iter().map(|executor| written(executor.as_ref())).collect();
    // The order in which executors are added has no effect on a run.
    listed.sort_by_key(|executor| executor.to_string());
    let form = json!({
        "start": start,
        "executors": listed,
        "edges": edges.iter().map(edge).collect::<Vec<_>>(),
        "outputs": designated.listed(),
    });
    HEXLOWER.encode(&Sha256::digest(form.to_string().as_bytes()))
}

fn written(executor: &dyn Executor) -> Value {
    json!([executor.id(), executor.kind(), executor.accepts(), executor.sends(), executor.yields()])
}

fn edge(group: &EdgeGroup) -> Value {
    match group {
        EdgeGroup::Single { from, to, condition: None } => json!(["single", from, to]),
        EdgeGroup::Single { from, to, condition: Some(condition) } => {
            json!(["if", from, to, condition.name()])
        }
        EdgeGroup::FanOut { from, to } => json!(["fan-out", from, to]),
        EdgeGroup::Select { from, to, selection } => json!(["select", from, to, selection.name()]),
        EdgeGroup::Switch { from, cases, default } => {
            let cases: Vec<_> =
                cases.iter().map(|(condition, to)| json!([condition.name(), to])).collect();
            json!(["switch", from, cases, default])
        }
        EdgeGroup::FanIn { from, to } => json!(["fan-in", from, to]),
    }
}

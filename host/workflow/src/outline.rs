//! Outline of a graph, for drawings.

use super::builder::Workflow;
use super::edges::EdgeGroup;

/// Edge of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutlinedEdge {
    /// Id of the executor that sends.
    pub from: String,
    /// Id of the executor that receives.
    pub to: String,
    /// Name of the condition or selection, `otherwise` for the default of a switch, and `all` for
    /// an edge that waits for its siblings.
    pub label: Option<String>,
}

impl Workflow {
    /// Returns the id of the executor where runs begin.
    #[must_use]
    pub fn start(&self) -> &str {
        &self.graph.start
    }

    /// Returns the edges in declared order.
    #[must_use]
    pub fn edges(&self) -> Vec<OutlinedEdge> {
        self.graph.edges.iter().flat_map(outlined).collect()
    }
}

fn outlined(group: &EdgeGroup) -> Vec<OutlinedEdge> {
    let labels: Vec<Option<&str>> = match group {
        EdgeGroup::Single { condition, .. } => {
            vec![condition.as_ref().map(super::edges::Condition::name)]
        }
        EdgeGroup::FanOut { to, .. } => vec![None; to.len()],
        EdgeGroup::Select { to, selection, .. } => vec![Some(selection.name()); to.len()],
        EdgeGroup::Switch { cases, .. } => {
            cases.iter().map(|(case, _)| Some(case.name())).chain([Some("otherwise")]).collect()
        }
        EdgeGroup::FanIn { from, .. } => vec![Some("all"); from.len()],
    };
    let edges = group.edges().into_iter().zip(labels);
    let edge = |((from, to), label): ((&str, &str), Option<&str>)| OutlinedEdge {
        from: from.to_owned(),
        to: to.to_owned(),
        label: label.map(str::to_owned),
    };
    edges.map(edge).collect()
}

//! Kinds of edges (`WF-1`).

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// Condition that a message has to fulfill to take an edge. The name identifies it in charts and in
/// the structure that checkpoints are compared by: change the name when the condition changes.
#[derive(Clone)]
pub struct Condition {
    name: String,
    holds: Arc<dyn Fn(&Value) -> bool + Send + Sync>,
}

/// Function that selects the targets of a message by their ids (`WF-4`). The name has the same use
/// as that of a [`Condition`].
#[derive(Clone)]
pub struct TargetSelection {
    name: String,
    select: Select,
}

type Select = Arc<dyn Fn(&Value, &[String]) -> Vec<String> + Send + Sync>;

/// Cases of a switch in order, and the target if none of them holds (`WF-3`).
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Switch {
    pub(super) cases: Vec<(Condition, String)>,
    pub(super) default: Option<String>,
}

/// Edges that were declared together.
#[derive(Debug, Clone)]
pub(super) enum EdgeGroup {
    Single { from: String, to: String, condition: Option<Condition> },
    FanOut { from: String, to: Vec<String> },
    Select { from: String, to: Vec<String>, selection: TargetSelection },
    Switch { from: String, cases: Vec<(Condition, String)>, default: String },
    FanIn { from: Vec<String>, to: String },
}

impl Condition {
    /// Creates a condition.
    pub fn new(
        name: impl Into<String>,
        holds: impl Fn(&Value) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), holds: Arc::new(holds) }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the condition holds for a value.
    #[must_use]
    pub fn holds(&self, value: &Value) -> bool {
        (self.holds)(value)
    }
}

impl TargetSelection {
    /// Creates a selection. The function receives the value and the ids of all targets.
    pub fn new(
        name: impl Into<String>,
        select: impl Fn(&Value, &[String]) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), select: Arc::new(select) }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn select(&self, value: &Value, targets: &[String]) -> Vec<String> {
        (self.select)(value, targets)
    }
}

impl Switch {
    /// Creates a switch without cases.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a case after the existing ones.
    pub fn case(mut self, condition: Condition, target: impl Into<String>) -> Self {
        self.cases.push((condition, target.into()));
        self
    }

    /// Sets the target of messages that match no case.
    pub fn default_to(mut self, target: impl Into<String>) -> Self {
        self.default = Some(target.into());
        self
    }
}

impl EdgeGroup {
    /// Returns the source and the target of each edge, in declared order.
    pub(super) fn edges(&self) -> Vec<(&str, &str)> {
        match self {
            Self::Single { from, to, .. } => vec![(from, to)],
            Self::FanOut { from, to } | Self::Select { from, to, .. } => {
                to.iter().map(|to| (from.as_str(), to.as_str())).collect()
            }
            Self::Switch { from, cases, default } => {
                let targets = cases.iter().map(|(_, to)| to).chain([default]);
                targets.map(|to| (from.as_str(), to.as_str())).collect()
            }
            Self::FanIn { from, to } => {
                from.iter().map(|from| (from.as_str(), to.as_str())).collect()
            }
        }
    }

    /// Returns whether `source` is a source of these edges.
    pub(super) fn begins_at(&self, source: &str) -> bool {
        match self {
            Self::Single { from, .. }
            | Self::FanOut { from, .. }
            | Self::Select { from, .. }
            | Self::Switch { from, .. } => from == source,
            Self::FanIn { from, .. } => from.iter().any(|from| from == source),
        }
    }

    pub(super) fn is_fan_in(&self) -> bool {
        matches!(self, Self::FanIn { .. })
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({})", self.name)
    }
}

impl fmt::Debug for TargetSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selection({})", self.name)
    }
}

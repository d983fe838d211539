//! Builder of workflows.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::edges::{Condition, EdgeGroup, Switch, TargetSelection};
use super::error::{InvalidWorkflow, WorkflowError};
use super::executor::Executor;
use super::limits::WorkflowLimits;
use super::message::Payload;
use super::outputs::{IntermediateFrom, OutputExecutors, OutputFrom};
use super::run::WorkflowRun;
use super::snapshot::Snapshot;
use super::{check, mermaid, structure};

/// Executors and the edges between them. Clones share the graph; runs share no state.
#[derive(Clone)]
pub struct Workflow {
    pub(super) graph: Arc<Graph>,
}

/// Checked graph of a workflow.
pub(super) struct Graph {
    pub(super) name: String,
    pub(super) start: String,
    /// Executors in the order in which they were added.
    pub(super) executors: Vec<Arc<dyn Executor>>,
    /// Index of each id in `executors`.
    pub(super) indices: HashMap<String, usize>,
    pub(super) edges: Vec<EdgeGroup>,
    pub(super) designated: OutputExecutors,
    pub(super) limits: WorkflowLimits,
    /// Digest that identifies the structure in checkpoints.
    pub(super) structure: String,
}

/// Builder of a [`Workflow`]. [`build`](Self::build) reports all mistakes.
#[must_use = "nothing is built yet"]
pub struct WorkflowBuilder {
    name: String,
    start: Option<String>,
    executors: Vec<Arc<dyn Executor>>,
    edges: Vec<EdgeGroup>,
    output: Option<OutputFrom>,
    intermediate: Option<IntermediateFrom>,
    limits: WorkflowLimits,
    /// First error in the declaration of edges.
    malformed: Option<InvalidWorkflow>,
}

impl Workflow {
    /// Returns the builder of a workflow without executors. Checkpoints are stored under its name.
    pub fn builder(name: impl Into<String>) -> WorkflowBuilder {
        WorkflowBuilder {
            name: name.into(),
            start: None,
            executors: Vec::new(),
            edges: Vec::new(),
            output: None,
            intermediate: None,
            limits: WorkflowLimits::default(),
            malformed: None,
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.graph.name
    }

    /// Returns the ids of the executors in the order in which they were added.
    pub fn executors(&self) -> impl Iterator<Item = &str> {
        self.graph.executors.iter().map(|executor| executor.id())
    }

    /// Returns the limits of a run.
    #[must_use]
    pub fn limits(&self) -> WorkflowLimits {
        self.graph.limits
    }

    /// Returns a run that begins with `input`. Nothing happens until it is awaited or its stream is
    /// read. Only then does it reject an input that the start executor does not take (`WF-8`).
    pub fn run(&self, input: impl Into<Payload>) -> WorkflowRun {
        WorkflowRun::beginning(self.clone(), input.into())
    }

    /// Returns a run that continues from a snapshot: the result of another run whose requests the
    /// caller answers, or a checkpoint.
    ///
    /// # Errors
    /// [`WorkflowError::Structure`] if the snapshot belongs to a workflow with another structure
    /// (`WF-12`), [`WorkflowError::Version`] if its format has another version,
    /// [`WorkflowError::TooMuch`] if it exceeds the limits.
    pub fn resume(&self, snapshot: Snapshot) -> Result<WorkflowRun, WorkflowError> {
        snapshot.check(&self.graph)?;
        Ok(WorkflowRun::resumed(self.clone(), snapshot))
    }

    /// Returns the graph as a Mermaid flowchart.
    #[must_use]
    pub fn mermaid(&self) -> String {
        mermaid::flowchart(&self.graph)
    }

    /// Returns the digest of executors, edges, types and output selection that checkpoints are
    /// compared by (`WF-12`).
    #[must_use]
    pub fn structure(&self) -> &str {
        &self.graph.structure
    }
}

impl Graph {
    pub(super) fn executor(&self, id: &str) -> Option<&Arc<dyn Executor>> {
        self.indices.get(id).and_then(|index| self.executors.get(*index))
    }
}

impl WorkflowBuilder {
    /// Adds an executor.
    pub fn executor(self, executor: impl Executor + 'static) -> Self {
        self.shared_executor(Arc::new(executor))
    }

    /// Adds an executor that the caller shares with other workflows.
    pub fn shared_executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.executors.push(executor);
        self
    }

    /// Sets the start executor, which receives the input of a run.
    pub fn start(mut self, id: impl Into<String>) -> Self {
        self.start = Some(id.into());
        self
    }

    /// Adds an edge for all messages whose type the target takes.
    pub fn edge(self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.with(EdgeGroup::Single { from: from.into(), to: to.into(), condition: None })
    }

    /// Adds an edge for the messages that fulfill a condition.
    pub fn edge_if(
        self,
        from: impl Into<String>,
        to: impl Into<String>,
        condition: Condition,
    ) -> Self {
        self.with(EdgeGroup::Single {
            from: from.into(),
            to: to.into(),
            condition: Some(condition),
        })
    }

    /// Adds an edge from each executor to the next one.
    pub fn chain<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        let ids: Vec<String> = ids.into_iter().map(Into::into).collect();
        if ids.len() < 2 {
            return self.malformed(InvalidWorkflow::ShortChain);
        }
        for pair in ids.array_windows() {
            let [from, to] = pair;
            self = self.edge(from, to);
        }
        self
    }

    /// Adds edges to several executors, which all receive every message.
    pub fn fan_out<I: Into<String>>(
        self,
        from: impl Into<String>,
        to: impl IntoIterator<Item = I>,
    ) -> Self {
        let to: Vec<String> = to.into_iter().map(Into::into).collect();
        if to.len() < 2 {
            return self.malformed(InvalidWorkflow::FewTargets);
        }
        self.with(EdgeGroup::FanOut { from: from.into(), to })
    }

    /// Adds edges to several executors; for each message, a function selects the ones that receive
    /// it (`WF-4`).
    pub fn select<I: Into<String>>(
        self,
        from: impl Into<String>,
        to: impl IntoIterator<Item = I>,
        selection: TargetSelection,
    ) -> Self {
        let to: Vec<String> = to.into_iter().map(Into::into).collect();
        if to.len() < 2 {
            return self.malformed(InvalidWorkflow::FewTargets);
        }
        self.with(EdgeGroup::Select { from: from.into(), to, selection })
    }

    /// Adds edges to several executors. A message takes the first edge whose condition holds, or
    /// else the default (`WF-3`).
    pub fn switch(self, from: impl Into<String>, switch: Switch) -> Self {
        match switch {
            Switch { cases, default: Some(default) } if !cases.is_empty() => {
                self.with(EdgeGroup::Switch { from: from.into(), cases, default })
            }
            _ => self.malformed(InvalidWorkflow::FewCases),
        }
    }

    /// Adds edges from several executors to one. When each source has sent a message, the target
    /// receives one list of them (`WF-2`).
    pub fn fan_in<I: Into<String>>(
        self,
        from: impl IntoIterator<Item = I>,
        to: impl Into<String>,
    ) -> Self {
        let from: Vec<String> = from.into_iter().map(Into::into).collect();
        if from.len() < 2 {
            return self.malformed(InvalidWorkflow::FewSources);
        }
        self.with(EdgeGroup::FanIn { from, to: to.into() })
    }

    /// Sets the executors whose yields are output: a list, or `all` (`WF-9`).
    pub fn output_from(mut self, output: impl Into<OutputFrom>) -> Self {
        self.output = Some(output.into());
        self
    }

    /// Sets the executors whose yields are intermediate output: a list, or `all_other` (`WF-9`).
    pub fn intermediate_output_from(mut self, intermediate: impl Into<IntermediateFrom>) -> Self {
        self.intermediate = Some(intermediate.into());
        self
    }

    /// Sets the maximum number of supersteps of one run (`WF-6`).
    pub fn max_iterations(mut self, max_iterations: u64) -> Self {
        self.limits.max_iterations = max_iterations;
        self
    }

    /// Sets the limits of a run.
    pub fn limits(mut self, limits: WorkflowLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Builds the workflow.
    ///
    /// # Errors
    /// The first mistake. Checks run in this order: ids, edge declarations, limit of supersteps,
    /// start, names and repetitions in edges, types, reachability, output selection.
    pub fn build(self) -> Result<Workflow, InvalidWorkflow> {
        let ids: Vec<String> =
            self.executors.iter().map(|executor| executor.id().to_owned()).collect();
        let mut indices = HashMap::new();
        for (index, id) in ids.iter().enumerate() {
            if id.is_empty() {
                return Err(InvalidWorkflow::EmptyId);
            }
            if indices.insert(id.clone(), index).is_some() {
                return Err(InvalidWorkflow::DuplicateExecutor { id: id.clone() });
            }
        }
        if let Some(malformed) = self.malformed {
            return Err(malformed);
        }
        if self.limits.max_iterations == 0 {
            return Err(InvalidWorkflow::NoIterations);
        }
        let start = self.start.ok_or(InvalidWorkflow::NoStart)?;
        check::graph(&start, &self.executors, &indices, &self.edges)?;
        let designated = OutputExecutors::resolve(self.output, self.intermediate, &ids)?;
        let structure = structure::digest(&start, &self.executors, &self.edges, &designated);
        let graph = Graph {
            name: self.name,
            start,
            executors: self.executors,
            indices,
            edges: self.edges,
            designated,
            limits: self.limits,
            structure,
        };
        Ok(Workflow { graph: Arc::new(graph) })
    }

    fn with(mut self, edges: EdgeGroup) -> Self {
        self.edges.push(edges);
        self
    }

    fn malformed(mut self, problem: InvalidWorkflow) -> Self {
        self.malformed.get_or_insert(problem);
        self
    }
}

impl fmt::Debug for Workflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.executors().collect();
        f.debug_struct("Workflow")
            .field("name", &self.graph.name)
            .field("executors", &ids)
            .finish_non_exhaustive()
    }
}

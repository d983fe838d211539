//! From executors and edges to a workflow.

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

/// Executors and the edges between them. Clones are the same workflow; runs have nothing in common.
#[derive(Clone)]
pub struct Workflow {
    pub(super) graph: Arc<Graph>,
}

/// Checked graph of a workflow. Everything in here was checked.
pub(super) struct Graph {
    pub(super) name: String,
    pub(super) start: String,
    /// In the order in which they were added.
    pub(super) executors: Vec<Arc<dyn Executor>>,
    /// Index of each id in `executors`.
    pub(super) places: HashMap<String, usize>,
    pub(super) edges: Vec<EdgeGroup>,
    pub(super) designated: OutputExecutors,
    pub(super) limits: WorkflowLimits,
    /// Digest that checkpoints are compared by.
    pub(super) structure: String,
}

/// Puts a workflow together. What is wrong shows in [`build`](Self::build).
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
    /// A workflow without anything in it. The name is what its checkpoints are kept under.
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

    /// The ids of the executors in the order in which they were added.
    pub fn executors(&self) -> impl Iterator<Item = &str> {
        self.graph.executors.iter().map(|executor| executor.id())
    }

    /// Returns the limits of a run.
    #[must_use]
    pub fn limits(&self) -> WorkflowLimits {
        self.graph.limits
    }

    /// A run from an input. Nothing happens until it is awaited or its stream is read; an input
    /// that the start executor does not take is refused then (`WF-8`).
    pub fn run(&self, input: impl Into<Payload>) -> WorkflowRun {
        WorkflowRun::beginning(self.clone(), input.into())
    }

    /// A run from where another one was: from what it ended with, to answer its requests, or from a
    /// checkpoint.
    ///
    /// # Errors
    /// [`WorkflowError::Structure`] if the snapshot is of a workflow with another structure
    /// (`WF-12`), [`WorkflowError::Version`] if it was written by another version of this program.
    pub fn resume(&self, snapshot: Snapshot) -> Result<WorkflowRun, WorkflowError> {
        snapshot.check(&self.graph)?;
        Ok(WorkflowRun::resumed(self.clone(), snapshot))
    }

    /// The graph as a Mermaid flowchart.
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
        self.places.get(id).and_then(|place| self.executors.get(*place))
    }
}

impl WorkflowBuilder {
    /// Adds an executor.
    pub fn executor(self, executor: impl Executor + 'static) -> Self {
        self.shared_executor(Arc::new(executor))
    }

    /// Adds an executor that others have, too.
    pub fn shared_executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.executors.push(executor);
        self
    }

    /// Sets the executor that runs start with.
    pub fn start(mut self, id: impl Into<String>) -> Self {
        self.start = Some(id.into());
        self
    }

    /// An edge that every message takes that its end takes.
    pub fn edge(self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.with(EdgeGroup::Single { from: from.into(), to: to.into(), condition: None })
    }

    /// An edge that a message takes if a condition holds for it.
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

    /// An edge from each executor to the next one.
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

    /// Edges to several executors, each of which gets every message.
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

    /// Edges to several executors, of which a function says who gets a message (`WF-4`).
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

    /// Edges of which a message takes the first whose condition holds, or else the default
    /// (`WF-3`).
    pub fn switch(self, from: impl Into<String>, switch: Switch) -> Self {
        match switch {
            Switch { cases, default: Some(default) } if !cases.is_empty() => {
                self.with(EdgeGroup::Switch { from: from.into(), cases, default })
            }
            _ => self.malformed(InvalidWorkflow::FewCases),
        }
    }

    /// Edges from several executors, over which one list comes when each of them has sent something
    /// (`WF-2`).
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

    /// Sets the executors whose yields are shown as intermediate: a list, or `all_other` (`WF-9`).
    pub fn intermediate_output_from(mut self, intermediate: impl Into<IntermediateFrom>) -> Self {
        self.intermediate = Some(intermediate.into());
        self
    }

    /// Most supersteps of one run (`WF-6`).
    pub fn max_iterations(mut self, max_iterations: u64) -> Self {
        self.limits.max_iterations = max_iterations;
        self
    }

    /// Sets the limits of a run.
    pub fn limits(mut self, limits: WorkflowLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The workflow.
    ///
    /// # Errors
    /// The first thing that is wrong, in the order of [`InvalidWorkflow`]'s variants: ids, edges by
    /// themselves, edges together, types, reachability, output selection.
    pub fn build(self) -> Result<Workflow, InvalidWorkflow> {
        let ids: Vec<String> =
            self.executors.iter().map(|executor| executor.id().to_owned()).collect();
        let mut places = HashMap::new();
        for (place, id) in ids.iter().enumerate() {
            if id.is_empty() {
                return Err(InvalidWorkflow::EmptyId);
            }
            if places.insert(id.clone(), place).is_some() {
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
        check::graph(&start, &self.executors, &places, &self.edges)?;
        let designated = OutputExecutors::resolve(self.output, self.intermediate, &ids)?;
        let structure = structure::digest(&start, &self.executors, &self.edges, &designated);
        let graph = Graph {
            name: self.name,
            start,
            executors: self.executors,
            places,
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

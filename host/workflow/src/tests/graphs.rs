//! Random graphs: a workflow that can be built gives the same result wherever a run is interrupted.

use proptest::prelude::*;

use super::*;

/// An edge of a random graph.
#[derive(Debug, Clone)]
enum Edge {
    One(usize, usize, Option<u64>),
    Out(usize, Vec<usize>),
    In(Vec<usize>, usize),
    Select(usize, Vec<usize>),
    Switch(usize, Vec<usize>),
}

#[derive(Debug, Clone)]
struct Plan {
    nodes: usize,
    edges: Vec<Edge>,
    output: Option<Vec<usize>>,
    /// True for each node that makes a request before it sends.
    asking: Vec<bool>,
}

fn edge(nodes: usize) -> impl Strategy<Value = Edge> {
    let node = || 0..nodes;
    let several = move || proptest::collection::vec(0..nodes, 1..4);
    prop_oneof![
        4 => (node(), node(), proptest::option::of(0_u64..4)).prop_map(|(from, to, part)| Edge::One(from, to, part)),
        2 => (node(), several()).prop_map(|(from, to)| Edge::Out(from, to)),
        1 => (several(), node()).prop_map(|(from, to)| Edge::In(from, to)),
        1 => (node(), several()).prop_map(|(from, to)| Edge::Select(from, to)),
        1 => (node(), several()).prop_map(|(from, to)| Edge::Switch(from, to)),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    (1_usize..6).prop_flat_map(|nodes| {
        let edges = proptest::collection::vec(edge(nodes), 0..7);
        let output = proptest::option::of(proptest::collection::vec(0..nodes, 0..4));
        let asking = proptest::collection::vec(prop::bool::weighted(0.2), nodes);
        (edges, output, asking).prop_map(move |(edges, output, asking)| Plan {
            nodes,
            edges,
            output,
            asking,
        })
    })
}

fn id(node: usize) -> String {
    format!("n{node}")
}

fn ids(nodes: &[usize]) -> Vec<String> {
    nodes.iter().map(|node| id(*node)).collect()
}

/// Returns a node that adds one to its input (to the sum, if it is a list), until the number is
/// large enough. It counts its calls in the state.
fn node(node: usize, asks: bool) -> FunctionExecutor<Value> {
    fn done(node: usize, number: u64, step: &Step) -> Result<(), BoxError> {
        step.output(&format!("{}:{number}", id(node)))?;
        let calls = step.executor_state().as_u64().unwrap_or_default() + 1;
        step.set_executor_state(json!(calls))?;
        step.set_state(id(node), json!(calls))?;
        if number < 12 && calls < 6 { Ok(step.send(&json!(number))?) } else { Ok(()) }
    }
    let executor = executor_fn(id(node), move |value: Value, step: Step| async move {
        let number = match &value {
            Value::Array(list) => list.iter().filter_map(Value::as_u64).sum(),
            other => other.as_u64().unwrap_or_default(),
        };
        if asks {
            step.request(Payload::json(json!(number + 1)), MessageType::Integer)?;
            return Ok(());
        }
        done(node, number + 1, &step)
    });
    let executor = executor.sending::<Value>().yielding::<String>();
    executor.answered(move |_, answer, step: Step| async move {
        done(node, answer.value.as_u64().unwrap_or_default(), &step)
    })
}

fn built(plan: &Plan) -> Result<Workflow, InvalidWorkflow> {
    let mut builder = Workflow::builder("random").start("n0").max_iterations(60);
    for index in 0..plan.nodes {
        builder = builder.executor(node(index, plan.asking[index]));
    }
    for edge in &plan.edges {
        builder = match edge {
            Edge::One(from, to, None) => builder.edge(id(*from), id(*to)),
            Edge::One(from, to, Some(part)) => {
                let part = *part;
                let condition = Condition::new(format!("% {part}"), move |value| {
                    value.as_u64().is_some_and(|number| number % 4 >= part)
                });
                builder.edge_if(id(*from), id(*to), condition)
            }
            Edge::Out(from, to) => builder.fan_out(id(*from), ids(to)),
            Edge::In(from, to) => builder.fan_in(ids(from), id(*to)),
            Edge::Select(from, to) => {
                let selection = TargetSelection::new("odd", |value: &Value, targets: &[String]| {
                    let skipped =
                        usize::try_from(value.as_u64().unwrap_or_default() % 2).unwrap_or_default();
                    targets.iter().skip(skipped).cloned().collect()
                });
                builder.select(id(*from), ids(to), selection)
            }
            Edge::Switch(from, to) => {
                let mut switch = Switch::new();
                for (index, to) in to.iter().enumerate() {
                    let index = u64::try_from(index).unwrap();
                    let condition = Condition::new(format!("= {index}"), move |value| {
                        value.as_u64() == Some(index)
                    });
                    switch = switch.case(condition, id(*to));
                }
                builder.switch(id(*from), switch.default_to(id(plan.nodes - 1)))
            }
        };
    }
    if let Some(output) = &plan.output {
        builder = builder.output_from(ids(output));
    }
    builder.build()
}

/// Runs to the end and answers each request with its prompt. If `hops`, continues from the stored
/// checkpoint after each superstep.
async fn outputs(workflow: &Workflow, hops: bool) -> (Vec<String>, Result<Snapshot, String>) {
    let mut outputs = Vec::new();
    let mut run = workflow.run(json!(0));
    for _ in 0..400 {
        let checkpoints = checkpoints();
        let mut stream = run.checkpoints(&checkpoints).stream();
        let mut is_cut = false;
        while let Some(event) = futures_util::StreamExt::next(&mut stream).await {
            match event {
                WorkflowEvent::Output(produced) => outputs.push(produced.text()),
                // Simulates the end of the process: only the checkpoint is left.
                WorkflowEvent::SuperstepCompleted { .. } if hops => {
                    is_cut = true;
                    break;
                }
                _ => {}
            }
        }
        let snapshot = if is_cut {
            drop(stream);
            let latest = checkpoints.latest("random").await.unwrap().unwrap();
            checkpoints.load("random", &latest).await.unwrap()
        } else {
            match stream.finish().await {
                Ok(snapshot) => snapshot,
                Err(error) => return (outputs, Err(error.to_string())),
            }
        };
        if snapshot.is_done() {
            return (outputs, Ok(snapshot));
        }
        let requests = if is_cut && has_messages(&snapshot) {
            Vec::new()
        } else {
            snapshot.requests().to_vec()
        };
        run = workflow.resume(snapshot).unwrap();
        for request in requests {
            run = run.answer(request.id, request.prompt);
        }
    }
    panic!("the run does not end");
}

fn has_messages(snapshot: &Snapshot) -> bool {
    !snapshot.queue.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_run_is_the_same_wherever_it_is_interrupted(plan in plan()) {
        // Building any graph ends with a workflow or an error.
        let Ok(workflow) = built(&plan) else { return Ok(()) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (whole, ended) = runtime.block_on(outputs(&workflow, false));
        let (parts, ended_in_parts) = runtime.block_on(outputs(&workflow, true));
        prop_assert_eq!(whole, parts);
        prop_assert_eq!(ended.map(|ended| (ended.state, ended.own)), ended_in_parts.map(|ended| (ended.state, ended.own)));
        prop_assert!(workflow.mermaid().starts_with("flowchart TD\n"));
    }
}

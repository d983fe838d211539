//! Tests of workflows through the public interface. `graphs` contains random graphs,
//! `orchestrations` contains agents.

mod agents;
mod graphs;
mod labels;
mod orchestrations;

use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex};

use cofferdam_agent::BoxError;
use cofferdam_files::{MemoryStore, Quota};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;

/// Appends its id to the text, and yields and sends the result.
fn appends(id: &'static str) -> FunctionExecutor<String> {
    let executor = executor_fn(id, move |text: String, step: Step| async move {
        let text = format!("{text}>{id}");
        step.send(&text)?;
        Ok(step.output(&text)?)
    });
    executor.sending::<String>().yielding::<String>()
}

fn chain() -> WorkflowBuilder {
    let builder = Workflow::builder("chain")
        .executor(appends("a"))
        .executor(appends("b"))
        .executor(appends("c"));
    builder.start("a").chain(["a", "b", "c"])
}

fn texts(ended: &RunOutcome) -> Vec<String> {
    ended.outputs().map(ProducedOutput::text).collect()
}

fn checkpoints() -> Checkpoints {
    Checkpoints::new(Arc::new(MemoryStore::new(Quota::default())))
}

fn refused(builder: WorkflowBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

#[test]
fn what_cannot_work_is_refused_with_its_reason() {
    let one = || Workflow::builder("w").executor(appends("a"));
    assert_eq!(
        refused(Workflow::builder("w")),
        "the workflow has no start executor; call `start` with an id"
    );
    assert_eq!(
        refused(one().start("x")),
        "[GRAPH_CONNECTIVITY] `start` names the executor 'x', which is not in the workflow."
    );
    assert_eq!(
        refused(one().start("a").edge("a", "x")),
        "[GRAPH_CONNECTIVITY] the edge a->x names the executor 'x', which is not in the workflow."
    );
    assert_eq!(
        refused(one().executor(appends("")).start("a")),
        "an executor has an empty id; give it one"
    );
    assert_eq!(
        refused(one().start("a").fan_out("a", ["a"])),
        "FanOutEdgeGroup must contain at least two targets."
    );
    assert_eq!(
        refused(one().start("a").fan_in(["a"], "a")),
        "FanInEdgeGroup must contain at least two sources."
    );
    assert_eq!(
        refused(one().start("a").chain(["a"])),
        "At least two executors are required to form a chain."
    );
    assert_eq!(
        refused(one().start("a").max_iterations(0)),
        InvalidWorkflow::NoIterations.to_string()
    );
    let silent = executor_fn("s", async |_: String, _: Step| Ok(()));
    assert_eq!(
        refused(one().executor(silent).start("s").edge("s", "a")),
        "[TYPE_COMPATIBILITY] Type incompatibility between executors 's' -> 'a'. Source executor outputs types [] but target \
         executor can only handle types [text]."
    );
    let default_alone = Switch::new().default_to("b");
    assert_eq!(
        refused(chain().switch("c", default_alone)),
        "SwitchCaseEdgeGroup must contain at least two cases (including the default case)."
    );
    assert_eq!(
        refused(chain().intermediate_output_from(["b", "b"])),
        r#"[OUTPUT_VALIDATION] Duplicate intermediate executor designation(s): ["b"]"#
    );
    assert_eq!(
        refused(chain().output_from(["x"])),
        "[OUTPUT_VALIDATION] Output executor 'x' is not present in the workflow graph"
    );
}

#[test]
fn an_edge_of_a_group_is_an_edge_like_any_other() {
    let twice = chain().select("a", ["b", "c"], TargetSelection::new("all", |_, ids| ids.to_vec()));
    assert_eq!(
        refused(twice),
        "[EDGE_DUPLICATION] Duplicate edge detected: a->b. Each edge in the workflow must be \
         unique."
    );
}

#[tokio::test]
async fn a_panic_of_a_function_is_an_error_of_its_executor() {
    let panics = executor_fn("p", async |text: String, _: Step| match text.as_str() {
        "" => Ok(()),
        text => panic!("{text}"),
    });
    let workflow = Workflow::builder("w").executor(panics).start("p").build().unwrap();
    let error = workflow.run("broken").await.unwrap_err().to_string();
    assert!(error.contains("the function panicked: broken"), "{error}");
}

#[tokio::test]
async fn several_messages_are_handled_in_the_order_in_which_they_were_sent() {
    let sends = executor_fn("a", async |count: u64, step: Step| {
        (0..count).try_for_each(|number| step.send(&number)).map_err(BoxError::from)
    });
    let adds = executor_fn("b", async |number: u64, step: Step| {
        let seen = json!([step.executor_state(), number]);
        step.set_executor_state(seen.clone())?;
        Ok(step.output(&seen)?)
    });
    let workflow = Workflow::builder("w")
        .executor(sends.sending::<u64>())
        .executor(adds.yielding::<Value>())
        .start("a")
        .edge("a", "b")
        .build()
        .unwrap();
    let ended = workflow.run(json!(3)).await.unwrap();
    assert_eq!(ended.outputs().last().unwrap().value.value, json!([[[null, 0], 1], 2]));
    assert_eq!(ended.snapshot.superstep(), 2);
}

#[tokio::test]
async fn executors_of_a_superstep_run_side_by_side_and_are_reported_in_order() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let opened = Arc::clone(&gate);
    // Ends only after `fast` has run, so the test hangs unless the two run concurrently.
    let slow = executor_fn("slow", move |_: String, step: Step| {
        let gate = Arc::clone(&gate);
        async move {
            gate.notified().await;
            Ok(step.output(&"slow".to_owned())?)
        }
    });
    let fast = executor_fn("fast", move |_: String, step: Step| {
        let opened = Arc::clone(&opened);
        async move {
            opened.notify_one();
            Ok(step.output(&"fast".to_owned())?)
        }
    });
    let workflow = Workflow::builder("w")
        .executor(appends("a"))
        .executor(slow.yielding::<String>())
        .executor(fast.yielding::<String>())
        .start("a")
        .fan_out("a", ["slow", "fast"])
        .build()
        .unwrap();
    let observed = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&observed);
    let run = workflow.run("x");
    let run = run.observer(move |event| notes.lock().unwrap().push(event.to_string()));
    assert_eq!(texts(&run.await.unwrap()), ["x>a", "slow", "fast"]);
    // The observer has the events of the second superstep in the order of time.
    let observed = observed.lock().unwrap();
    let second = observed.iter().position(|event| event == "superstep_started#2").unwrap();
    let expected = [
        "superstep_started#2",
        "executor_invoked:slow",
        "executor_invoked:fast",
        "output:fast",
        "executor_completed:fast",
        "output:slow",
        "executor_completed:slow",
        "superstep_completed#2",
    ];
    assert_eq!(observed[second..], expected);
}

#[tokio::test]
async fn an_error_is_the_callers_and_nothing_of_its_superstep_counts() {
    let fails = executor_fn("f", async |_: String, step: Step| {
        step.set_state("done", json!(true))?;
        Err("out of paper".into())
    });
    let workflow = Workflow::builder("w")
        .executor(appends("a"))
        .executor(fails)
        .start("a")
        .edge("a", "f")
        .build()
        .unwrap();
    let checkpoints = checkpoints();
    let mut stream = workflow.run("x").checkpoints(&checkpoints).stream();
    let mut events = Vec::new();
    while let Some(event) = futures_util::StreamExt::next(&mut stream).await {
        events.push(event.to_string());
    }
    assert_eq!(events.last().unwrap(), "executor_failed:f");
    let error = stream.finish().await.unwrap_err();
    assert_eq!(error.to_string(), "the executor `f` failed: out of paper");
    let latest = checkpoints.latest("w").await.unwrap().unwrap();
    let snapshot = checkpoints.load("w", &latest).await.unwrap();
    assert_eq!((snapshot.superstep(), snapshot.state("done")), (1, Value::Null));
}

#[tokio::test]
async fn what_is_not_declared_cannot_be_sent() {
    let lies =
        executor_fn("a", async |_: String, step: Step| Ok(step.send(&5_u64)?)).sending::<String>();
    let workflow = Workflow::builder("w").executor(lies).start("a").build().unwrap();
    let error = workflow.run("x").await.unwrap_err().to_string();
    assert_eq!(error, "the executor `a` failed: `a` sends integer, and declares no such type");
    let error = workflow.run(json!(5)).await.unwrap_err().to_string();
    assert_eq!(error, "the start executor `a` takes text, and the input is integer");
}

#[tokio::test]
async fn messages_can_be_meant_for_one_of_several() {
    let chooses = executor_fn("a", async |text: String, step: Step| Ok(step.send_to("c", &text)?));
    let strays = executor_fn("a", async |text: String, step: Step| Ok(step.send_to("x", &text)?));
    let builder = |executor: FunctionExecutor<String>| {
        let builder =
            Workflow::builder("w").executor(executor.sending::<String>()).executor(appends("b"));
        builder.executor(appends("c")).start("a").fan_out("a", ["b", "c"]).build().unwrap()
    };
    assert_eq!(texts(&builder(chooses).run("x").await.unwrap()), ["x>c"]);
    let error = builder(strays).run("x").await.unwrap_err().to_string();
    assert_eq!(error, "the executor `a` failed: `a` has no edge to `x`");
}

#[tokio::test]
async fn values_of_the_program_travel_as_json() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Order {
        article: String,
        pieces: u32,
    }
    impl TypedMessage for Order {
        fn message_type() -> MessageType {
            MessageType::named("order")
        }
    }
    let takes = executor_fn("a", async |order: Order, step: Step| Ok(step.output(&order.pieces)?));
    let workflow =
        Workflow::builder("w").executor(takes.yielding::<u32>()).start("a").build().unwrap();
    let order = Payload::of(&Order { article: "tea".into(), pieces: 3 }).unwrap();
    assert_eq!(workflow.run(order).await.unwrap().text(), "3");
    // The name of the type is right, but the form of the value is wrong.
    let broken = Payload::new(MessageType::named("order"), json!({"article": 5})).unwrap();
    assert!(
        workflow
            .run(broken)
            .await
            .unwrap_err()
            .to_string()
            .starts_with("the executor `a` failed: invalid type")
    );
}

#[tokio::test]
async fn limits_end_a_run_before_it_takes_the_memory() {
    let floods = || {
        executor_fn("a", async |text: String, step: Step| {
            loop {
                step.send(&text)?;
            }
        })
    };
    let limited = |limits: WorkflowLimits| {
        let builder =
            Workflow::builder("w").executor(floods().sending::<String>()).executor(appends("b"));
        builder.start("a").edge("a", "b").limits(limits).build().unwrap()
    };
    let mut limits = WorkflowLimits { messages_max: 10, ..WorkflowLimits::default() };
    let error = limited(limits).run("x").await.unwrap_err().to_string();
    assert_eq!(error, "the executor `a` failed: more than 10 messages in one superstep");
    limits = WorkflowLimits { bytes_max: 1000, ..WorkflowLimits::default() };
    let error = limited(limits).run("x".repeat(100)).await.unwrap_err().to_string();
    assert_eq!(error, "the executor `a` failed: more than 1000 bytes in one superstep");
    let error = limited(limits).run("x".repeat(2000)).await.unwrap_err().to_string();
    assert_eq!(error, "the run holds more than 1000 bytes between two supersteps");
}

#[tokio::test]
async fn a_cancelled_run_ends_even_if_its_executors_do_not() {
    let hangs = executor_fn("a", async |_: String, _: Step| std::future::pending().await);
    let workflow = Workflow::builder("w").executor(hangs).start("a").build().unwrap();
    let cancellation = CancellationToken::new();
    let run = workflow.run("x").cancellation(cancellation.clone());
    let (ended, ()) = tokio::join!(run.into_future(), async { cancellation.cancel() });
    assert!(matches!(ended, Err(WorkflowError::Cancelled)));
}

#[tokio::test]
async fn what_outlives_its_superstep_has_no_effect() {
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
    let leaks = executor_fn("a", move |text: String, step: Step| {
        let send = send.clone();
        async move {
            let _ = send.send(step.clone());
            Ok(step.output(&text)?)
        }
    });
    let workflow =
        Workflow::builder("w").executor(leaks.yielding::<String>()).start("a").build().unwrap();
    let ended = workflow.run("x").await.unwrap();
    let step = receive.recv().await.unwrap();
    assert!(matches!(step.output(&"late".to_owned()), Err(StepError::Cancelled)));
    assert_eq!(texts(&ended), ["x"]);
}

#[tokio::test]
async fn a_run_goes_on_from_each_of_its_checkpoints() {
    let workflow = chain().build().unwrap();
    let checkpoints = checkpoints();
    let whole = workflow.run("x").checkpoints(&checkpoints).await.unwrap();
    let ids = checkpoints.list("chain").await.unwrap();
    assert_eq!(ids.iter().map(CheckpointId::superstep).collect::<Vec<_>>(), [1, 2, 3]);
    for (index, id) in ids.iter().enumerate() {
        assert_eq!(&id.to_string().parse::<CheckpointId>().unwrap(), id);
        let snapshot = checkpoints.load("chain", id).await.unwrap();
        let rest = workflow.resume(snapshot).unwrap().checkpoints(&checkpoints).await.unwrap();
        assert_eq!(texts(&rest), texts(&whole)[index + 1..]);
    }
    // A resumed run has its own id, so it overwrites no checkpoint.
    assert_eq!(checkpoints.list("chain").await.unwrap().len(), 3 + 2 + 1);
    checkpoints.delete("chain", &ids[0]).await.unwrap();
    let missing = checkpoints.load("chain", &ids[0]).await.unwrap_err().to_string();
    assert_eq!(missing, format!("there is no checkpoint `{}` of the workflow `chain`", ids[0]));
}

#[tokio::test]
async fn a_snapshot_is_taken_up_by_the_same_structure_alone() {
    let snapshot = chain().build().unwrap().run("x").await.unwrap().snapshot;
    // Limits and the order of executors are not part of the structure.
    let same = Workflow::builder("other")
        .executor(appends("c"))
        .executor(appends("b"))
        .executor(appends("a"));
    let same = same.start("a").chain(["a", "b", "c"]).max_iterations(7).build().unwrap();
    assert!(same.resume(snapshot.clone()).is_ok());
    let odd =
        |changed: WorkflowBuilder| changed.build().unwrap().resume(snapshot.clone()).err().unwrap();
    let condition = Condition::new("x", |_| true);
    for changed in
        [chain().edge("a", "c"), chain().edge_if("c", "a", condition), chain().output_from("all")]
    {
        assert!(matches!(odd(changed), WorkflowError::Structure));
    }
    let mut written = serde_json::to_value(&snapshot).unwrap();
    written["version"] = json!(2);
    let other: Snapshot = serde_json::from_value(written.clone()).unwrap();
    let error = chain().build().unwrap().resume(other).err().unwrap().to_string();
    assert_eq!(error, "the checkpoint has the format 2, and this program reads 1");
    // A file that names an unknown executor is rejected even if its digest is right.
    written["version"] = json!(1);
    written["queue"] = json!([{"to": "missing", "message": {"type": "text", "value": "x"}}]);
    let forged: Snapshot = serde_json::from_value(written).unwrap();
    assert!(matches!(chain().build().unwrap().resume(forged), Err(WorkflowError::Structure)));
}

#[test]
fn ids_of_checkpoints_are_never_paths() {
    for text in [
        "",
        "../x",
        "a-000001",
        "0193c0ffee00a1b2c3d4-1",
        "0193C0FFEE00A1B2C3D4-000001",
        "0193c0ffee00a1b2c3d4-00000x",
    ] {
        assert!(text.parse::<CheckpointId>().is_err(), "{text}");
    }
    assert_eq!("0193c0ffee00a1b2c3d4-000012".parse::<CheckpointId>().unwrap().superstep(), 12);
}

/// Returns a workflow that makes two requests and yields the answers.
fn asks() -> Workflow {
    let asks = executor_fn("a", async |text: String, step: Step| {
        step.request(Payload::text(format!("{text}?")), MessageType::Text)?;
        step.request(Payload::text("how many?"), MessageType::Integer)?;
        Ok(())
    });
    let asks = asks.yielding::<Value>().answered(
        async |request: UserRequest, answer: Payload, step: Step| {
            Ok(step.output(&json!([request.id, answer.value]))?)
        },
    );
    Workflow::builder("asks").executor(asks).start("a").max_iterations(1).build().unwrap()
}

#[tokio::test]
async fn answers_go_to_whoever_has_asked_and_others_stay_open() {
    let workflow = asks();
    let paused = workflow.run("what").await.unwrap();
    let ids: Vec<_> = paused.requests().iter().map(|request| request.id.as_str()).collect();
    assert_eq!(ids, ["a-1", "a-2"]);
    assert_eq!(paused.requests()[0].prompt.display_text(), "what?");
    let resume = || workflow.resume(paused.snapshot.clone()).unwrap();
    let error = resume().answer("a-3", "x").await.unwrap_err().to_string();
    assert_eq!(error, "there is no open request `a-3`; open: a-1, a-2");
    let error = resume().answer("a-2", "x").await.unwrap_err().to_string();
    assert_eq!(error, "the answer to `a-2` is to be integer, and is text");
    let half = resume().answer("a-2", json!(2)).await.unwrap();
    assert_eq!(half.requests().len(), 1);
    // The count of supersteps starts again with each answer; the maximum is one.
    let whole = workflow.resume(half.snapshot.clone()).unwrap().answer("a-1", "x").await.unwrap();
    assert!(whole.snapshot.is_done() && !half.snapshot.is_done());
    assert_eq!(whole.outputs().next().unwrap().value.value, json!(["a-1", "x"]));
    let error =
        workflow.resume(whole.snapshot).unwrap().answer("a-1", "x").await.unwrap_err().to_string();
    assert_eq!(error, "there is no open request `a-1`; open: none");
}

#[tokio::test]
async fn a_checkpoint_holds_what_is_asked_and_what_a_fan_in_holds() {
    let join = executor_fn("j", async |texts: Vec<String>, step: Step| Ok(step.output(&texts)?));
    let later = executor_fn("b", async |text: String, step: Step| {
        step.request(Payload::text(text), MessageType::Text)?;
        Ok(())
    });
    let later = later
        .sending::<String>()
        .answered(async |_, answer: Payload, step: Step| Ok(step.send_payload(answer, None)?));
    let workflow = Workflow::builder("w")
        .executor(appends("a"))
        .executor(later)
        .executor(appends("c"))
        .executor(join.yielding::<Vec<String>>())
        .start("a")
        .fan_out("a", ["b", "c"])
        .fan_in(["b", "c"], "j")
        .output_from(["j"])
        .build()
        .unwrap();
    let checkpoints = checkpoints();
    let paused = workflow.run("x").checkpoints(&checkpoints).await.unwrap();
    assert_eq!((paused.outputs().count(), paused.requests().len()), (0, 1));
    let latest = checkpoints.latest("w").await.unwrap().unwrap();
    let snapshot = checkpoints.load("w", &latest).await.unwrap();
    assert_eq!(snapshot, paused.snapshot);
    let ended = workflow.resume(snapshot).unwrap().answer("b-1", "late").await.unwrap();
    assert_eq!(ended.outputs().next().unwrap().value.value, json!(["late", "x>a>c"]));
}

#[test]
fn graphs_are_drawn_with_their_conditions_and_without_surprises() {
    let join = executor_fn("j", async |_: Vec<String>, _: Step| Ok(()));
    let odd = r#"say "hi" <b>"#;
    let workflow = Workflow::builder("w")
        .executor(appends("end"))
        .executor(appends("b"))
        .executor(appends("c"))
        .executor(join)
        .start("end")
        .switch("end", Switch::new().case(Condition::new(odd, |_| true), "b").default_to("c"))
        .fan_in(["b", "c"], "j")
        .build()
        .unwrap();
    assert_eq!(
        workflow.mermaid(),
        "flowchart TD\n    n0([\"end\"])\n    n1[\"b\"]\n    n2[\"c\"]\n    n3[\"j\"]\n    \
         n0 -. \"say #34;hi#34; #60;b#62;\" .-> n1\n    n0 -. \"otherwise\" .-> n2\n    \
         j0((all))\n    n1 --> j0\n    \
         n2 --> j0\n    j0 --> n3\n"
    );
}

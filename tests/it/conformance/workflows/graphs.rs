//! The graphs that words of rows stand for.

use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_workflow::{
    Condition, FunctionExecutor, IntermediateFrom, InvalidWorkflow, OutputFrom, Step, Switch,
    TargetSelection, Workflow, WorkflowBuilder, executor_fn,
};
use serde_json::{Value, json};

use crate::conformance::Row;

type Built = Result<Workflow, InvalidWorkflow>;

/// Scenarios of each description; some have several.
const DESCRIBED: &[(&str, &[&str])] = &[
    ("a→b→c, all yield, no selection", &["chain-default"]),
    ("conditional edge false", &["cond-false"]),
    ("conditional edge true", &["cond-true"]),
    ("disconnected part", &["unreachable"]),
    ("duplicate edge", &["dup-edge"]),
    ("duplicate in output_from", &["chain-output-dup"]),
    ("endless loop hits max_iterations 5", &["no-convergence"]),
    ("executor raises", &["boom"]),
    ("fan-out then fan-in", &["fan"]),
    ("first matching case wins, else default", &["switch-xy", "switch-yx", "switch-q"]),
    ("int passed to str start", &["bad-input-type"]),
    ("intermediate='all_other' without output_from", &["chain-inter-all-other"]),
    ("intermediate=[a] only", &["chain-inter-only"]),
    ("no default", &["switch-no-default"]),
    ("only one fan-in source fires", &["fan-in-partial"]),
    ("output_from='all'", &["chain-output-all"]),
    ("output_from='some'", &["chain-output-bad"]),
    ("output_from=[]", &["chain-output-empty"]),
    ("output_from=[c]", &["chain-output-c"]),
    ("output_from=[c], intermediate='all_other'", &["chain-output-c-inter-other"]),
    ("output_from=[c], intermediate=[b]", &["chain-output-c-inter-b"]),
    ("same executor in both", &["chain-overlap"]),
    ("selection function", &["multi-select-b+c", "multi-select-b", "multi-select-none"]),
    ("selection returns unknown id", &["multi-select-unknown"]),
    ("self loop allowed?", &["self-loop"]),
    ("single executor", &["single"]),
    ("state visible in next superstep", &["shared-state"]),
    ("str output to int input", &["type-mismatch"]),
    ("two executors with the same id", &["dup-id"]),
];

/// Returns every description.
pub(super) fn descriptions() -> impl Iterator<Item = &'static str> {
    DESCRIBED.iter().map(|(what, _)| *what)
}

/// Builds the workflow of a row.
pub(super) fn of(row: &Row) -> Result<Built, String> {
    let builder = match scenario(row)?.as_str() {
        "single" | "bad-input-type" => empty().executor(appends("a", true)),
        "boom" => empty().executor(fails(row)),
        "fan" => fan(true),
        "fan-in-partial" => fan(false),
        "cond-true" => conditional(true),
        "cond-false" => conditional(false),
        "dup-edge" => chain_of(&["a", "b"], false).edge("a", "b"),
        "dup-id" => chain_of(&["a", "b"], false).executor(appends("a", false)),
        "type-mismatch" => {
            empty().executor(appends("a", false)).executor(counts("b")).edge("a", "b")
        }
        "unreachable" => chain_of(&["a", "b"], false)
            .executor(appends("c", false))
            .executor(appends("d", false))
            .edge("c", "d"),
        "no-convergence" => endless().max_iterations(5),
        "self-loop" => self_loop(row),
        "shared-state" => shared_state(),
        scenario => match scenario.split_once('-') {
            Some(("chain", selection)) => selected_chain(selection)?,
            Some(("multi", selection)) => multi_selection(selection, row)?,
            Some(("switch", "no-default")) => switch(Switch::new().case(has("x"), "b")),
            Some(("switch", "yx")) => {
                switch(Switch::new().case(has("y"), "c").case(has("x"), "b").default_to("d"))
            }
            Some(("switch", "xy" | "q")) => {
                switch(Switch::new().case(has("x"), "b").case(has("y"), "c").default_to("d"))
            }
            _ => return Err(format!("unknown scenario `{scenario}`")),
        },
    };
    Ok(builder.build())
}

/// Returns the word that names the graph. A description suffices if it names one graph; a
/// description that contradicts the word is an error.
fn scenario(row: &Row) -> Result<String, String> {
    let described = match row.get("what").and_then(Value::as_str) {
        Some(what) => {
            let known = DESCRIBED.iter().find(|(known, _)| *known == what);
            Some(known.ok_or_else(|| format!("unknown description `{what}`"))?.1)
        }
        None => None,
    };
    match (row.get("scenario").and_then(Value::as_str), described) {
        (Some(scenario), Some(described)) if !described.contains(&scenario) => {
            Err(format!("`{scenario}` is not what is described"))
        }
        (Some(scenario), _) => Ok(scenario.to_owned()),
        (None, Some([first, ..])) => Ok((*first).to_owned()),
        _ => Err("the row names no scenario".to_owned()),
    }
}

fn empty() -> WorkflowBuilder {
    Workflow::builder("row").start("a")
}

/// Appends its id to the text, yields the result if `yields`, and sends it on.
fn appends(id: &'static str, yields: bool) -> FunctionExecutor<String> {
    let executor = executor_fn(id, move |text: String, step: Step| async move {
        let text = format!("{text}>{id}");
        step.send(&text)?;
        if yields {
            step.output(&format!("{id}:{text}"))?;
        }
        Ok(())
    });
    executor.sending::<String>().yielding::<String>()
}

/// Sends the text on unchanged.
fn passes(id: &'static str) -> FunctionExecutor<String> {
    executor_fn(id, async |text: String, step: Step| Ok(step.send(&text)?)).sending::<String>()
}

/// Takes a number.
fn counts(id: &'static str) -> FunctionExecutor<i64> {
    executor_fn(id, async |_: i64, _: Step| Ok(()))
}

fn fails(row: &Row) -> FunctionExecutor<String> {
    let said = row.expect.get("error").or_else(|| row.expect.get("raises")).and_then(Value::as_str);
    let said = said.unwrap_or("boom").to_owned();
    executor_fn("a", move |_: String, _: Step| {
        let said = said.clone();
        async move { Err(said.into()) }
    })
}

fn chain_of(ids: &[&'static str], yields: bool) -> WorkflowBuilder {
    let builder = ids.iter().fold(empty(), |builder, id| builder.executor(appends(id, yields)));
    builder.chain(ids.iter().copied())
}

pub(super) fn chain() -> WorkflowBuilder {
    chain_of(&["a", "b", "c"], true)
}

fn selected_chain(selection: &str) -> Result<WorkflowBuilder, String> {
    Ok(match selection {
        "default" => chain(),
        "output-all" => chain().output_from("all"),
        "output-bad" => chain().output_from("some"),
        "output-empty" => chain().output_from(Vec::new()),
        "output-dup" => chain().output_from(["c", "c"]),
        "output-c" => chain().output_from(["c"]),
        "output-c-inter-b" => chain().output_from(["c"]).intermediate_output_from(["b"]),
        "output-c-inter-other" => chain().output_from(["c"]).intermediate_output_from("all_other"),
        "inter-only" => chain().intermediate_output_from(["a"]),
        "inter-all-other" => chain().intermediate_output_from("all_other"),
        "overlap" => chain().output_from(["c"]).intermediate_output_from(["c"]),
        other => return Err(format!("unknown scenario `chain-{other}`")),
    })
}

/// Builds a chain with the output selection of the row.
pub(super) fn selection(row: &Row) -> Result<Built, String> {
    let mut builder = chain();
    if let Some(output) = row.get("output_from") {
        builder = builder.output_from(match output {
            Value::String(word) => OutputFrom::from(word.as_str()),
            list => OutputFrom::from(ids(list)?),
        });
    }
    if let Some(intermediate) =
        row.get("intermediate_output_from").or_else(|| row.get("intermediate"))
    {
        builder = builder.intermediate_output_from(match intermediate {
            Value::String(word) => IntermediateFrom::from(word.as_str()),
            list => IntermediateFrom::from(ids(list)?),
        });
    }
    Ok(builder.build())
}

fn ids(list: &Value) -> Result<Vec<String>, String> {
    serde_json::from_value(list.clone())
        .map_err(|error| format!("{list} is not a list of ids: {error}"))
}

/// a → b, c → j, where c may stay silent. The list is yielded unchanged.
fn fan(all_fire: bool) -> WorkflowBuilder {
    let join = executor_fn("j", async |texts: Vec<String>, step: Step| Ok(step.output(&texts)?));
    let silent = executor_fn("c", async |_: String, _: Step| Ok(())).sending::<String>();
    let builder = empty().executor(appends("a", false)).executor(appends("b", false));
    let builder =
        if all_fire { builder.executor(appends("c", false)) } else { builder.executor(silent) };
    builder
        .executor(join.yielding::<Vec<String>>())
        .fan_out("a", ["b", "c"])
        .fan_in(["b", "c"], "j")
}

fn conditional(holds: bool) -> WorkflowBuilder {
    let condition = Condition::new("condition", move |_| holds);
    empty().executor(appends("a", false)).executor(appends("b", true)).edge_if("a", "b", condition)
}

fn has(part: &'static str) -> Condition {
    Condition::new(format!("has {part}"), move |text| {
        text.as_str().is_some_and(|text| text.contains(part))
    })
}

fn switch(switch: Switch) -> WorkflowBuilder {
    let targets = ["b", "c", "d"].map(|id| appends(id, true));
    targets
        .into_iter()
        .fold(empty().executor(passes("a")), WorkflowBuilder::executor)
        .switch("a", switch)
}

/// a → some of the targets. The unknown id is in the message that the row expects.
fn multi_selection(selection: &str, row: &Row) -> Result<WorkflowBuilder, String> {
    let selected: Vec<String> = match selection.strip_prefix("select-") {
        Some("none") => Vec::new(),
        Some("unknown") => named_in_text(row).unwrap_or_else(|| vec!["unknown".to_owned()]),
        Some(ids) if ids.split('+').all(|id| id == "b" || id == "c") => {
            ids.split('+').map(str::to_owned).collect()
        }
        _ => return Err(format!("unknown scenario `multi-{selection}`")),
    };
    let selection = TargetSelection::new("row", move |_, _| selected.clone());
    let targets = ["b", "c"].map(|id| appends(id, true));
    let builder =
        targets.into_iter().fold(empty().executor(appends("a", false)), WorkflowBuilder::executor);
    Ok(builder.select("a", ["b", "c"], selection))
}

fn named_in_text(row: &Row) -> Option<Vec<String>> {
    let text = row.expect.get("error").or_else(|| row.expect.get("error_prefix"))?.as_str()?;
    let list = text.split_once("Invalid selection result: ")?.1.split_once(". ")?.0;
    serde_json::from_str(list).ok()
}

/// a ⇄ b, forever.
pub(super) fn endless() -> WorkflowBuilder {
    chain_of(&["a", "b"], false).edge("b", "a")
}

/// a → a, at most three times: endless if the row expects an error, otherwise until it has run
/// three times.
fn self_loop(row: &Row) -> WorkflowBuilder {
    let is_endless = ["error", "error_prefix", "raises", "raised"]
        .iter()
        .any(|name| row.expect.get(name).is_some());
    let goes_on = Condition::new("goes on", move |text| {
        is_endless || text.as_str().is_some_and(|text| text.matches('>').count() < 3)
    });
    empty().executor(appends("a", true)).edge_if("a", "a", goes_on).max_iterations(3)
}

/// a writes what b reads. c runs beside a's second step and must not see state that is written in
/// its own step.
fn shared_state() -> WorkflowBuilder {
    fn sees(id: &'static str, writes: bool) -> FunctionExecutor<String> {
        let executor = executor_fn(id, move |text: String, step: Step| async move {
            if writes {
                step.set_state("seen", json!(text))?;
            }
            let seen = step.state("seen");
            step.output(&format!("{id} sees {}", seen.as_str().unwrap_or("nothing")))?;
            Ok(step.send(&text)?)
        });
        executor.sending::<String>().yielding::<String>()
    }
    empty().executor(sees("a", true)).executor(sees("b", false)).edge("a", "b")
}

/// State that is written in a superstep is invisible to executors of the same superstep.
#[test]
fn state_is_not_seen_in_the_superstep_that_writes_it() {
    static SEEN: AtomicBool = AtomicBool::new(false);
    let writes =
        executor_fn("w", async |text: String, step: Step| Ok(step.set_state("k", json!(text))?));
    let reads = executor_fn("r", async |_: String, step: Step| {
        SEEN.store(!step.state("k").is_null(), Ordering::SeqCst);
        Ok(())
    });
    let builder = empty().executor(appends("a", false)).executor(writes).executor(reads);
    let workflow = builder.fan_out("a", ["w", "r"]).build().unwrap();
    let ended = crate::conformance::agent::block_on(async {
        workflow.run("in").await.map_err(|error| error.to_string())
    });
    assert_eq!(ended.unwrap().snapshot.state("k"), json!("in>a"));
    assert!(!SEEN.load(Ordering::SeqCst));
}

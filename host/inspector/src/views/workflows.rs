//! Workflows: their graphs and runs, as checkpoints show them.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{graph, layout};
use crate::error::PageError;
use crate::inspector::InspectorState;
use crate::query::{self, PageQuery};
use crate::workflows::{RunCheckpoint, WorkflowOutline, WorkflowRunSummary};
use crate::{format, text};

/// Maximum number of executors, edges and supersteps that are listed.
const LISTED_MAX: usize = 300;

/// Returns the page of all workflows.
pub(super) fn page(state: &InspectorState) -> Markup {
    let source = state.options.workflows.as_ref();
    let workflows = source.map(|source| source.workflows()).unwrap_or_default();
    layout::page(
        "Workflows",
        "/workflows",
        &[],
        html! {
            h1 { "Workflows" }
            @if workflows.is_empty() {
                p {
                    "The call log does not know the graphs of workflows. To see them and their runs, name the files \
                     and the directory of their checkpoints:"
                }
                p { (layout::command("cofferdam inspect --web --workflow FILE --checkpoints DIR")) }
            }
            @for workflow in &workflows { (section(workflow)) }
        },
    )
}

fn section(workflow: &WorkflowOutline) -> Markup {
    html! {
        h2 { (text::line(&workflow.name)) }
        @if let Some(problem) = &workflow.problem { p.problem { (text::line(problem)) } }
        @if !workflow.executors.is_empty() {
            p {
                (format::counted(len(&workflow.executors), "executor")) ", "
                (format::counted(len(&workflow.edges), "edge"))
            }
        }
        @if workflow.runs.is_empty() {
            p { "No run with checkpoints is known. The call log has the calls of its agents, but no supersteps." }
        } @else {
            (layout::table("Runs", &["Run", "Began", "Superstep", "State"], html! {
                @for run in &workflow.runs { (row(&workflow.name, run)) }
            }))
        }
        @if workflow.runs_left_out > 0 { p { (workflow.runs_left_out) " older runs" } }
    }
}

fn len<T>(list: &[T]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}

fn row(workflow: &str, run: &WorkflowRunSummary) -> Markup {
    let address = query::address("/workflow", [("name", workflow), ("run", run.id.as_str())]);
    html! {
        tr {
            th scope="row" {
                @if workflow.len() > layout::LINKED_BYTES_MAX { (text::line(&run.id)) }
                @else { a href=(address) { (text::line(&run.id)) } }
            }
            td { (layout::time(run.started)) }
            td.number { (run.latest.superstep) }
            td { (state_of(&run.latest)) }
        }
    }
}

/// Returns the state of a run in words. A checkpoint does not say whether a process is running.
fn state_of(checkpoint: &RunCheckpoint) -> Markup {
    let executors: Vec<_> =
        checkpoint.questions.iter().map(|question| question.executor.as_str()).collect();
    html! {
        @if let Some(problem) = &checkpoint.problem { "cannot be read: " (text::line(problem)) }
        @else if checkpoint.is_done() { "done" }
        @else if checkpoint.next.is_empty() {
            "waits for the user at " (text::line(&executors.join(", ")))
        } @else {
            "goes on, or was stopped, before " (text::line(&checkpoint.next.join(", ")))
        }
    }
}

/// Returns the page of one run.
pub(super) fn run(state: &InspectorState, query: &PageQuery) -> Result<Markup, PageError> {
    let source = state.options.workflows.as_ref().ok_or(PageError::NotFound)?;
    let (name, id) = (query.value("name"), query.value("run"));
    let mut known = source.workflows().into_iter();
    let workflow = known.find(|workflow| workflow.name == name).ok_or(PageError::NotFound)?;
    let checkpoints = source.checkpoints(name, id).map_err(PageError::Query)?;
    let latest = checkpoints.last().ok_or(PageError::NotFound)?;
    let states = states(&workflow, &checkpoints, latest);
    let skipped = checkpoints.len().saturating_sub(LISTED_MAX);
    Ok(layout::page(
        "Run of a workflow",
        "/workflows",
        &[],
        html! {
            h1 { (text::line(name)) " " span.id { (text::line(id)) } }
            p { "After superstep " (latest.superstep) ": " strong { (state_of(latest)) } }
            @for question in latest.questions.iter().take(LISTED_MAX) {
                h2 { (text::line(&question.executor)) " asks" }
                (text::block(&question.prompt, "Question"))
                p { "Its id is " code { (text::line(&question.id)) } "." }
            }
            @if let Some(command) = &latest.resume_command { p { "To go on: " (layout::command(command)) } }
            h2 { "Graph" }
            @if let Some(drawing) = graph::drawing(&workflow, &states) { (drawing) }
            (executors(&workflow, &states))
            h2 { "Supersteps" }
            (supersteps(&workflow, &checkpoints))
            @if skipped > 0 { p { (skipped) " older supersteps" } }
        },
    ))
}

/// Returns the class and the state in words of each executor.
fn states<'w>(
    workflow: &'w WorkflowOutline,
    checkpoints: &[RunCheckpoint],
    latest: &RunCheckpoint,
) -> BTreeMap<&'w str, (&'static str, String)> {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for superstep in 0..checkpoints.len() {
        for executor in ran(workflow, checkpoints, superstep).unwrap_or_default() {
            *times.entry(executor).or_default() += 1;
        }
    }
    let state = |id: &'w String| {
        let times = times.get(id.as_str()).copied().unwrap_or(0);
        let count = format!("ran {}", format::counted(times, "time"));
        let state = if latest.questions.iter().any(|question| question.executor == *id) {
            ("asking", "waits for the user".to_owned())
        } else if latest.next.contains(id) {
            ("next", format!("is next, {count}"))
        } else if times > 0 {
            ("ran", count)
        } else {
            ("idle", "has not run".to_owned())
        };
        (id.as_str(), state)
    };
    workflow.executors.iter().map(state).collect()
}

/// Returns the executors that ran in the superstep of a checkpoint: those that messages waited for
/// before. `None` for the first superstep after a run was resumed.
fn ran<'c>(
    workflow: &'c WorkflowOutline,
    checkpoints: &'c [RunCheckpoint],
    index: usize,
) -> Option<Vec<&'c str>> {
    let checkpoint = checkpoints.get(index)?;
    let before = index.checked_sub(1).and_then(|before| checkpoints.get(before));
    match before {
        Some(before)
            if before.problem.is_none() && before.superstep + 1 == checkpoint.superstep =>
        {
            Some(before.next.iter().map(String::as_str).collect())
        }
        None if checkpoint.superstep == 1 => Some(vec![workflow.start.as_str()]),
        _ => None,
    }
}

fn executors(workflow: &WorkflowOutline, states: &BTreeMap<&str, (&str, String)>) -> Markup {
    let more = workflow.executors.len().saturating_sub(LISTED_MAX);
    let rows = html! {
        @for executor in workflow.executors.iter().take(LISTED_MAX) {
            tr {
                th scope="row" { (text::line(executor)) }
                td { @if let Some((_, words)) = states.get(executor.as_str()) { (words) } }
                td {
                    @for edge in workflow.edges.iter().filter(|edge| edge.from == *executor).take(LISTED_MAX) {
                        div {
                            (text::line(&edge.to))
                            @if let Some(label) = &edge.label { span.aside { " if " (text::line(label)) } }
                        }
                    }
                }
            }
        }
    };
    html! {
        (layout::table("Executors", &["Executor", "State", "Sends to"], rows))
        @if more > 0 { p { (more) " more executors" } }
    }
}

fn supersteps(workflow: &WorkflowOutline, checkpoints: &[RunCheckpoint]) -> Markup {
    let skipped = checkpoints.len().saturating_sub(LISTED_MAX);
    let rows = html! {
        @for (index, checkpoint) in checkpoints.iter().enumerate().skip(skipped) {
            tr {
                th.number scope="row" { (checkpoint.superstep) }
                td {
                    @match ran(workflow, checkpoints, index) {
                        Some(executors) => (text::line(&executors.join(", "))),
                        None => span.aside { "not known: the checkpoint before is not of this run" },
                    }
                }
                td { (state_of(checkpoint)) }
                td { code { (text::line(&checkpoint.id)) } }
            }
        }
    };
    layout::table("Supersteps", &["Superstep", "Ran", "Then", "Checkpoint"], rows)
}

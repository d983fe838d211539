//! Workflows: their graphs and runs. A script keeps the page of a run current.

use cofferdam_record::UtcTime;
use maud::{Markup, html};

use super::{graph, layout};
use crate::assets::{Asset, RUN};
use crate::error::PageError;
use crate::inspector::InspectorState;
use crate::progress::{RunProgress, THIS_PROCESS};
use crate::query::{self, PageQuery};
use crate::run_view::{LISTED_MAX, RunView, StateWords, progress_of, state_of};
use crate::workflows::{RunQuestion, WorkflowOutline};
use crate::{format, text};

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
            @for workflow in &workflows {
                (section(workflow, source.and_then(|source| progress_of(&**source, &workflow.name))))
            }
        },
    )
}

fn section(workflow: &WorkflowOutline, progress: Option<RunProgress>) -> Markup {
    let current = progress.map(|progress| {
        progress.read(|progress| (progress.started, progress.superstep(), progress.state()))
    });
    let saved = workflow
        .runs
        .iter()
        .map(|run| (run.id.as_str(), run.started, run.latest.superstep, state_of(&run.latest)));
    let current =
        current.map(|(started, superstep, state)| (THIS_PROCESS, started, superstep, state));
    let runs: Vec<_> = current.into_iter().chain(saved).collect();
    html! {
        h2 { (text::line(&workflow.name)) }
        @if let Some(problem) = &workflow.problem { p.problem { (text::line(problem)) } }
        @if !workflow.executors.is_empty() {
            p {
                (format::counted(len(&workflow.executors), "executor")) ", "
                (format::counted(len(&workflow.edges), "edge"))
            }
        }
        @if runs.is_empty() {
            p { "No run with checkpoints is known. The call log has the calls of its agents, but no supersteps." }
        } @else {
            (layout::table("Runs", &["Run", "Began", "Superstep", "State"], html! {
                @for (id, started, superstep, state) in &runs {
                    (row(&workflow.name, id, *started, *superstep, state))
                }
            }))
        }
        @if workflow.runs_left_out > 0 { p { (workflow.runs_left_out) " older runs" } }
    }
}

fn len<T>(list: &[T]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}

fn row(workflow: &str, id: &str, started: UtcTime, superstep: u64, state: &StateWords) -> Markup {
    let address = query::address("/workflow", [("name", workflow), ("run", id)]);
    html! {
        tr {
            th scope="row" {
                @if workflow.len() > layout::LINKED_BYTES_MAX { (run_name(id)) }
                @else { a href=(address) { (run_name(id)) } }
            }
            td { (layout::time(started)) }
            td.number { (superstep) }
            td { (words(state)) }
        }
    }
}

fn run_name(id: &str) -> Markup {
    html! { @if id == THIS_PROCESS { "in this process" } @else { (text::line(id)) } }
}

fn words(state: &StateWords) -> Markup {
    html! { (state.words) @if !state.names.is_empty() { (text::line(&state.names)) } }
}

/// Returns the page of one run.
pub(super) fn run(state: &InspectorState, query: &PageQuery) -> Result<Markup, PageError> {
    let source = state.options.workflows.as_ref().ok_or(PageError::NotFound)?;
    let (name, id) = (query.value("name"), query.value("run"));
    let mut known = source.workflows().into_iter();
    let workflow = known.find(|workflow| workflow.name == name).ok_or(PageError::NotFound)?;
    let view = RunView::read(&**source, &workflow, id)?;
    let scripts: &[&Asset] = if view.is_over { &[] } else { &[&RUN] };
    Ok(layout::page(
        "Run of a workflow",
        "/workflows",
        scripts,
        html! {
            h1 { (text::line(name)) " " span.id { (run_name(id)) } }
            @if !view.is_over { (layout::live_state()) }
            p {
                "Superstep " span #run-superstep { (view.superstep) } ": "
                strong #run-state { (words(&view.state)) }
            }
            div #run-questions { @for asked in view.shown_questions() { (question(asked)) } }
            p #run-command hidden[view.resume_command.is_none()] {
                "To go on: " (layout::command(view.resume_command.as_deref().unwrap_or_default()))
            }
            h2 { "Graph" }
            @if let Some(drawing) = graph::drawing(&workflow, &view.executors) { (drawing) }
            (executors(&workflow, &view))
            h2 { "Supersteps" }
            (supersteps(&view))
            @if view.left_out > 0 { p { (view.left_out) " older supersteps" } }
        },
    ))
}

/// Returns a question. The script makes the same of an event.
fn question(question: &RunQuestion) -> Markup {
    html! {
        h2 { (text::line(&question.executor)) " asks" }
        (text::block(&question.prompt, "Question"))
        p { "Its id is " code { (text::line(&question.id)) } "." }
    }
}

fn executors(workflow: &WorkflowOutline, view: &RunView) -> Markup {
    let more = workflow.executors.len().saturating_sub(LISTED_MAX);
    let states = workflow.executors.iter().zip(&view.executors);
    let rows = html! {
        @for (index, (executor, (class, state))) in states.take(LISTED_MAX).enumerate() {
            tr data-executor=(index) {
                th scope="row" { (text::line(executor)) }
                td.state data-state=(class) { (state) }
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

/// Returns the table of the supersteps. The script makes the same rows of an event.
fn supersteps(view: &RunView) -> Markup {
    let rows = html! {
        @for superstep in &view.supersteps {
            tr data-superstep=(superstep.number) {
                th.number scope="row" { (superstep.number) }
                td { (words(&superstep.executors)) }
                td { (words(&superstep.then)) }
                td { code { (text::line(&superstep.checkpoint)) } }
            }
        }
    };
    html! {
        div #run-supersteps {
            (layout::table("Supersteps", &["Superstep", "Ran", "Then", "Checkpoint"], rows))
        }
    }
}

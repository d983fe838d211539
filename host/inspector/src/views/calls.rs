//! List of calls, the newest first, with filters and live updates.

use cofferdam_record::{CallFilter, Log};
use maud::{Markup, html};

use super::layout;
use crate::assets::{Asset, LIVE};
use crate::error::PageError;
use crate::query::{ANY, OUTCOMES, PageQuery};
use crate::row::CallRow;
use crate::text;

/// Number of calls on a page.
const ROWS: usize = 50;
/// Heads of the columns.
pub(super) const HEAD: [&str; 6] = ["Time", "Tool", "From", "Outcome", "Took", "Notes"];

/// Returns the page.
pub(super) fn page(log: &Log, query: &PageQuery) -> Result<Markup, PageError> {
    let filter = CallFilter { limit: Some(ROWS + 1), ..query.filter()? };
    let found = log.query(&filter)?;
    let calls = found.calls.get(..ROWS.min(found.calls.len())).unwrap_or_default();
    let older = calls.last().filter(|_| found.calls.len() > ROWS);
    let older = older.map(|last| query.with("/", "after", Some(&last.position().to_string())));
    let is_first = filter.after.is_none();
    let newest = calls.first().map(|call| call.position().to_string());
    let scripts: &[&Asset] = if is_first { &[&LIVE] } else { &[] };
    Ok(layout::page(
        "Calls",
        "/",
        scripts,
        html! {
            h1 { "Calls" }
            (form(query))
            @if is_first { (layout::live_state()) }
            div #calls data-from=[newest] {
                (layout::table("Calls", &HEAD, html! {
                    @for call in calls { (row(&CallRow::new(call))) }
                }))
            }
            p #no-calls hidden[!calls.is_empty()] { "No recorded call matches." }
            nav.pages aria-label="Pages of calls" {
                @if !is_first { a href=(query.with("/", "after", None)) { "Newest" } }
                @if let Some(older) = older { a href=(older) { "Older" } }
            }
            @if !found.damage.losses().is_empty() {
                p { "Not all of the log can be read; " a href="/health" { "Health" } " says why." }
            }
        },
    ))
}

/// Returns the row of a call. Live updates make the same of JSON.
pub(super) fn row(row: &CallRow) -> Markup {
    html! {
        tr data-id=(row.id) data-outcome=(row.outcome) {
            td { time datetime=(row.at) { (row.time) " UTC" } }
            td { a href={ "/call/" (row.id) } { bdi { (row.tool) } } }
            td { bdi { (row.owner) } }
            td.outcome { (row.outcome) }
            td.number { (row.took) }
            td { bdi { (row.notes) } }
        }
    }
}

fn form(query: &PageQuery) -> Markup {
    let input = |name: &str, title: &str, hint: &str| {
        html! {
            label { (title) " " input name=(name) value=(query.value(name)) placeholder=(hint); }
        }
    };
    let any = |name: &str, title: &str| {
        let is_checked = query.get(name) == Some(ANY);
        html! { label { input type="checkbox" name=(name) value=(ANY) checked[is_checked]; " " (title) } }
    };
    let outcome = query.value("outcome");
    let outer = query.get("outer");
    html! {
        form.filters method="get" action="/" aria-label="Filters" {
            (input("tool", "Tool", ""))
            (input("plugin", "Plugin", ""))
            (input("session", "Session", ""))
            label {
                "Outcome "
                select name="outcome" {
                    option value="" { "any" }
                    @for word in OUTCOMES {
                        option value=(word) selected[word == outcome] { (word) }
                    }
                }
            }
            (input("since", "Since", "1h or 2026-11-24"))
            (input("until", "Until", "30m or 2026-11-24"))
            (input("slow", "At least", "100ms"))
            (input("grep", "Contains", ""))
            (any("refused", "refused a permission"))
            (any("changed", "changed files"))
            @if let Some(outer) = outer { input type="hidden" name="outer" value=(outer); }
            button type="submit" { "Filter" }
            a href="/" { "Clear" }
        }
        @for (name, title) in [("refused", "Refused"), ("changed", "Changed")] {
            @if let Some(part) = query.get(name).filter(|part| *part != ANY) {
                p { (title) ": " (text::line(part)) }
            }
        }
    }
}

//! Tools that were called: counts, errors and durations. Tools on offer, if a host runs.

use cofferdam_record::{Log, LogDamage, StatsKey, ToolStats};
use cofferdam_tool::Toolset;
use maud::{Markup, html};

use super::window::TimeWindow;
use super::{layout, tool};
use crate::error::PageError;
use crate::format;
use crate::query::PageQuery;
use crate::text;

/// Maximum number of names on one page.
const NAMES_MAX: usize = 500;
/// Maximum number of losses that a page names.
const LOSSES_MAX: usize = 10;

/// Returns the page of all tools: those that were called, and those on offer.
pub(super) fn page(
    log: Option<&Log>,
    offer: Option<&Toolset>,
    query: &PageQuery,
) -> Result<Markup, PageError> {
    let window = TimeWindow::of(query);
    let stats = log.map(|log| log.stats_by(&window.filter(), StatsKey::Tool)).transpose()?;
    let (stats, damage) = stats.unwrap_or_default();
    let mut rows: Vec<_> = stats.into_iter().collect();
    rows.sort_by(|(a, left), (b, right)| (right.calls, a).cmp(&(left.calls, b)));
    Ok(layout::page(
        "Tools",
        "/tools",
        &[],
        html! {
            h1 { "Tools, " (window.title()) }
            (window.choice("/tools"))
            (table("tool", "Tool", &rows, |name| window.calls("tool", name)))
            (losses(&damage))
            @if let Some(offer) = offer { (tool::list(offer)) }
        },
    ))
}

/// Returns a table of counts by name, with a link for each name.
pub(super) fn table(
    noun: &str,
    title: &str,
    rows: &[(String, ToolStats)],
    address: impl Fn(&str) -> String,
) -> Markup {
    if rows.is_empty() {
        return html! { p { "No call of a " (noun) " was recorded in this time." } };
    }
    let more = rows.len().saturating_sub(NAMES_MAX);
    let cells = html! {
        @for (name, stats) in rows.iter().take(NAMES_MAX) {
            tr {
                th scope="row" {
                    // Names beyond the first thousands are counted together.
                    @if name.is_empty() { "others" }
                    @else { (layout::link(name, &address)) }
                }
                td.number { (stats.calls) }
                td.number { (share(stats.errors, stats.calls)) }
                td.number { (share(stats.refused, stats.calls)) }
                td.number { (format::time(stats.p50_us)) }
                td.number { (format::time(stats.p99_us)) }
                td.number { (format::time(stats.longest_us)) }
                td { @if let Some(newest) = stats.newest { (layout::time(newest)) } }
            }
        }
    };
    let head = [title, "Calls", "Errors", "Refused", "p50", "p99", "Longest", "Last call"];
    html! {
        (layout::table(title, &head, cells))
        @if more > 0 { p { (more) " more" } }
    }
}

/// Returns a paragraph for each part of the log that could not be read.
pub(super) fn losses(damage: &LogDamage) -> Markup {
    html! {
        @for loss in damage.losses().iter().take(LOSSES_MAX) { p { (text::line(loss)) } }
    }
}

fn share(part: u64, all: u64) -> String {
    if part == 0 {
        return "0".to_owned();
    }
    let percent = part.saturating_mul(100).checked_div(all).unwrap_or(0);
    format!("{part} ({percent} %)")
}

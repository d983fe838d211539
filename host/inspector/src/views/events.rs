//! Events besides calls: approvals, grants, loaded plugins, replies of models, runs of agents and
//! decisions of label policies.

use cofferdam_record::{EventList, Log, LogEvent};
use maud::{Markup, html};

use super::window::TimeWindow;
use super::{layout, tools};
use crate::error::PageError;
use crate::query::PageQuery;
use crate::{format, text};

/// Maximum number of events on the page.
const EVENTS_MAX: usize = 500;

/// Returns the page, the newest first.
pub(super) fn page(log: &Log, query: &PageQuery) -> Result<Markup, PageError> {
    let window = TimeWindow::of(query);
    let EventList { mut events, damage, .. } = log.events(window.since())?;
    events.sort_by_key(|event| std::cmp::Reverse(event.at));
    let more = events.len().saturating_sub(EVENTS_MAX);
    let rows = html! {
        @for event in events.iter().take(EVENTS_MAX) {
            tr {
                td { (layout::time(event.at)) }
                td { (kind(&event.event)) }
                td { (text::line(&description(&event.event))) }
            }
        }
    };
    Ok(layout::page(
        "Events",
        "/events",
        &[],
        html! {
            h1 { "Events, " (window.title()) }
            (window.choice("/events"))
            @if events.is_empty() { p { "No event was recorded in this time." } }
            @else { (layout::table("Events", &["Time", "Kind", "Event"], rows)) }
            @if more > 0 { p { (more) " more; `cofferdam log events` lists all" } }
            (tools::losses(&damage))
        },
    ))
}

/// Returns the kind of an event in one word.
pub(super) fn kind(event: &LogEvent) -> &'static str {
    match event {
        LogEvent::Approval { .. } => "approval",
        LogEvent::Grant { .. } => "grant",
        LogEvent::Plugin { .. } => "plugin",
        LogEvent::Model { .. } => "model",
        LogEvent::Agent { .. } => "agent",
        LogEvent::Label { .. } => "label",
        _ => "event",
    }
}

/// Describes an event in one line.
pub(super) fn description(event: &LogEvent) -> String {
    event.description(|duration| {
        format::time(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    })
}

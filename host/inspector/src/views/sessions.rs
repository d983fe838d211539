//! Sessions, and the course of one: its calls, replies of models and runs of agents.

use cofferdam_record::{CallFilter, Log, LogItem, StatsKey};
use maud::{Markup, html};

use super::window::TimeWindow;
use super::{calls, events, layout, tools};
use crate::error::PageError;
use crate::query::{self, PageQuery};
use crate::row::CallRow;
use crate::text;

/// Maximum number of calls and events of one session on its page.
const ITEMS_MAX: usize = 1000;

/// Returns the page of all sessions, the last active first.
pub(super) fn page(log: &Log, query: &PageQuery) -> Result<Markup, PageError> {
    let window = TimeWindow::of(query);
    let (stats, damage) = log.stats_by(&window.filter(), StatsKey::Session)?;
    let mut rows: Vec<_> = stats.into_iter().collect();
    rows.sort_by(|(a, left), (b, right)| (right.newest, a).cmp(&(left.newest, b)));
    Ok(layout::page(
        "Sessions",
        "/sessions",
        &[],
        html! {
            h1 { "Sessions, " (window.title()) }
            (window.choice("/sessions"))
            (tools::table("session", "Session", &rows, |name| query::address("/session", [("name", name)])))
            (tools::losses(&damage))
        },
    ))
}

/// Returns the page of one session, in the order in which its calls and events ended.
pub(super) fn session(log: &Log, query: &PageQuery) -> Result<Markup, PageError> {
    let name = query.get("name").ok_or(PageError::NotFound)?;
    let filter = CallFilter { session: Some(name.to_owned()), ..CallFilter::default() };
    let mut items: Vec<_> = log.stream(&filter)?.take(ITEMS_MAX + 1).collect();
    let has_more = items.len() > ITEMS_MAX;
    items.truncate(ITEMS_MAX);
    let all = query::address("/", [("session", name)]);
    let rows = html! {
        @for item in &items {
            @match item {
                LogItem::Call(call) => (calls::row(&CallRow::new(call))),
                LogItem::Event(event) => tr.event {
                    td { (layout::time(event.at)) }
                    td { (events::kind(&event.event)) }
                    td colspan="4" { (text::line(&events::description(&event.event))) }
                },
                _ => {}
            }
        }
    };
    Ok(layout::page(
        "Session",
        "/sessions",
        &[],
        html! {
            h1 { "Session " (text::line(name)) }
            p { a href=(all) { "List its calls" } }
            @if items.is_empty() { p { "No call of this session is recorded." } }
            @else { (layout::table("Calls and events", &calls::HEAD, rows)) }
            @if has_more { p { "These are the first " (ITEMS_MAX) "; the list of calls has all." } }
        },
    ))
}

//! Plugins: counts and durations of their calls, and the components that were loaded.

use std::collections::BTreeMap;

use cofferdam_record::{Log, LogEvent, StatsKey, UtcTime};
use maud::{Markup, html};

use super::window::TimeWindow;
use super::{layout, tools};
use crate::error::PageError;
use crate::query::PageQuery;
use crate::text;

/// Maximum number of loaded components on the page.
const COMPONENTS_MAX: usize = 200;

/// A component that was loaded under a name.
struct LoadedComponent {
    first: UtcTime,
    last: UtcTime,
    times: u64,
    replaces: Option<String>,
}

/// Returns the page.
pub(super) fn page(log: &Log, query: &PageQuery) -> Result<Markup, PageError> {
    let window = TimeWindow::of(query);
    let (stats, damage) = log.stats_by(&window.filter(), StatsKey::Plugin)?;
    let mut rows: Vec<_> = stats.into_iter().collect();
    rows.sort_by(|(a, left), (b, right)| (right.calls, a).cmp(&(left.calls, b)));
    let components = components(log, window)?;
    let more = components.len().saturating_sub(COMPONENTS_MAX);
    let loaded = html! {
        @for ((plugin, digest), component) in components.iter().take(COMPONENTS_MAX) {
            tr {
                th scope="row" { (text::line(plugin)) }
                td { code { (text::line(digest)) } }
                td { @if let Some(replaces) = &component.replaces { code { (text::line(replaces)) } } }
                td.number { (component.times) }
                td { (layout::time(component.first)) }
                td { (layout::time(component.last)) }
            }
        }
    };
    let head = ["Plugin", "Digest", "Replaced", "Loads", "First load", "Last load"];
    Ok(layout::page(
        "Plugins",
        "/plugins",
        &[],
        html! {
            h1 { "Plugins, " (window.title()) }
            (window.choice("/plugins"))
            (tools::table("plugin", "Plugin", &rows, |name| window.calls("plugin", name)))
            (tools::losses(&damage))
            h2 { "Loaded components" }
            @if components.is_empty() { p { "No plugin was loaded in this time." } }
            @else { (layout::table("Loaded components", &head, loaded)) }
            @if more > 0 { p { (more) " more" } }
        },
    ))
}

/// Returns the components that were loaded, by the name and digest of the plugin.
fn components(
    log: &Log,
    window: TimeWindow,
) -> Result<BTreeMap<(String, String), LoadedComponent>, PageError> {
    let mut components = BTreeMap::new();
    for event in log.events(window.since())?.events {
        let LogEvent::Plugin { plugin, digest, replaces } = event.event else { continue };
        let component = components.entry((plugin, digest)).or_insert(LoadedComponent {
            first: event.at,
            last: event.at,
            times: 0,
            replaces: None,
        });
        component.first = component.first.min(event.at);
        component.last = component.last.max(event.at);
        component.times += 1;
        component.replaces = replaces.or(component.replaces.take());
    }
    Ok(components)
}

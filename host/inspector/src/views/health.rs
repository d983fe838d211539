//! State of the log and its hosts, and the calls of the last hour.

use cofferdam_record::{CallFilter, Log, UtcTime};
use maud::{Markup, html};

use super::layout;
use crate::error::PageError;
use crate::text;

/// Maximum number of damaged segments that are named.
const DAMAGED_MAX: usize = 20;

/// Returns the page.
pub(super) fn page(log: &Log) -> Result<Markup, PageError> {
    let segments = log.segments()?;
    let live = segments.iter().filter(|segment| segment.is_live());
    let live: Vec<_> = live.map(|segment| segment.process().to_owned()).collect();
    let since = UtcTime::parse_age_or_date("1h").ok();
    let filter = CallFilter { since, ..CallFilter::default() };
    let stats = log.stats(&filter)?;
    let sum =
        |count: fn(&cofferdam_record::ToolStats) -> u64| stats.values().map(count).sum::<u64>();
    // Damage is found where calls are read: in the segments of the last hour.
    let damage = log.query(&CallFilter { limit: Some(1), ..filter })?.damage;
    let rows = html! {
        (row("Hosts that write the log", &live.len().to_string()))
        (row("Segments", &segments.len().to_string()))
        (row("Calls of the last hour", &sum(|stats| stats.calls).to_string()))
        (row("Errors of the last hour", &sum(|stats| stats.errors).to_string()))
        (row("Refused in the last hour", &sum(|stats| stats.refused).to_string()))
    };
    Ok(layout::page(
        "Health",
        "/health",
        &[],
        html! {
            h1 { "Health" }
            (layout::table("State", &["", "Now"], rows))
            @if live.is_empty() { p { "No running host writes to this log." } }
            @if !damage.torn.is_empty() || !damage.unreadable.is_empty() {
                h2 { "Damage" }
                ul {
                    @for segment in damage.torn.iter().take(DAMAGED_MAX) {
                        li { (text::line(segment)) " ends in the middle of a line; its host was killed" }
                    }
                    @for problem in damage.unreadable.iter().take(DAMAGED_MAX) {
                        li { "not all can be read: " (text::line(problem)) }
                    }
                }
            }
            p { "To check the whole log: " (layout::command("cofferdam log verify")) }
        },
    ))
}

fn row(name: &str, value: &str) -> Markup {
    html! { tr { th scope="row" { (name) } td.number { (value) } } }
}

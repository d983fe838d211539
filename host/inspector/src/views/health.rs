//! State of the log and its hosts, and the calls of the last hour.

use std::time::Duration;

use cofferdam_record::{CallFilter, Log, LogDamage, UtcTime};
use maud::{Markup, html};

use super::{chart, layout};
use crate::error::PageError;
use crate::inspector::InspectorState;
use crate::workbench::HostLoad;
use crate::{format, text};

/// Maximum number of damaged segments that are named.
const DAMAGED_MAX: usize = 20;
/// Time between the starts of the first and the last minute.
const SPAN: Duration = Duration::from_secs((chart::MINUTES - 1) * 60);

/// Returns the page.
pub(super) fn page(state: &InspectorState, log: &Log) -> Result<Markup, PageError> {
    let segments = log.segments()?;
    let live = segments.iter().filter(|segment| segment.is_live());
    let live: Vec<_> = live.map(|segment| segment.process().to_owned()).collect();
    let since = UtcTime::now().minute().before(SPAN);
    let stats = log.stats_by_minute(&CallFilter { since: Some(since), ..CallFilter::default() })?;
    let load = state.options.workbench.as_ref().and_then(|workbench| workbench.load());
    // Damage is found where calls are read: in the segments of the last hour.
    let damage = &stats.damage;
    let rows = html! {
        @if let Some(load) = load { (rows_of(load)) }
        (row("Hosts that write the log", &live.len().to_string()))
        (row("Segments", &segments.len().to_string()))
        (row("Calls of the last hour", &stats.total.calls.to_string()))
        (row("Errors of the last hour", &stats.total.errors.to_string()))
        (row("Refused in the last hour", &stats.total.refused.to_string()))
    };
    Ok(layout::page(
        "Health",
        "/health",
        &[],
        html! {
            h1 { "Health" }
            (layout::table("State", &["Measure", "Now"], rows))
            @if live.is_empty() { p { "No running host writes to this log." } }
            (chart::section(since, &stats))
            @if *damage != LogDamage::default() {
                h2 { "Damage" }
                ul {
                    @for segment in damage.torn.iter().take(DAMAGED_MAX) {
                        li { (text::line(segment)) " ends in the middle of a line; its host was killed" }
                    }
                    @for loss in damage.losses().iter().take(DAMAGED_MAX) {
                        li { (text::line(loss)) }
                    }
                }
            }
            p { "To check the whole log: " (layout::command(&format!("cofferdam log verify{}", state.options.log_flags))) }
        },
    ))
}

/// Returns the calls and the memory of a running host.
fn rows_of(load: HostLoad) -> Markup {
    let of = |used: String, max: String| format!("{used} of {max}");
    let memory = [load.memory_bytes, load.memory_bytes_max].map(format::bytes);
    let [memory, memory_max] = memory;
    html! {
        (row("Permits in use", &of(load.calls.to_string(), load.calls_max.to_string())))
        (row("Calls that wait", &of(load.waiting.to_string(), load.waiting_max.to_string())))
        (row("Memory of running calls", &of(memory, memory_max)))
    }
}

fn row(name: &str, value: &str) -> Markup {
    html! { tr { th scope="row" { (name) } td.number { (value) } } }
}

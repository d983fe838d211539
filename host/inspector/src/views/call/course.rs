//! Course of a call: its phases and the calls that it made, as bars on one scale.

use cofferdam_record::CallEntry;
use maud::{Markup, html};

use super::layout;
use crate::{format, text};

/// Returns the section about the course of a call.
pub(super) fn section(call: &CallEntry, inner: &[CallEntry]) -> Markup {
    if call.us == 0 {
        return html! {};
    }
    let scale = Scale { us: call.us };
    let left_out = call.inner_calls.saturating_sub(u64::try_from(inner.len()).unwrap_or(u64::MAX));
    let rows = html! {
        (phase("all", scale, 0, call.us, "all"))
        @if call.wait_us > 0 { (phase("wait for a permit", scale, 0, call.wait_us, "wait")) }
        @if call.run_us > 0 {
            (phase("in the guest", scale, call.us.saturating_sub(call.run_us), call.us, "run"))
        }
        @for other in inner {
            @let start = offset(call, other);
            tr {
                th scope="row" { a href={ "/call/" (other.id) } { (text::line(&other.tool)) } }
                td.number { (format::time(other.us)) }
                td { (scale.bar(start, start.saturating_add(other.us), "inner")) }
            }
        }
    };
    html! {
        h2 { "Course" }
        (layout::table("Course", &["Phase or call", "Took", "From start to end"], rows))
        @if left_out > 0 && call.inner_calls > 0 {
            p { (format::counted(left_out, "inner call")) " more, or not in the log any more" }
        }
    }
}

/// Scale of the bars.
#[derive(Clone, Copy)]
struct Scale {
    us: u64,
}

impl Scale {
    fn bar(self, start: u64, end: u64, class: &str) -> Markup {
        let thousandth = |us: u64| us.saturating_mul(1000).checked_div(self.us).unwrap_or(0);
        layout::bar(thousandth(start), thousandth(end), class)
    }
}

fn phase(name: &str, scale: Scale, start: u64, end: u64, class: &str) -> Markup {
    html! {
        tr {
            th scope="row" { (name) }
            td.number { (format::time(end.saturating_sub(start))) }
            td { (scale.bar(start, end, class)) }
        }
    }
}

/// Returns the microseconds from the start of a call to that of an inner one.
fn offset(call: &CallEntry, inner: &CallEntry) -> u64 {
    u64::try_from(inner.at.since(call.at).as_micros()).unwrap_or(u64::MAX)
}

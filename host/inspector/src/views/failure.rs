//! Pages without content: errors, and a log that does not exist yet.

use http::StatusCode;
use maud::{Markup, html};

use super::layout;
use crate::text;

/// Returns the page of an error.
pub(crate) fn page(status: StatusCode, message: &str) -> Markup {
    let title = status.canonical_reason().unwrap_or("Error");
    layout::page(
        title,
        "",
        &[],
        html! {
            h1 { (title) }
            p { (text::line(message)) }
            p { a href="/" { "All calls" } }
        },
    )
}

/// Returns the page of a log that does not exist yet.
pub(super) fn no_log() -> Markup {
    layout::page(
        "Calls",
        "/",
        &[],
        html! {
            h1 { "Calls" }
            p {
                "Nothing is recorded yet. " code { "serve" } ", " code { "chat" } " and "
                code { "workflow run" } " record their calls, and " code { "call --record" }
                " records one. Load this page again then."
            }
        },
    )
}

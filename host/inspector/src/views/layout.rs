//! Frame of all pages.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::assets::{APPROVALS, Asset, ICON, PAGE, STYLE};
use crate::text::{PAYLOAD_BYTES_MAX, UntrustedText, line, plain, plain_line};

/// Maximum bytes of a text that is a parameter of a link.
pub(super) const LINKED_BYTES_MAX: usize = 2048;
/// Pages of the navigation: paths and titles.
pub(super) const PAGES: [(&str, &str); 9] = [
    ("/", "Calls"),
    ("/approvals", "Approvals"),
    ("/tools", "Tools"),
    ("/plugins", "Plugins"),
    ("/grants", "Grants"),
    ("/sessions", "Sessions"),
    ("/workflows", "Workflows"),
    ("/events", "Events"),
    ("/health", "Health"),
];

/// Returns a page with navigation. `path` is that of its entry in the navigation.
pub(super) fn page(title: &str, path: &str, scripts: &[&Asset], main: Markup) -> Markup {
    let navigation = html! {
        header {
            nav aria-label="Pages" {
                span.name { "cofferdam" }
                @for (page, title) in PAGES {
                    a href=(page) aria-current=[(page == path).then_some("page")] { (title) }
                }
            }
            p.hidden #approval-news role="status" {}
        }
    };
    document(
        title,
        &[&[&PAGE, &APPROVALS], scripts].concat(),
        html! { (navigation) main id="main" { (main) } },
    )
}

/// Returns a document.
pub(super) fn document(title: &str, scripts: &[&Asset], body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (plain_line(title)) " · cofferdam" }
                link rel="stylesheet" href=(STYLE.path());
                link rel="icon" href=(ICON.path());
                @for script in scripts { script type="module" src=(script.path()) {} }
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (body)
            }
        }
    }
}

/// Returns a table that can be scrolled sideways with the keyboard.
pub(super) fn table(name: &str, head: &[&str], rows: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(name) {
            table {
                thead { tr { @for cell in head { th scope="col" { (cell) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Returns a time, which a script shows as local time.
pub(super) fn time(at: cofferdam_record::UtcTime) -> Markup {
    html! { time datetime=(at) { (crate::format::date_time(at)) " UTC" } }
}

/// Returns text as a link. A text that is longer than an address may be is not one.
pub(super) fn link(text: &str, address: impl FnOnce(&str) -> String) -> Markup {
    html! {
        @if text.len() > LINKED_BYTES_MAX { (line(text)) }
        @else { a href=(address(text)) { (line(text)) } }
    }
}

/// Returns a command that can be copied.
pub(super) fn command(command: &str) -> Markup {
    html! {
        span.command {
            code { (line(command)) }
            // Nothing is copied that cannot be seen.
            @if plain_line(command) == command {
                button type="button" data-copy=(command) { "Copy" }
            }
        }
    }
}

/// Returns text of several lines that can be copied, under an id of the page.
pub(super) fn copyable(id: &str, name: &str, text: &str) -> Markup {
    html! {
        pre id=(id) tabindex="0" role="region" aria-label=(name) {
            (UntrustedText::new(text, PAYLOAD_BYTES_MAX))
        }
        // Nothing is copied that cannot be seen.
        @if plain(text, PAYLOAD_BYTES_MAX) == text {
            button type="button" data-copy-from=(id) { "Copy" }
        }
    }
}

/// Returns the state of live updates, which a script fills in, and the button that pauses them.
pub(super) fn live_state() -> Markup {
    html! {
        div.live {
            button type="button" #live-pause aria-pressed="false" hidden { "Pause" }
            span #live-state { "Live updates need JavaScript." }
            span.hidden #live-news role="status" {}
        }
    }
}

/// Returns a bar that begins and ends at fractions of its width, in thousandths.
pub(super) fn bar(start: u64, end: u64, class: &str) -> Markup {
    let (start, end) = (start.min(999), end.clamp(start.saturating_add(1), 1000));
    let (x, width) = (start, end.saturating_sub(start).max(1));
    html! {
        svg.bar viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
            (PreEscaped("<rect class=\"track\" width=\"1000\" height=\"10\"></rect>"))
            rect class=(class) x=(x) width=(width) height="10" {}
        }
    }
}

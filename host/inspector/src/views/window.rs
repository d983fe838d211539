//! Time that a summary covers.

use cofferdam_record::{CallFilter, UtcTime};
use maud::{Markup, html};

use crate::query::{self, PageQuery};

/// Times that can be chosen, with their titles. The first is the default.
const WINDOWS: [(&str, &str); 4] =
    [("1d", "last day"), ("1h", "last hour"), ("7d", "last 7 days"), ("all", "all")];

/// Time that a summary covers.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeWindow {
    age: &'static str,
    title: &'static str,
}

impl TimeWindow {
    /// Returns the time that a query names, or the last day.
    pub(super) fn of(query: &PageQuery) -> Self {
        let named = WINDOWS.iter().find(|(age, _)| *age == query.value("since"));
        let (age, title) = named.or(WINDOWS.first()).copied().unwrap_or(("all", "all"));
        Self { age, title }
    }

    /// Returns the start.
    pub(super) fn since(self) -> Option<UtcTime> {
        UtcTime::parse_age_or_date(self.age).ok()
    }

    /// Returns the filter of its calls.
    pub(super) fn filter(self) -> CallFilter {
        CallFilter { since: self.since(), ..CallFilter::default() }
    }

    /// Returns the address of a list of its calls.
    pub(super) fn calls(self, name: &str, value: &str) -> String {
        let since = (self.age != "all").then_some(("since", self.age));
        query::address("/", [(name, value)].into_iter().chain(since))
    }

    /// Returns the choice of times for a page.
    pub(super) fn choice(self, path: &str) -> Markup {
        html! {
            nav.windows aria-label="Time" {
                @for (age, title) in WINDOWS {
                    a href=(query::address(path, [("since", age)]))
                        aria-current=[(age == self.age).then_some("true")] { (title) }
                }
            }
        }
    }

    /// Returns its title.
    pub(super) fn title(self) -> &'static str {
        self.title
    }
}

//! Small charts of the last hour, drawn on the server. Each has its content in words, too.

use cofferdam_record::{MinuteStats, ToolStats, UtcTime};
use maud::{Markup, html};

use super::layout;
use crate::format;

/// Number of minutes of a chart.
pub(super) const MINUTES: u64 = 60;
/// Microseconds of a minute.
const MINUTE_US: i64 = 60_000_000;
/// Width of a minute in a chart.
const STEP: u64 = 10;
/// Height of a chart.
const HEIGHT: u64 = 100;

/// Values of one series by the number of their minute.
struct Series {
    name: &'static str,
    class: &'static str,
    values: Vec<(u64, u64)>,
}

/// Charts of the minutes from `start` on.
pub(super) fn section(start: UtcTime, stats: &MinuteStats) -> Markup {
    let series = |name, class, value: fn(&ToolStats) -> u64| {
        let values = stats.minutes.iter().filter_map(|(minute, stats)| {
            let index = u64::try_from((minute.micros() - start.micros()) / MINUTE_US).ok()?;
            (index < MINUTES).then_some((index, value(stats)))
        });
        Series { name, class, values: values.collect() }
    };
    let calls = [
        series("calls", "calls", |stats| stats.calls),
        series("errors", "errors", |stats| stats.errors),
    ];
    let times =
        [series("p99", "p99", |stats| stats.p99_us), series("p50", "p50", |stats| stats.p50_us)];
    let total = &stats.total;
    let of_calls = format!(
        "Calls by minute: {}, {}, at most {} in a minute",
        format::counted(total.calls, "call"),
        format::counted(total.errors, "error"),
        top(&calls),
    );
    let of_times = format!(
        "Durations by minute: p50 {}, p99 {}, longest {}",
        format::time(total.p50_us),
        format::time(total.p99_us),
        format::time(total.longest_us),
    );
    html! {
        h2 { "Last hour" }
        (figure("calls-chart", &of_calls, &calls, bar))
        (figure("times-chart", &of_times, &times, mark))
        details {
            summary { "As a table" }
            (layout::table("Minutes with calls", &["Minute", "Calls", "Errors", "p50", "p99"], html! {
                @for (minute, stats) in &stats.minutes {
                    tr {
                        th scope="row" { (layout::time(*minute)) }
                        td.number { (stats.calls) }
                        td.number { (stats.errors) }
                        td.number { (format::time(stats.p50_us)) }
                        td.number { (format::time(stats.p99_us)) }
                    }
                }
            }))
        }
    }
}

/// Returns the highest value of all series.
fn top(series: &[Series]) -> u64 {
    let values = series.iter().flat_map(|series| &series.values);
    values.map(|(_, value)| *value).max().unwrap_or(0)
}

/// Returns a chart whose title has its content in words.
fn figure(id: &str, title: &str, series: &[Series], draw: fn(u64, u64, &str) -> Markup) -> Markup {
    let (top, width) = (top(series).max(1), MINUTES * STEP);
    let scaled = |value: u64| u128::from(value) * u128::from(HEIGHT) / u128::from(top);
    // What is not zero can be seen.
    let height = |value: u64| u64::try_from(scaled(value)).unwrap_or(HEIGHT).clamp(1, HEIGHT);
    html! {
        figure {
            svg.chart role="img" aria-labelledby=(id) viewBox={ "0 0 " (width) " " (HEIGHT) }
                preserveAspectRatio="none" {
                title id=(id) { (title) }
                @for series in series {
                    @for (minute, value) in series.values.iter().filter(|(_, value)| *value > 0) {
                        (draw(minute * STEP, height(*value), series.class))
                    }
                }
            }
            figcaption {
                (title) ". "
                @for series in series {
                    svg.key viewBox="0 0 10 10" aria-hidden="true" { rect class=(series.class) width="10" height="10" {} }
                    " " (series.name) " "
                }
            }
        }
    }
}

/// Draws a value as a bar from the bottom.
fn bar(x: u64, height: u64, class: &str) -> Markup {
    let y = HEIGHT.saturating_sub(height);
    html! { rect class=(class) x=(x) y=(y) width=(STEP - 1) height=(height) {} }
}

/// Draws a value as a mark at its height.
fn mark(x: u64, height: u64, class: &str) -> Markup {
    let y = HEIGHT.saturating_sub(height).min(HEIGHT - 3);
    html! { rect class=(class) x=(x) y=(y) width=(STEP - 1) height="3" {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_within_the_chart() {
        let values = vec![(0, 1), (59, u64::MAX), (3, 0)];
        let series = [Series { name: "calls", class: "calls", values }];
        let drawn = figure("a", "Calls", &series, bar).into_string();
        assert!(drawn.contains(r#"x="0" y="99" width="9" height="1""#), "{drawn}");
        assert!(drawn.contains(r#"x="590" y="0" width="9" height="100""#), "{drawn}");
        assert_eq!(drawn.matches("class=\"calls\"").count(), 3, "{drawn}");
        assert!(drawn.contains("<title id=\"a\">Calls</title>"), "{drawn}");
    }
}

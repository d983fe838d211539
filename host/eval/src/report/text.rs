//! Reports as tables.

use std::fmt;

use super::{CaseOutcome, Interval, Report, Statistics};
use crate::table::Table;

/// Writes a table with a row per case and one for all of them, with the decisions of the judge if
/// there are any, then the reasons of the first run
/// of each case that did not pass.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let mut titles = vec![
            "case",
            "outcome",
            "passed",
            "rate (95 %)",
            "calls",
            "failed calls",
            "recovered",
            "tokens in",
            "tokens out",
            "seconds",
        ];
        let is_judged = total.judged > 0;
        titles.extend(is_judged.then_some("accepted"));
        let mut table = Table::new(&titles);
        let mut add = |name: &str, outcome: &str, planned: u32, numbers: &Statistics| {
            let accepted = format!("{}/{}", numbers.accepted, numbers.judged);
            let cells = row(name, outcome, planned, numbers).into_iter();
            table.add(cells.chain(is_judged.then_some(accepted)));
        };
        for case in &self.cases {
            add(&case.name, case.outcome().as_str(), case.planned, &case.statistics());
        }
        let planned = self.cases.iter().fold(0_u32, |sum, case| sum.saturating_add(case.planned));
        add("all cases", "", planned, &total);
        write!(f, "{table}")?;
        if let (true, Some(judge)) = (is_judged, &self.judge) {
            writeln!(f, "Judged by {judge}.")?;
        }
        for case in &self.cases {
            if let Some(run) = case.runs.iter().find(|run| !run.reasons.is_empty()) {
                writeln!(f, "\n{}, run {}:", case.name, run.number)?;
                run.reasons.iter().try_for_each(|reason| writeln!(f, "  {reason}"))?;
            }
        }
        Ok(())
    }
}

fn row(name: &str, outcome: &str, planned: u32, numbers: &Statistics) -> [String; 10] {
    [
        name.to_owned(),
        outcome.to_owned(),
        format!("{}/{planned}", numbers.passed),
        rate(numbers.rate, numbers.rate_interval),
        format!("{:.1}", numbers.calls.mean),
        numbers.failed_calls.to_string(),
        numbers.recovered.to_string(),
        format!("{:.0}", numbers.input_tokens.mean),
        format!("{:.0}", numbers.output_tokens.mean),
        format!("{:.1}", numbers.seconds.mean),
    ]
}

/// Returns a rate with its interval, in percent.
pub(crate) fn rate(rate: Option<f64>, interval: Interval) -> String {
    match rate {
        None => "-".to_owned(),
        Some(rate) => format!(
            "{:.0} % ({:.0}-{:.0})",
            rate * 100.0,
            interval.low * 100.0,
            interval.high * 100.0
        ),
    }
}

impl CaseOutcome {
    /// Returns the name used in JSON and in tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Incomplete => "incomplete",
        }
    }
}

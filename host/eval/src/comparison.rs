//! Compares two reports of the same cases, such as those of two versions of a plugin's
//! descriptions.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Serialize;

use crate::report::rate;
use crate::report::{CaseOutcome, CaseReport, Interval, Report, RunReport, Statistics};
use crate::table::Table;

/// Differences between two reports.
///
/// A rate of few runs is uncertain, so each change of a rate comes with an interval, and
/// [`RateChange::is_shown`] tells whether the runs show a change at all. One in twenty changes that
/// they show is expected to be chance, so look at a single case among many with care.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Subject and model of the earlier report.
    pub before: Subject,
    /// Subject and model of the later report.
    pub after: Subject,
    /// Cases of both reports, in the order of the later one.
    pub cases: Vec<CaseChange>,
    /// Change of all cases that are the same in both reports, together.
    pub total: Change,
    /// Names of the cases of the earlier report only.
    pub only_before: Vec<String>,
    /// Names of the cases of the later report only.
    pub only_after: Vec<String>,
}

/// Subject and model of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Subject {
    /// Description of what was evaluated.
    pub subject: String,
    /// Name of the model.
    pub model: String,
    /// Name of the model that judged, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
}

/// Differences of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CaseChange {
    /// Name of the case.
    pub name: String,
    /// True if the case itself differs between the reports, so that a difference need not come from
    /// the tools.
    pub is_rewritten: bool,
    /// Outcome in the earlier report.
    pub outcome_before: CaseOutcome,
    /// Outcome in the later report.
    pub outcome_after: CaseOutcome,
    /// Numbers of the case.
    pub change: Change,
}

/// Numbers of two sets of runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// Numbers of the earlier runs.
    pub before: Statistics,
    /// Numbers of the later runs.
    pub after: Statistics,
    /// Change of the rate; `None` if either has no runs.
    pub rate: Option<RateChange>,
    /// Change of the mean number of calls per run.
    pub calls: f64,
    /// Change of the mean number of tokens per run.
    pub tokens: f64,
}

/// Change of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RateChange {
    /// Difference of the rates, from -1 to 1.
    pub difference: f64,
    /// Interval of 95 % of the difference (Newcombe's, from the Wilson intervals of both rates).
    pub interval: Interval,
}

impl Comparison {
    /// Compares two reports. Cases are the same if they have the same name.
    #[must_use]
    pub fn between(before: &Report, after: &Report) -> Self {
        let earlier: HashMap<_, _> =
            before.cases.iter().map(|case| (case.name.as_str(), case)).collect();
        let pair = |case: &CaseReport| earlier.get(case.name.as_str()).copied();
        let later: HashSet<_> = after.cases.iter().map(|case| case.name.as_str()).collect();
        let pairs: Vec<_> =
            after.cases.iter().filter_map(|case| Some((pair(case)?, case))).collect();
        let same = || pairs.iter().filter(|(before, after)| before.case == after.case);
        let total = Change::between(
            same().flat_map(|(before, _)| &before.runs),
            same().flat_map(|(_, after)| &after.runs),
        );
        let names = |cases: Vec<&CaseReport>| cases.iter().map(|case| case.name.clone()).collect();
        let is_gone = |case: &&CaseReport| !later.contains(case.name.as_str());
        Self {
            before: Subject::of(before),
            after: Subject::of(after),
            cases: pairs.iter().map(|(before, after)| CaseChange::between(before, after)).collect(),
            total,
            only_before: names(before.cases.iter().filter(is_gone).collect()),
            only_after: names(after.cases.iter().filter(|case| pair(case).is_none()).collect()),
        }
    }

    /// Returns the cases that passed before and fail now.
    pub fn newly_failing(&self) -> impl Iterator<Item = &CaseChange> {
        self.turned(CaseOutcome::Passed, CaseOutcome::Failed)
    }

    /// Returns the cases that failed before and pass now.
    pub fn newly_passing(&self) -> impl Iterator<Item = &CaseChange> {
        self.turned(CaseOutcome::Failed, CaseOutcome::Passed)
    }

    fn turned(&self, from: CaseOutcome, to: CaseOutcome) -> impl Iterator<Item = &CaseChange> {
        self.cases
            .iter()
            .filter(move |case| (case.outcome_before, case.outcome_after) == (from, to))
    }
}

impl Subject {
    fn of(report: &Report) -> Self {
        let Report { subject, model, judge, .. } = report;
        Self { subject: subject.clone(), model: model.clone(), judge: judge.clone() }
    }
}

impl CaseChange {
    fn between(before: &CaseReport, after: &CaseReport) -> Self {
        Self {
            name: after.name.clone(),
            is_rewritten: before.case != after.case,
            outcome_before: before.outcome(),
            outcome_after: after.outcome(),
            change: Change::between(&before.runs, &after.runs),
        }
    }
}

impl Change {
    fn between<'r>(
        before: impl IntoIterator<Item = &'r RunReport>,
        after: impl IntoIterator<Item = &'r RunReport>,
    ) -> Self {
        let (before, after) = (Statistics::of(before), Statistics::of(after));
        Self {
            rate: RateChange::between(&before, &after),
            calls: after.calls.mean - before.calls.mean,
            tokens: after.mean_tokens() - before.mean_tokens(),
            before,
            after,
        }
    }
}

impl RateChange {
    fn between(before: &Statistics, after: &Statistics) -> Option<Self> {
        let (old, new) = (before.rate?, after.rate?);
        let (old_range, new_range) = (before.rate_interval, after.rate_interval);
        let difference = new - old;
        let down = (new - new_range.low).hypot(old_range.high - old);
        let up = (new_range.high - new).hypot(old - old_range.low);
        let interval = Interval { low: difference - down, high: difference + up };
        Some(Self { difference, interval })
    }

    /// Returns whether the runs show a change: whether no change at all is outside of the interval.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.interval.low > 0.0 || self.interval.high < 0.0
    }
}

/// Writes a table with a row per case and one for all of them, and notes on how far to trust it.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = [
            "case",
            "outcome",
            "runs",
            "rate before (95 %)",
            "rate after (95 %)",
            "change",
            "calls",
            "tokens",
        ];
        let mut table = Table::new(&titles);
        for case in &self.cases {
            let (before, after) = (case.outcome_before.as_str(), case.outcome_after.as_str());
            let outcome = match before == after {
                true => before.to_owned(),
                false => format!("{before} -> {after}"),
            };
            let name = match case.is_rewritten {
                true => format!("{} (*)", case.name),
                false => case.name.clone(),
            };
            table.add(row(name, outcome, &case.change));
        }
        table.add(row("all cases".to_owned(), String::new(), &self.total));
        write!(f, "{table}")?;
        if self.cases.iter().any(|case| case.is_rewritten) {
            writeln!(f, "(*) The case differs between the reports; it is not part of all cases.")?;
        }
        if self.before.model != self.after.model {
            let (before, after) = (&self.before.model, &self.after.model);
            writeln!(f, "The reports are of different models: {before} and {after}.")?;
        }
        if self.before.judge != self.after.judge {
            let name =
                |subject: &Subject| subject.judge.clone().unwrap_or_else(|| "none".to_owned());
            let (before, after) = (name(&self.before), name(&self.after));
            writeln!(f, "The reports have different judges: {before} and {after}.")?;
        }
        for (names, which) in [(&self.only_before, "earlier"), (&self.only_after, "later")] {
            if !names.is_empty() {
                writeln!(f, "Only in the {which} report: {}.", names.join(", "))?;
            }
        }
        Ok(())
    }
}

fn row(name: String, outcome: String, change: &Change) -> [String; 8] {
    let (before, after) = (&change.before, &change.after);
    let difference = match change.rate {
        None => "-".to_owned(),
        Some(rate) if rate.is_shown() => format!("{:+.0} points", rate.difference * 100.0),
        Some(rate) => {
            format!("{:+.0} points, within chance", rate.difference * 100.0)
        }
    };
    [
        name,
        outcome,
        format!("{}, {}", before.runs, after.runs),
        rate(before.rate, before.rate_interval),
        rate(after.rate, after.rate_interval),
        difference,
        format!("{:+.1}", change.calls),
        format!("{:+.0}", change.tokens),
    ]
}

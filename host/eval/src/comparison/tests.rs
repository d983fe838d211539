use serde_json::json;

use super::*;
use crate::case::PassCriterion;
use crate::report::tests::case;

fn report(cases: Vec<CaseReport>) -> Report {
    Report { subject: "s".to_owned(), model: "m".to_owned(), judge: None, cases }
}

#[test]
fn few_runs_show_no_change_and_many_do() {
    let rows = [
        ("fff", "ppp", true),
        ("pff", "ppp", false),
        ("ppf", "ppp", false),
        ("ppffffffff", "ppppppppff", true),
        ("ppppp", "ppppp", false),
        ("ppppppppff", "ppffffffff", true),
    ];
    for (before, after, is_shown) in rows {
        let all = PassCriterion::All;
        let before = report(vec![case("n", all, before.len() as u32, before)]);
        let after = report(vec![case("n", all, after.len() as u32, after)]);
        let change = Comparison::between(&before, &after).cases[0].change.rate.unwrap();
        assert_eq!(change.is_shown(), is_shown, "{change:?}");
    }
}

#[test]
fn the_interval_of_a_difference_is_newcombes() {
    // Newcombe (1998), method 10, of 56/70 and 48/80: 0.2, from 0.0524 to 0.3339.
    let outcomes = |passed: usize, runs: usize| "p".repeat(passed) + &"f".repeat(runs - passed);
    let before = report(vec![case("n", PassCriterion::All, 80, &outcomes(48, 80))]);
    let after = report(vec![case("n", PassCriterion::All, 70, &outcomes(56, 70))]);
    let change = Comparison::between(&before, &after).total.rate.unwrap();
    assert!((change.difference - 0.2).abs() < 1e-9);
    assert!((change.interval.low - 0.0524).abs() < 1e-4, "{change:?}");
    assert!((change.interval.high - 0.3339).abs() < 1e-4, "{change:?}");
}

#[test]
fn cases_are_paired_by_name() {
    let all = PassCriterion::All;
    let before = report(vec![
        case("broken", all, 1, "p"),
        case("mended", all, 1, "f"),
        case("gone", all, 1, "p"),
        case("rewritten", all, 1, "p"),
        case("unclear", all, 1, "p"),
    ]);
    let mut rewritten = case("rewritten", all, 1, "f");
    rewritten.case = json!({"name": "rewritten", "prompt": "another"});
    let mut broken = case("broken", all, 1, "f");
    broken.runs[0].call_count = 4;
    broken.runs[0].input_tokens = 150;
    let after = report(vec![
        case("new", all, 1, "p"),
        case("unclear", all, 1, "e"),
        rewritten,
        case("mended", all, 1, "p"),
        broken,
    ]);
    let comparison = Comparison::between(&before, &after);
    let names =
        |cases: Vec<&CaseChange>| cases.iter().map(|case| case.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(comparison.newly_failing().collect()), ["rewritten", "broken"]);
    assert_eq!(names(comparison.newly_passing().collect()), ["mended"]);
    assert_eq!(
        (&comparison.only_before[..], &comparison.only_after[..]),
        (&["gone".to_owned()][..], &["new".to_owned()][..],)
    );
    let broken = &comparison.cases[3];
    assert_eq!((broken.change.calls, broken.change.tokens), (3.0, 50.0));
    assert!(comparison.cases[1].is_rewritten);
    assert_eq!(comparison.cases[0].change.rate, None);
    // Without the rewritten case, and without the error.
    assert_eq!((comparison.total.before.runs, comparison.total.after.runs), (3, 2));
}

#[test]
fn a_comparison_is_a_table_with_notes() {
    let all = PassCriterion::All;
    let before = report(vec![case("a", all, 3, "ppf"), case("b", all, 3, "ppp")]);
    let mut after = report(vec![case("a", all, 3, "ppp"), case("c", all, 3, "ppp")]);
    after.model = "other".to_owned();
    assert_eq!(
        Comparison::between(&before, &after).to_string(),
        "\
case                outcome  runs  rate before (95 %)  rate after (95 %)                     change  calls  tokens
a          failed -> passed  3, 3        67 % (21-94)     100 % (44-100)  +33 points, within chance   +0.0      +0
all cases                    3, 3        67 % (21-94)     100 % (44-100)  +33 points, within chance   +0.0      +0
The reports are of different models: m and other.
Only in the earlier report: b.
Only in the later report: c.
"
    );
}

use serde_json::json;

use super::*;

/// Returns a run with an outcome and numbers of failed calls and of tokens.
pub(crate) fn run(number: u32, outcome: RunOutcome, failed_calls: u64, tokens: u64) -> RunReport {
    RunReport {
        number,
        outcome,
        reasons: Vec::new(),
        calls: Vec::new(),
        call_count: failed_calls + 1,
        failed_calls,
        answer: String::new(),
        judgment: None,
        rounds: 2,
        input_tokens: tokens,
        output_tokens: 10,
        seconds: 0.5,
    }
}

/// Returns the report of a case whose runs have these outcomes: `p`, `f` and `e`.
pub(crate) fn case(name: &str, pass: PassCriterion, planned: u32, outcomes: &str) -> CaseReport {
    let outcome = |letter| match letter {
        'p' => RunOutcome::Passed,
        'f' => RunOutcome::Failed,
        _ => RunOutcome::Error,
    };
    let runs = outcomes.chars().zip(1..).map(|(letter, n)| run(n, outcome(letter), 0, 100));
    let written = json!({"name": name, "prompt": "p"});
    CaseReport { name: name.to_owned(), case: written, pass, planned, runs: runs.collect() }
}

#[test]
fn the_outcome_of_a_case_follows_its_criterion() {
    use CaseOutcome::{Failed, Incomplete, Passed};
    use PassCriterion::{All, K, Rate};
    let rows = [
        (All, 3, "ppp", Passed),
        (All, 3, "ppf", Failed),
        (All, 3, "ppe", Incomplete),
        (All, 3, "pp", Incomplete),
        (All, 3, "pfe", Failed),
        (Rate(0.8), 5, "ppppf", Passed),
        (Rate(0.8), 5, "pppff", Failed),
        (Rate(0.8), 5, "pppp", Passed),
        (Rate(0.7), 10, "pppppppfff", Passed),
        (Rate(0.8), 5, "pppfe", Incomplete),
        (K(2), 4, "ppff", Passed),
        (K(2), 4, "pfff", Failed),
        (K(2), 4, "pffe", Incomplete),
    ];
    for (pass, planned, outcomes, outcome) in rows {
        assert_eq!(case("n", pass, planned, outcomes).outcome(), outcome, "{pass:?} {outcomes}");
    }
}

#[test]
fn pass_power_k_is_the_share_of_the_choices_of_k_runs_that_pass() {
    // C(3, 2) / C(4, 2) = 3 / 6.
    assert_eq!(case("n", PassCriterion::K(2), 4, "pppf").pass_power_k(), Some(0.5));
    assert_eq!(case("n", PassCriterion::K(2), 4, "pfff").pass_power_k(), Some(0.0));
    assert_eq!(case("n", PassCriterion::K(3), 3, "ppp").pass_power_k(), Some(1.0));
    assert_eq!(case("n", PassCriterion::K(3), 3, "ppe").pass_power_k(), None);
    assert_eq!(case("n", PassCriterion::All, 3, "ppp").pass_power_k(), None);
}

#[test]
fn numbers_are_those_of_judged_runs() {
    let runs = [
        run(1, RunOutcome::Passed, 2, 100),
        run(2, RunOutcome::Passed, 0, 300),
        run(3, RunOutcome::Failed, 1, 200),
        run(4, RunOutcome::Failed, 0, 1000),
        run(5, RunOutcome::Error, 9, 9999),
    ];
    let numbers = Statistics::of(&runs);
    assert_eq!((numbers.runs, numbers.passed, numbers.failed, numbers.errors), (4, 2, 2, 1));
    assert_eq!((numbers.failed_calls, numbers.recovered), (3, 1));
    assert_eq!((numbers.input_tokens.mean, numbers.input_tokens.median), (400.0, 250.0));
    assert_eq!((numbers.calls.mean, numbers.calls.median), (1.75, 1.5));
    assert_eq!(numbers.rate, Some(0.5));

    let none = Statistics::of(&[]);
    assert_eq!((none.rate, none.rate_interval), (None, Interval { low: 0.0, high: 1.0 }));
    assert_eq!(none.calls, Spread::default());
}

#[test]
fn the_interval_of_a_rate_is_wilsons() {
    // Values of Brown, Cai and DasGupta's formula, computed independently.
    let rows =
        [(3, 3, 0.4385, 1.0), (0, 3, 0.0, 0.5615), (8, 10, 0.4902, 0.9433), (5, 5, 0.5655, 1.0)];
    for (passed, runs, low, high) in rows {
        let outcomes = "p".repeat(passed) + &"f".repeat(runs - passed);
        let case = case("n", PassCriterion::All, runs as u32, &outcomes);
        let Interval { low: got_low, high: got_high } = case.statistics().rate_interval;
        assert!(
            (got_low - low).abs() < 1e-4 && (got_high - high).abs() < 1e-4,
            "{passed}/{runs}: {got_low} {got_high}"
        );
    }
}

fn report() -> Report {
    let mut failed = case("second", PassCriterion::Rate(0.5), 2, "fe");
    failed.runs[0].reasons = vec!["expected a call of `a`, found none".to_owned()];
    failed.runs[0].calls =
        vec![ObservedCall { tool: "b".to_owned(), arguments: json!({"x": 1}), failed: true }];
    Report {
        subject: "words 0.2.0".to_owned(),
        model: "m".to_owned(),
        judge: None,
        cases: vec![case("first", PassCriterion::K(2), 3, "ppp"), failed],
    }
}

#[test]
fn a_report_is_read_back() {
    let report = report();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(Report::read("r.json", json.to_string().as_bytes()).unwrap(), report);
    // The names of the fields are a promise to those who read reports.
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&json), ["version", "subject", "model", "complete", "total", "cases"]);
    assert_eq!(
        keys(&json["cases"][0]),
        ["name", "outcome", "pass", "pass_power_k", "planned", "statistics", "case", "runs"]
    );
    assert_eq!(
        keys(&json["total"]),
        [
            "runs",
            "passed",
            "failed",
            "errors",
            "rate",
            "rate_interval",
            "calls",
            "rounds",
            "input_tokens",
            "output_tokens",
            "seconds",
            "failed_calls",
            "recovered",
            "judged",
            "accepted",
        ]
    );
    assert_eq!(
        keys(&json["cases"][1]["runs"][0]),
        [
            "number",
            "outcome",
            "reasons",
            "calls",
            "call_count",
            "failed_calls",
            "answer",
            "rounds",
            "input_tokens",
            "output_tokens",
            "seconds",
        ]
    );
    assert_eq!(json["cases"][0]["pass"], json!({"k": 2}));
    assert_eq!(json["cases"][1]["outcome"], "incomplete");
    assert_eq!(json["cases"][1]["runs"][1]["outcome"], "error");
}

#[test]
fn what_is_no_report_is_refused() {
    let read = |text: &str| Report::read("r.json", text.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        read(r#"{"version":2,"cases":7}"#),
        "r.json: expected a report of version 1, found version 2; run the cases again"
    );
    let cases = vec![json!({"name": "a", "pass": "all", "planned": 1, "runs": []}); 2];
    let repeated = json!({"version": 1, "cases": cases}).to_string();
    assert_eq!(read(&repeated), "r.json: expected each case once, found \"a\" twice");
    for text in ["", "[]", "{}", r#"{"version":1}"#, r#"{"version":1,"cases":[{"name":"a"}]}"#] {
        assert!(read(text).starts_with("r.json: expected a report of an evaluation"), "{text}");
    }
}

#[test]
fn a_report_is_a_table_with_reasons() {
    assert_eq!(
        report().to_string(),
        "\
case          outcome  passed     rate (95 %)  calls  failed calls  recovered  tokens in  tokens out  seconds
first          passed     3/3  100 % (44-100)    1.0             0          0        100          10      0.5
second     incomplete     0/2      0 % (0-79)    1.0             0          0        100          10      0.5
all cases                 3/5    75 % (30-95)    1.0             0          0        100          10      0.5

second, run 1:
  expected a call of `a`, found none
"
    );
}

#[test]
fn long_answers_and_arguments_are_cut() {
    let mut long = run(1, RunOutcome::Passed, 0, 0);
    long.answer = "ä".repeat(ANSWER_CHARS_MAX + 1);
    let call = ObservedCall {
        tool: "a".to_owned(),
        arguments: json!({"x": "y".repeat(ARGUMENTS_BYTES_MAX)}),
        failed: false,
    };
    long.calls = vec![call; CALLS_MAX + 1];
    let short = long.shortened();
    assert_eq!(short.answer.chars().count(), ANSWER_CHARS_MAX + 1);
    assert_eq!(short.calls.len(), CALLS_MAX);
    let cut = short.calls[0].arguments.as_str().unwrap();
    assert!(cut.len() <= ARGUMENTS_BYTES_MAX && cut.ends_with('…'));
}

use std::sync::Mutex;

use cofferdam_agent::{ApprovalMode, Approvals, ErrorLimitAction, LoopSettings, ScriptedClient};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, ToolFailure, Toolset};
use serde_json::json;

use super::*;
use crate::case::read_cases;
use crate::report::CaseOutcome;

/// Counts words, and fails for an empty string.
const TOOL: &str = "word_count";

fn tools() -> Result<Toolset, BoxError> {
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
    let declaration = Declaration::new(TOOL, "Counts words.", schema);
    let functions = Functions::new("words").with(declaration, async |arguments, _| {
        let text = arguments.value().get("text").and_then(Value::as_str).unwrap_or_default();
        match text.split_whitespace().count() {
            0 => Err(ToolFailure::new("no words").into()),
            count => Ok(json!(count)),
        }
    })?;
    let mut tools = Toolset::new();
    tools.add(Arc::new(functions))?;
    Ok(tools)
}

fn agent(script: &str) -> Result<Agent, BoxError> {
    let model = ScriptedClient::read("script", script.as_bytes())?;
    Ok(Agent::builder(model).tools(tools()?).build()?)
}

/// Returns a line of a script that calls the tool.
fn calling(text: &str) -> String {
    let call = json!({"tool": TOOL, "arguments": {"text": text}});
    json!({"calls": [call], "usage": {"input": 10, "output": 2}}).to_string()
}

fn saying(text: &str) -> String {
    json!({"text": text, "usage": {"input": 20, "output": 3}}).to_string()
}

fn read(case: Value) -> Vec<EvalCase> {
    read_cases("c.jsonl", case.to_string().as_bytes()).unwrap()
}

/// Runs a case whose runs all have the same script.
async fn report(case: Value, script: &[String]) -> CaseReport {
    let cases = read(case);
    let script = script.join("\n");
    let options = EvalOptions::default();
    let report = evaluate(&cases, &options, |_, _| async { agent(&script) });
    report.await.unwrap().cases.remove(0)
}

#[tokio::test]
async fn runs_are_observed_and_judged() {
    let case = json!({
        "name": "counts", "prompt": "How many words has 'a b'?", "runs": 4, "pass": {"rate": 0.5},
        "calls": [{"tool": TOOL, "arguments": {"text": "a b"}}], "answer": {"contains": "2"},
    });
    let cases = read(case.clone());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observed = Arc::clone(&seen);
    let options = EvalOptions {
        observer: Some(Arc::new(move |case: &EvalCase, run: &RunReport| {
            observed.lock().unwrap().push((case.name.clone(), run.number));
        })),
        ..EvalOptions::default()
    };
    let report = evaluate(&cases, &options, |_, number| async move {
        // The first run recovers from an error, the second one calls nothing, the third one passes,
        // and the fourth one has no provider.
        let lines = match number {
            1 => vec![calling(" "), calling("a b"), saying("2 words")],
            2 => vec![saying("I think 2.")],
            3 => vec![calling("a b"), saying("There are 2.")],
            _ => vec![json!({"error": {"kind": "overloaded", "message": "busy"}}).to_string()],
        };
        agent(&lines.join("\n"))
    });
    let report = report.await.unwrap();
    let mut seen = seen.lock().unwrap().clone();
    seen.sort();
    assert_eq!(seen, [1, 2, 3, 4].map(|number| ("counts".to_owned(), number)));

    let [counts] = &report.cases[..] else { panic!("{report:?}") };
    assert_eq!(counts.case, case);
    let outcomes: Vec<_> = counts.runs.iter().map(|run| run.outcome).collect();
    use RunOutcome::{Error, Failed, Passed};
    assert_eq!(outcomes, [Passed, Failed, Passed, Error]);
    let [first, second, _, fourth] = &counts.runs[..] else { panic!("{counts:?}") };
    let calls: Vec<_> =
        first.calls.iter().map(|call| (call.arguments["text"].as_str(), call.failed)).collect();
    assert_eq!(calls, [(Some(" "), true), (Some("a b"), false)]);
    assert_eq!((first.call_count, first.failed_calls, first.rounds), (2, 1, 3));
    assert_eq!((first.input_tokens, first.output_tokens), (40, 7));
    assert_eq!(first.answer, "2 words");
    assert_eq!(
        second.reasons,
        ["expected a call of `word_count` with {\"text\":\"a b\"}, found none (the model called \
          no tool)"]
    );
    assert_eq!(fourth.reasons, ["the run did not end: busy"]);

    let numbers = report.total();
    assert_eq!((numbers.runs, numbers.passed, numbers.failed, numbers.errors), (3, 2, 1, 1));
    assert_eq!((numbers.recovered, numbers.failed_calls), (1, 1));
    assert_eq!((numbers.calls.mean, numbers.calls.median), (1.0, 1.0));
    // Half of four runs is two, whatever the fourth one would have done.
    assert_eq!(counts.outcome(), CaseOutcome::Passed);
    assert!(!report.is_complete());
}

#[tokio::test]
async fn turns_share_a_session_and_the_last_answer_counts() {
    let case = json!({
        "name": "turns", "turns": ["Count 'a'.", "And 'a b'?"], "order": "exact",
        "calls": [{"tool": TOOL, "arguments": {"text": "a"}}, {"tool": TOOL, "arguments": {"text": "a b"}}],
        "answer": {"equals": "2"},
    });
    let script = [calling("a"), saying("1"), calling("a b"), saying(" 2 ")];
    let report = report(case, &script).await;
    assert_eq!(report.outcome(), CaseOutcome::Passed, "{:?}", report.runs);
    let run = &report.runs[0];
    assert_eq!((run.rounds, run.call_count, run.input_tokens), (4, 2, 60));
}

#[tokio::test]
async fn answers_are_compared_as_the_case_says() {
    let rows = [
        (json!({"contains": ["a", "b"]}), "b a", true),
        (json!({"contains": "A"}), "a", false),
        (json!({"not-contains": "sorry"}), "I am sorry", false),
        (json!({"regex": "^[0-9]+$"}), "42", true),
        (json!({"regex": "^[0-9]+$"}), "42 words", false),
        (json!({"equals": "x"}), " x\n", true),
        (json!({"equals": {"n": 1, "m": 2}}), "{\"m\": 2.0, \"n\": 1}", true),
        (json!({"equals": null}), "null", true),
        (json!({"equals": 1}), "one", false),
        (json!({"schema": {"type": "object", "required": ["n"]}}), "{\"n\": 1}", true),
        (json!({"schema": {"type": "object", "required": ["n"]}}), "{}", false),
        (json!({"schema": {"type": "object"}}), "no JSON", false),
    ];
    for (answer, text, passes) in rows {
        let case = json!({"name": "n", "prompt": "p", "answer": answer});
        let report = report(case, &[saying(text)]).await;
        let run = &report.runs[0];
        assert_eq!(run.outcome == RunOutcome::Passed, passes, "{answer} {text}");
        assert_eq!(run.reasons.is_empty(), passes);
    }
}

#[tokio::test]
async fn limits_end_runs_and_fail_them() {
    let rows = [
        (json!({"rounds": 1}), "expected at most 1 model request, found 2"),
        (json!({"tokens": 11}), "expected at most 11 tokens, found 12"),
    ];
    for (limits, reason) in rows {
        let case = json!({"name": "n", "prompt": "p", "limits": limits});
        let report = report(case, &[calling("a"), saying("1")]).await;
        let run = &report.runs[0];
        assert_eq!((run.outcome, &run.reasons[..]), (RunOutcome::Failed, &[reason.to_owned()][..]));
    }
    let exact = json!({"name": "n", "prompt": "p", "limits": {"rounds": 2, "tokens": 35}});
    let report = report(exact, &[calling("a"), saying("1")]).await;
    assert_eq!(report.outcome(), CaseOutcome::Passed, "{:?}", report.runs);
}

#[tokio::test]
async fn a_slow_run_is_ended_and_keeps_its_calls() {
    let case = json!({"name": "n", "prompt": "p", "limits": {"seconds": 0.05}});
    let slow = json!({"text": "late", "delay_ms": 3_600_000}).to_string();
    let report = report(case, &[calling("a"), slow]).await;
    let run = &report.runs[0];
    assert_eq!((run.outcome, run.call_count), (RunOutcome::Failed, 1), "{run:?}");
}

#[tokio::test]
async fn errors_of_the_setup_are_not_failures() {
    let case = || json!({"name": "n", "prompt": "p", "none": true});
    let cases = read(case());
    let options = EvalOptions::default();
    let refused = |_: &EvalCase, _| async { Err::<Agent, BoxError>("no such plugin".into()) };
    let made = evaluate(&cases, &options, refused).await.unwrap();
    assert_eq!(
        made.cases[0].runs[0].reasons,
        ["the agent of the run cannot be made: no such plugin"]
    );
    assert_eq!(made.cases[0].outcome(), CaseOutcome::Incomplete);

    let asking = |_: &EvalCase, _| async {
        let model = ScriptedClient::read("script", calling("a").as_bytes())?;
        let approvals = Approvals::by_default(ApprovalMode::Always);
        Ok(Agent::builder(model).tools(tools()?).approvals(approvals).build()?)
    };
    let asked = evaluate(&cases, &options, asking).await.unwrap();
    let run = &asked.cases[0].runs[0];
    assert_eq!(run.outcome, RunOutcome::Error);
    assert!(run.reasons[0].contains("approval of a call of `word_count`"), "{run:?}");
    assert!(run.reasons[0].ends_with("evaluate agents that do not ask, or pass --yes"), "{run:?}");

    let script = vec![calling(" "); 3].join("\n");
    let raising = |_: &EvalCase, _| async {
        let model = ScriptedClient::read("script", script.as_bytes())?;
        let on_error_limit = ErrorLimitAction::Raise;
        let settings = LoopSettings { on_error_limit, ..LoopSettings::default() };
        Ok(Agent::builder(model).tools(tools()?).settings(settings).build()?)
    };
    let raised = evaluate(&cases, &options, raising).await.unwrap();
    let run = &raised.cases[0].runs[0];
    // The model's calls failed again and again, which is what an evaluation looks for.
    assert_eq!((run.outcome, run.call_count, run.failed_calls), (RunOutcome::Failed, 3, 3));
}

#[tokio::test]
async fn a_canceled_evaluation_reports_the_runs_that_have_ended() {
    let cases = read(json!({"name": "n", "prompt": "p", "runs": 10}));
    let cancellation = CancellationToken::new();
    let canceled = cancellation.clone();
    let options = EvalOptions {
        concurrency: 1,
        cancellation,
        observer: Some(Arc::new(move |_: &EvalCase, run: &RunReport| {
            if run.number == 3 {
                canceled.cancel();
            }
        })),
        ..EvalOptions::default()
    };
    let script = saying("x");
    let report = evaluate(&cases, &options, |_, _| async { agent(&script) }).await.unwrap();
    let case = &report.cases[0];
    assert_eq!((case.planned, case.runs.len()), (10, 3));
    assert_eq!(case.outcome(), CaseOutcome::Incomplete);
}

#[tokio::test]
async fn options_that_do_not_fit_are_refused() {
    let cases = read(json!({"name": "n", "prompt": "p", "runs": 3, "pass": {"k": 3}}));
    let refused = [
        (EvalOptions { runs: Some(0), ..EvalOptions::default() }, EvalError::Runs { found: 0 }),
        (
            EvalOptions { runs: Some(2), ..EvalOptions::default() },
            EvalError::TooFewRuns { case: "n".to_owned(), k: 3, found: 2 },
        ),
        (
            EvalOptions { concurrency: 0, ..EvalOptions::default() },
            EvalError::Concurrency { found: 0 },
        ),
    ];
    for (options, error) in refused {
        let ended = evaluate(&cases, &options, |_, _| async { agent("") }).await;
        assert_eq!(ended.unwrap_err(), error);
    }
    let many: Vec<_> = (0..101)
        .map(|n| json!({"name": n.to_string(), "prompt": "p", "runs": 1000}).to_string())
        .collect();
    let many = read_cases("c", many.join("\n").as_bytes()).unwrap();
    let ended = evaluate(&many, &EvalOptions::default(), |_, _| async { agent("") }).await;
    assert_eq!(ended.unwrap_err(), EvalError::TooManyRuns { found: 101_000 });
}

#[tokio::test]
async fn an_evaluation_can_run_as_a_task() {
    let task = tokio::spawn(async {
        let cases = read(json!({"name": "n", "prompt": "p"}));
        let options = EvalOptions::default();
        evaluate(&cases, &options, |_, _| async { agent(&saying("x")) }).await
    });
    assert!(task.await.unwrap().unwrap().is_passed());
}

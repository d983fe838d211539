use cofferdam_agent::{BoxError, ScriptedClient};

use super::*;
use crate::{EvalError, EvalOptions, Report, RunOutcome, evaluate, read_cases};

const CASE: &str = r#"{"name":"n","prompt":"Say hello.","answer":{"contains":"Hello"},"rubric":"The answer is polite."}"#;

/// Returns a line of a script with the judge's answer.
fn decision(meets_rubric: bool) -> String {
    let answer = json!({"reason": "It greets.", "meets_rubric": meets_rubric}).to_string();
    json!({"text": answer, "usage": {"input": 50, "output": 9}}).to_string()
}

fn scripted(lines: &[String]) -> ScriptedClient {
    ScriptedClient::read("script", lines.join("\n").as_bytes()).unwrap()
}

/// Evaluates the case with an agent that answers `answer`.
async fn report(answer: &str, judge: impl ChatClient + 'static) -> Report {
    let cases = read_cases("c.jsonl", CASE.as_bytes()).unwrap();
    let judge = Some(Judge::new(judge, ChatOptions::default()).unwrap());
    let options = EvalOptions { judge, ..EvalOptions::default() };
    let script = json!({ "text": answer }).to_string();
    let report = evaluate(&cases, &options, |_, _| async {
        Ok::<_, BoxError>(Agent::builder(scripted(std::slice::from_ref(&script))).build()?)
    });
    report.await.unwrap()
}

#[tokio::test]
async fn a_run_passes_if_the_judge_accepts_it() {
    for is_accepted in [true, false] {
        let report = report("Hello!", scripted(&[decision(is_accepted)])).await;
        let run = &report.cases[0].runs[0];
        let expected = if is_accepted { RunOutcome::Passed } else { RunOutcome::Failed };
        assert_eq!(run.outcome, expected);
        let judgment = run.judgment.as_ref().unwrap();
        assert_eq!((judgment.is_accepted, &*judgment.reason), (is_accepted, "It greets."));
        assert_eq!((judgment.input_tokens, judgment.output_tokens), (50, 9));
        assert_eq!((run.input_tokens, run.output_tokens), (0, 0), "those of the judge are apart");
        let problem = "expected a run that meets the rubric: It greets.".to_owned();
        assert_eq!(run.reasons, if is_accepted { vec![] } else { vec![problem] });
        let total = report.total();
        assert_eq!((total.judged, total.accepted), (1, u32::from(is_accepted)));
        assert!(report.to_string().contains("accepted"), "{report}");
    }
}

#[tokio::test]
async fn a_run_that_breaks_a_rule_is_not_judged() {
    let report = report("Go away.", scripted(&[])).await;
    let run = &report.cases[0].runs[0];
    assert_eq!((run.outcome, &run.judgment), (RunOutcome::Failed, &None), "{run:?}");
    assert!(!report.to_string().contains("accepted"), "{report}");
}

#[tokio::test]
async fn an_answer_in_another_form_is_repaired_once() {
    let prose = json!({"text": "I like it."}).to_string();
    let repaired = report("Hello!", scripted(&[prose.clone(), decision(true)])).await;
    assert!(repaired.is_passed(), "{repaired}");
    let broken = report("Hello!", scripted(&[prose.clone(), prose])).await;
    let run = &broken.cases[0].runs[0];
    assert_eq!((run.outcome, &run.judgment), (RunOutcome::Error, &None));
    assert!(run.reasons[0].starts_with("the judge did not decide: "), "{run:?}");
}

#[tokio::test]
async fn a_rubric_needs_a_judge() {
    let cases = read_cases("c.jsonl", CASE.as_bytes()).unwrap();
    let options = EvalOptions::default();
    let ended = evaluate(&cases, &options, |_, _| async { Err::<Agent, BoxError>("x".into()) });
    assert_eq!(ended.await.unwrap_err(), EvalError::NoJudge { case: "n".to_owned() });
}

#[tokio::test]
async fn the_judge_gets_the_run_as_data() {
    let judge = scripted(&[decision(true)]).recording();
    let answer = format!("Hello {}", "x".repeat(ANSWER_CHARS_MAX));
    report(&answer, judge.clone()).await;
    let [request] = &judge.requests()[..] else { panic!("expected one request") };
    assert!(request.tools.is_empty());
    let material: Value = serde_json::from_str(&request.messages.last().unwrap().text()).unwrap();
    assert_eq!(material["rubric"], "The answer is polite.");
    assert_eq!((&material["turns"], &material["calls"]), (&json!(["Say hello."]), &json!([])));
    let shown = material["answer"].as_str().unwrap();
    assert_eq!(shown.chars().count(), ANSWER_CHARS_MAX + 1);
    assert!(shown.ends_with('…'));
}

#[test]
fn only_the_first_calls_are_material() {
    let call = |text: String| ObservedCall {
        tool: "a".to_owned(),
        arguments: json!({ "x": text }),
        failed: false,
    };
    let case = EvalCase::from_value(&serde_json::from_str(CASE).unwrap()).unwrap();
    let mut calls = vec![call("y".repeat(ARGUMENTS_CHARS_MAX))];
    calls.extend(vec![call("z".to_owned()); CALLS_MAX + 1]);
    let material = material("r", &case, &Observation { calls, ..Observation::default() });
    assert_eq!(material["calls"].as_array().map(Vec::len), Some(CALLS_MAX));
    assert_eq!(material["calls_left_out"], 2);
    assert!(material["calls"][0]["arguments"].as_str().unwrap().ends_with('…'));
    assert_eq!(material["calls"][1]["arguments"], json!({"x": "z"}));
}

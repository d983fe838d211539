//! Runs the rows of `cases.jsonl` natively, with scripted answers instead of tools.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use cofferdam_sdk::Content;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::host::{CallError, EndedCall, Host};
use crate::{Input, Interpreter, run};

/// A row of `cases.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    code: String,
    /// Granted tools.
    #[serde(default)]
    catalog: Value,
    /// For each tool, its answers in the order of the calls. The last one repeats.
    #[serde(default)]
    answers: HashMap<String, Vec<Answer>>,
    /// Expected result of a success.
    #[serde(default)]
    result: Value,
    /// Expected logs.
    #[serde(default)]
    logs: String,
    /// Expected message of a failure.
    error: Option<String>,
    /// Expected members of the failure's value.
    #[serde(default)]
    value: HashMap<String, Value>,
    /// Expected calls, each as `name arguments`.
    calls: Option<Vec<String>>,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Result(Value),
    Error(Refusal),
}

#[derive(Deserialize, Clone)]
struct Refusal {
    code: String,
    message: String,
    suggestion: Option<String>,
    value: Option<Value>,
}

#[derive(Default)]
struct Script {
    answers: RefCell<HashMap<String, Vec<Answer>>>,
    calls: RefCell<Vec<String>>,
    running: RefCell<Vec<EndedCall>>,
}

impl Host for Script {
    fn start(&self, name: &str, arguments: &str) -> u32 {
        let mut calls = self.calls.borrow_mut();
        calls.push(format!("{name} {arguments}"));
        let call = u32::try_from(calls.len()).unwrap();
        let outcome = match self.next(name) {
            Some(Answer::Result(Value::String(text))) => Ok(vec![Content::Text(text)]),
            Some(Answer::Result(Value::Null)) => Ok(Vec::new()),
            Some(Answer::Result(value)) => Ok(vec![Content::Json(value.to_string())]),
            Some(Answer::Error(error)) => Err(CallError {
                code: error.code.leak(),
                message: error.message,
                suggestion: error.suggestion,
                value: error.value.map(|value| value.to_string()),
            }),
            None => Err(CallError { code: "unknown-tool", ..CallError::default() }),
        };
        self.running.borrow_mut().push(EndedCall { call, outcome });
        call
    }

    fn wait_any(&self) -> Vec<EndedCall> {
        // In reverse, so that nothing depends on the order of the calls.
        self.running.take().into_iter().rev().collect()
    }
}

impl Script {
    fn next(&self, name: &str) -> Option<Answer> {
        let mut answers = self.answers.borrow_mut();
        let answers = answers.get_mut(name)?;
        if answers.len() > 1 { Some(answers.remove(0)) } else { answers.first().cloned() }
    }
}

#[test]
fn every_case_ends_as_expected() {
    let text = include_str!("../cases.jsonl");
    let mut failed = Vec::new();
    let mut checked = 0;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let case: Case =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        checked += 1;
        if let Err(problem) = check(&case) {
            failed.push(format!("{}: {problem}", case.name));
        }
    }
    assert!(checked > 50, "only {checked} cases found");
    assert!(failed.is_empty(), "{} of {checked} failed:\n{}", failed.len(), failed.join("\n"));
}

fn check(case: &Case) -> Result<(), String> {
    let script = Rc::new(Script::default());
    script.answers.replace(case.answers.clone());
    let catalog = json!({"tools": case.catalog}).to_string();
    let input = Input { code: &case.code, catalog: &catalog, seed: 1, now: 0 };
    let interpreter = Interpreter::new().unwrap();
    let outcome = run(&interpreter, Rc::clone(&script) as Rc<dyn Host>, &input);
    match (outcome, &case.error) {
        (Ok(json), None) => {
            let mut expected = json!({"result": case.result});
            if !case.logs.is_empty() {
                expected["logs"] = case.logs.as_str().into();
            }
            same(&serde_json::from_str(&json).unwrap_or_default(), &expected)?;
        }
        (Err((failure, logs)), Some(error)) => {
            same(&failure.text(), error)?;
            same(&logs, &case.logs)?;
            let value = failure.into_tool_failure("").error_value().unwrap()["error"].clone();
            for (name, expected) in &case.value {
                same(&value[name], expected)?;
            }
        }
        (Ok(json), Some(_)) => return Err(format!("succeeded with {json}")),
        (Err((failure, _)), None) => return Err(format!("failed with {}", failure.text())),
    }
    match &case.calls {
        Some(calls) => same(&*script.calls.borrow(), calls),
        None => Ok(()),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("\n  found    {found:?}\n  expected {expected:?}"))
}

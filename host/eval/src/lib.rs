//! Evaluates tools with a model: runs prompts several times, compares the calls that the model
//! makes with the expected ones, and compares the reports of two versions of a plugin.
//!
//! A model uses a tool only as well as it understands its name, its description and its parameters.
//! A case is a prompt with the calls and the answer that its author expects, one JSON object per
//! line of a file ([`read_cases`]):
//!
//! ```json
//! {"name": "counts", "prompt": "How many words has 'a b'?", "runs": 5, "pass": {"rate": 0.8},
//!  "calls": [{"tool": "word_count", "arguments": {"text": "a b"}}], "answer": {"contains": "2"}}
//! ```
//!
//! | field | meaning | default |
//! |---|---|---|
//! | `name` | unique name | |
//! | `prompt` or `turns` | user message, or messages of one session | |
//! | `runs` | number of runs, up to 1000 | 1 |
//! | `pass` | `"all"`; `{"rate": 0.8}`: share of the runs; `{"k": 3}`: number of runs (pass^k) | `"all"` |
//! | `calls` | list of `tool`, `arguments`, `match` (`partial`, `exact`, `ignore`), `min`, `max` | none |
//! | `order` | `any`; `in-order`: extra calls anywhere; `exact`: no other calls | `any` |
//! | `extra` | maximum number of other calls | unlimited |
//! | `forbidden` | tools that may not be called | none |
//! | `none` | true if no tool may be called | false |
//! | `answer` | `contains`, `not-contains` (strings), `regex`, `equals`, `schema` | |
//! | `rubric` | description of a good run, by which a [`Judge`] decides | none |
//! | `limits` | `rounds`, `tokens`, `seconds` of a run | unlimited |
//!
//! [`evaluate`] makes a new agent and a new session for each run. The [`Report`] has the rate of
//! success of each case, its calls, its tokens and the errors that the model recovered from. It is
//! written as JSON and read again, so that [`Comparison::between`] can compare it with the report
//! of an earlier version. Rates come with their 95 % intervals: a few runs show little.
//!
//! A case that forbids a misspelled tool would always pass, so [`check_tools`] compares the names
//! in `calls` and `forbidden` with the existing tools before anything runs.
//!
//! What no rule can decide, such as whether a summary is right, a [`Judge`] decides: a model that
//! the caller names ([`EvalOptions::judge`]). It is the evaluated one only if the caller says so.
//!
//! ```
//! use std::sync::Arc;
//!
//! use cofferdam_agent::{Agent, ScriptedClient};
//! use cofferdam_eval::{EvalOptions, evaluate, read_cases};
//! use cofferdam_tool::declaration::Declaration;
//! use cofferdam_tool::{Functions, Toolset};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cases = r#"{"name":"noon","prompt":"What time is it?","runs":3,"calls":[{"tool":"clock"}]}"#;
//! let cases = read_cases("cases.jsonl", cases.as_bytes())?;
//!
//! let options = EvalOptions::default();
//! let report = evaluate(&cases, &options, |_case, _run| async {
//!     let schema = r#"{"type":"object","properties":{}}"#;
//!     let clock = Declaration::new("clock", "Tells the time.", schema);
//!     let functions = Functions::new("clock").with(clock, async |_, _| Ok(json!("noon")))?;
//!     let mut tools = Toolset::new();
//!     tools.add(Arc::new(functions))?;
//!     let script = "{\"calls\":[{\"tool\":\"clock\",\"arguments\":{}}]}\n{\"text\":\"Noon.\"}";
//!     let model = ScriptedClient::read("script", script.as_bytes())?;
//!     Ok(Agent::builder(model).tools(tools).build()?)
//! })
//! .await?;
//! assert!(report.is_passed());
//! assert_eq!(report.total().passed, 3);
//! println!("{report}");
//! # Ok(())
//! # }
//! ```

mod calls;
mod case;
mod comparison;
mod judge;
mod report;
mod rules;
mod run;
mod table;
mod text;
mod tools;

pub use calls::{COMPARED_CALLS_MAX, ObservedCall};
pub use case::{
    ArgumentMatch, CALL_COUNT_MAX, CASES_MAX, CallOrder, CasesError, EXPECTED_CALLS_MAX, EvalCase,
    ExpectedAnswer, ExpectedCall, FILE_BYTES_MAX, InvalidCase, InvalidLine, PassCriterion,
    RUNS_MAX, RunLimits, read_cases,
};
pub use comparison::{CaseChange, Change, Comparison, RateChange, Subject};
pub use judge::{Judge, Judgment};
pub use report::{
    CaseOutcome, CaseReport, Interval, REPORT_BYTES_MAX, Report, ReportError, RunOutcome,
    RunReport, Spread, Statistics,
};
pub use run::{CONCURRENCY_MAX, EvalError, EvalOptions, RunObserver, TOTAL_RUNS_MAX, evaluate};
pub use tools::check_tools;

//! `code`: programs of code mode, with a fresh instance for each.
//!
//! `code-javascript` and `code-python` are programs that return a number, against a trivial call of
//! the conformance plugin of the language. `code-call` is what one of 100 calls of a program in
//! JavaScript takes, against the same call by the host. `code-waits` is a program with 16 calls at
//! once that wait 50 ms each, against one such call. `code-resume` is the whole second run of a
//! program in JavaScript after an approval, with one result that is stored from the first run and
//! the call that was approved. Interpreters that are not built are skipped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use cofferdam_code::{CodeMode, CodeOptions, Language, ProgramRules};
use cofferdam_engine::{Component, PluginOptions};
use cofferdam_tests::{Host, root};
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::invoke::{ApprovalNeed, InnerCall};
use cofferdam_tool::{CallContext, Functions, PluginName, Toolset};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::effort::Effort;
use crate::languages::calls_per_round;
use crate::measure::{Amount, Goal, Measure, Unit};
use crate::ratio::Ratio;
use crate::samples::Samples;

pub(crate) const NAME: &str = "code";
const ROUNDS: usize = 30;
/// Number of calls of the program with many calls.
const CALLS: u32 = 100;
const WAIT: Duration = Duration::from_millis(50);
/// Tool of the conformance plugins that takes nothing.
const TOOL: &str = "word";
/// Tool whose calls need approval.
const APPROVED: &str = "approved";
/// Number of programs that are continued.
const RESUMES: u32 = 200;

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let mut measures = Vec::new();
    for language in Language::ALL {
        let Some(programs) = programs(language, None).await? else { continue };
        let mut sdk = crate::call_floor::empty_host();
        sdk.load(&format!("conformance_{}", language.name())).await;
        let program = match language {
            Language::JavaScript => "return 1",
            Language::Python => "1",
        };
        let count = effort.times(calls_per_round(time(&programs, program, 3).await?));
        let ours = async || time(&programs, program, count).await;
        let reference = async || time_tool(&sdk, count).await;
        let ratio = Ratio::new(format!("{NAME}-{}", language.name())).with_goal(Goal::AtMost(2.0));
        measures.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
        if language == Language::JavaScript {
            measures.push(calls(effort, &programs).await?);
            measures.push(waits(effort, &programs).await?);
            measures.push(resume(effort, language).await?);
        }
    }
    Ok(measures)
}

/// Measures one of many calls of a program.
async fn calls(effort: Effort, programs: &Toolset) -> anyhow::Result<Measure> {
    let mut rust = crate::call_floor::empty_host();
    rust.load("conformance_rust").await;
    let many = format!("for (let i = 0; i < {CALLS}; i++) await tools.{TOOL}({{}}); return 1");
    let count = effort.times(20);
    let ours = async || {
        let (with, without) =
            (time(programs, &many, count).await?, time(programs, "return 1", count).await?);
        Ok(with.saturating_sub(without) / CALLS)
    };
    let reference = async || time_tool(&rust, count * CALLS).await;
    let ratio = Ratio::new(format!("{NAME}-call"));
    Ok(ratio.alternate(effort, ROUNDS, ours, reference).await?.into())
}

/// Measures calls that run at the same time.
async fn waits(effort: Effort, programs: &Toolset) -> anyhow::Result<Measure> {
    let all = "await Promise.all(Array.from({length: 16}, () => tools.wait({}))); return 1";
    let ours = async || time(programs, all, 1).await;
    let reference = async || time(programs, "await tools.wait({}); return 1", 1).await;
    let ratio = Ratio::new(format!("{NAME}-waits")).with_goal(Goal::AtMost(1.6));
    Ok(ratio.alternate(effort, ROUNDS / 3, ours, reference).await?.into())
}

/// Returns `run_code` over a tool in Rust and functions of the host, or nothing if the interpreter is not
/// built.
async fn programs(
    language: Language,
    rules: Option<Arc<dyn ProgramRules>>,
) -> anyhow::Result<Option<Toolset>> {
    let path = root().join("target/code").join(format!("{}.wasm", language.name()));
    if !path.is_file() {
        return Ok(None);
    }
    let mut host = crate::call_floor::empty_host();
    host.load("conformance_rust").await;
    let mut tools = host.toolset().restrict(|tool| tool.name.as_str() == TOOL);
    let wait = Declaration::new("wait", "Waits.", r#"{"type":"object"}"#);
    let approved = Declaration::new(APPROVED, "Needs approval.", r#"{"type":"object"}"#);
    let functions = Functions::new("functions")
        .with(wait, async |_, _| {
            tokio::time::sleep(WAIT).await;
            Ok(json!(null))
        })?
        .with(approved, async |_, _| Ok(json!(null)))?;
    tools.add(Arc::new(functions))?;
    host.grants.all_tools = true;
    let options =
        PluginOptions::new(PluginName::new(NAME)?, host.grants.clone(), host.limits.clone());
    let component = Component::from_file_ambient(&path);
    let interpreter = host.engine.load(&component, options, &()).await?;
    let options = CodeOptions { language, rules, ..CodeOptions::default() };
    let mut offered = Toolset::new();
    offered.add(Arc::new(CodeMode::new(Arc::new(interpreter), &tools, options)?))?;
    Ok(Some(offered))
}

/// Measures the second run of a program that has waited for an approval.
async fn resume(effort: Effort, language: Language) -> anyhow::Result<Measure> {
    let programs = programs(language, Some(Arc::new(ApprovedToolRule))).await?;
    let programs = programs.context("the interpreter is gone")?;
    let program = format!("await tools.{TOOL}({{}}); await tools.{APPROVED}({{}}); return 1");
    let arguments = json!({ "code": program }).to_string();
    let mut samples = Samples::default();
    for _ in 0..effort.times(RESUMES) {
        let waiting = Arc::new(ApprovingClient { answers: false, asked: Notify::new() });
        let asks = CallContext { asker: Some(waiting.clone()), ..CallContext::new("bench") };
        tokio::select! {
            ended = programs.call("run_code", Some(arguments.as_bytes()), &asks) => {
                anyhow::bail!("a program did not wait for its approval: {ended:?}");
            }
            () = waiting.asked.notified() => {}
        }
        let answering = Arc::new(ApprovingClient { answers: true, asked: Notify::new() });
        let answers = CallContext { asker: Some(answering), ..CallContext::new("bench") };
        let started = Instant::now();
        let ended = programs.call("run_code", Some(arguments.as_bytes()), &answers).await;
        samples.add(started.elapsed().as_secs_f64());
        let ended = ended.map_err(|refused| anyhow!(refused)).context("a program was refused")?;
        anyhow::ensure!(ended.record.outcome == "ok", "a continued program failed: {ended:?}");
    }
    let amount = Amount::new(format!("{NAME}-resume"), Unit::Seconds, samples);
    Ok(amount.with_goal(Goal::AtMost(5e-3)).into())
}

/// Rule by which calls of one tool need approval.
struct ApprovedToolRule;

impl ProgramRules for ApprovedToolRule {
    fn approval(&self, call: &InnerCall<'_>, _: &Map<String, Value>) -> ApprovalNeed {
        match call.tool.name.as_str() == APPROVED {
            true => ApprovalNeed::Needed,
            false => ApprovalNeed::NotNeeded,
        }
    }
}

/// Client that approves everything at once, or never answers, like one that answers in a new
/// request.
struct ApprovingClient {
    answers: bool,
    asked: Notify,
}

#[async_trait]
impl Asker for ApprovingClient {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        if !self.answers {
            self.asked.notify_one();
            std::future::pending::<()>().await;
        }
        let allow = json!({"action": "accept", "content": {"allow": true}});
        Ok(questions.iter().map(|_| allow.clone()).collect())
    }
}

/// Returns the time of one run of a program.
async fn time(programs: &Toolset, program: &str, count: u32) -> anyhow::Result<Duration> {
    let arguments = json!({ "code": program }).to_string();
    let context = CallContext::new("bench");
    let started = Instant::now();
    for _ in 0..count {
        let ended = programs.call("run_code", Some(arguments.as_bytes()), &context).await;
        let ended = ended.map_err(|refused| anyhow!(refused)).context("a program was refused")?;
        anyhow::ensure!(ended.record.outcome == "ok", "a measured program failed: {ended:?}");
    }
    Ok(started.elapsed() / count)
}

/// Returns the time of one trivial call.
async fn time_tool(host: &Host, count: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..count {
        let completion = host.call(TOOL, "{}").await;
        anyhow::ensure!(completion.record.outcome == "ok", "a measured call failed");
    }
    Ok(started.elapsed() / count)
}

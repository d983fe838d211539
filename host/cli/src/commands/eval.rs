//! `cofferdam eval`: runs prompts with a model and compares its calls with the expected ones.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cofferdam::agent_file::AgentFile;
use cofferdam::config::ConfigFile;
use cofferdam::config::edit::{check_replaceable, replace_file};
use cofferdam::model_specs::{self, ModelSpec};
use cofferdam::records::CallLog;
use cofferdam::workflow_file::AgentParts;
use cofferdam::{ContextOptions, ContextSettings, Purpose};
use cofferdam_agent::{ApprovalEffect, ApprovalRule, Approvals, BoxError};
use cofferdam_eval::{
    Comparison, EvalCase, EvalOptions, Judge, Report, RunObserver, RunReport, check_tools,
    evaluate, read_cases,
};
use cofferdam_files::open_named_ambient;
use serde_json::json;

use super::chat;
use crate::args::{EvalArgs, Global};
use crate::exit::{Exit, UsageError};
use crate::{host, print, progress};

pub(crate) async fn run(global: &Global, args: &EvalArgs) -> anyhow::Result<Exit> {
    let cases = cases(args)?;
    let before = args.compare.as_deref().map(read_report).transpose()?;
    let definition = args.agent.as_deref().map(AgentFile::read_ambient).transpose()?;
    let instructions = args.system.as_deref().map(chat::text_or_file).transpose()?;
    let settings = chat::request_settings(&args.setting)?;
    let config = host::config(&args.plugins)?;
    // A tool that could change the cases could make itself pass.
    let mut protected = vec![args.cases.clone()];
    protected.extend(args.agent.iter().chain(&args.report).chain(&args.compare).cloned());
    let selection = host::selection(&args.plugins)?;
    let tools = host::build(global, selection.clone(), Purpose::Converse, &protected).await?;
    let (named, config) = (args.model.as_deref(), config.as_ref());
    let model = match &definition {
        Some(file) => file.defined().model(named, None, config)?,
        None => model_specs::choose(named, None, config)?,
    };
    let judge = args.judge.as_deref();
    let judge = judge.map(|judge| model_specs::choose(Some(judge), None, config)).transpose()?;
    let parts = AgentParts {
        model: named,
        settings,
        config,
        toolset: tools.toolset(),
        skills: tools.skills(),
        approvals: approvals(args, config)?,
        budget: None,
        call_log: tools.call_log().cloned(),
        labels: None,
        context: ContextSettings::new(ContextOptions::default(), config, &selection, &protected),
        layers: ConfigFile::call_layers(config)?,
        layer: None,
        operator: host::operator(),
    };
    let agent = || match &definition {
        // A run of a case is one iteration.
        Some(file) => parts.without_loop(file),
        None => parts.with_all_tools(instructions.as_deref()),
    };
    if judge.is_some() && cases.iter().all(|case| case.rubric.is_none()) {
        print::note("no case has a `rubric`, so --judge has no effect");
    }
    // An invalid model or tool is one error instead of one for each run.
    let evaluated = agent()?;
    // A case that forbids a misspelled tool would always pass.
    let known = check_tools(&cases, &evaluated, tools.toolset());
    known.map_err(|error| UsageError(error.to_string()))?;
    if let Some(path) = &args.report {
        check_replaceable(path).map_err(|error| unwritable(path, &error))?;
    }
    let runs = |case: &EvalCase| u64::from(args.runs.map_or(case.runs, |runs| runs.get()));
    let options = EvalOptions {
        runs: args.runs.map(|runs| runs.get()),
        concurrency: args.concurrency,
        judge: judge.as_ref().map(|model| judge_of(model, tools.call_log())).transpose()?,
        cancellation: super::cancelled_by_ctrl_c(),
        observer: Some(Arc::new(progress_of(cases.iter().map(runs).sum()))),
    };
    let ended = evaluate(&cases, &options, |_case, _run| async {
        agent().map_err(|error| BoxError::from(format!("{error:#}")))
    });
    let ended = ended.await;
    progress::clear();
    if let Some(log) = tools.call_log() {
        log.finish().await;
    }
    let mut report = ended.map_err(|error| UsageError(error.to_string()))?;
    report.subject = args.plugins.plugins.join(", ");
    report.model = model.to_string();
    report.judge = judge.map(|judge| judge.to_string());
    let comparison = before.map(|before| Comparison::between(&before, &report));
    if args.json {
        print::result(&json!({"report": report, "comparison": comparison}).to_string())?;
    } else {
        print::report(&report.to_string())?;
        if let Some(comparison) = comparison {
            print::report(&comparison.to_string())?;
        }
    }
    if let Some(path) = &args.report {
        let bytes = serde_json::to_vec(&report)?;
        replace_file(path, &bytes).map_err(|error| unwritable(path, &error))?;
    }
    Ok(match (report.is_passed(), report.is_complete()) {
        _ if options.cancellation.is_cancelled() => Exit::Interrupted,
        (true, _) => Exit::Ok,
        (false, true) => Exit::ToolFailure,
        (false, false) => Exit::Plugin,
    })
}

fn unwritable(path: &Path, error: &std::io::Error) -> UsageError {
    UsageError(format!("{} cannot be written: {error}", path.display()))
}

/// Reads the cases that the flags select.
fn cases(args: &EvalArgs) -> anyhow::Result<Vec<EvalCase>> {
    let name = args.cases.display().to_string();
    let unusable = |reason: &dyn std::fmt::Display| UsageError(format!("{name}: {reason}"));
    let file = open_named_ambient(&args.cases).map_err(|error| unusable(&error))?;
    let mut cases = read_cases(&name, file).map_err(|error| UsageError(error.to_string()))?;
    if let Some(part) = &args.filter {
        cases.retain(|case| case.name.contains(part));
    }
    match cases.is_empty() {
        true => Err(UsageError(super::no_cases(args.filter.as_deref())).into()),
        false => Ok(cases),
    }
}

fn read_report(path: &Path) -> anyhow::Result<Report> {
    let name = path.display().to_string();
    let file = open_named_ambient(path)
        .map_err(|error| UsageError(format!("{name} cannot be read: {error}")))?;
    Ok(Report::read(&name, file).map_err(|error| UsageError(error.to_string()))?)
}

/// Returns which calls need approval, which no user is there to give.
fn approvals(args: &EvalArgs, config: Option<&ConfigFile>) -> anyhow::Result<Approvals> {
    let mut approvals = Approvals::default();
    if let Some(config) = config {
        approvals = config.approvals(approvals)?;
    }
    if args.yes {
        approvals = approvals.rules([ApprovalRule::new(ApprovalEffect::Allow, "*")])?;
    }
    Ok(approvals)
}

/// Returns a judge with the options of its model.
fn judge_of(model: &ModelSpec, call_log: Option<&Arc<CallLog>>) -> anyhow::Result<Judge> {
    let client = model_specs::client(model, None)?;
    let client = cofferdam::recorded(client, model.provider.word(), call_log);
    Ok(Judge::new(client, model.options.clone())?)
}

/// Returns an observer that shows how many of `runs` runs have ended.
fn progress_of(runs: u64) -> impl RunObserver {
    let ended = AtomicU64::new(0);
    move |_: &EvalCase, _: &RunReport| {
        let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
        let share = ended as f64 / runs.max(1) as f64;
        progress::show(&format!("{ended} of {runs} runs"), Some(share));
    }
}

//! `cofferdam workflow`: runs workflows of agents from YAML files.

mod answers;
mod checkpoints;
mod show;

use std::sync::Arc;

use anyhow::Context as _;
use cofferdam_agent::{Layer, RunError};
use cofferdam_workflow::{Payload, Snapshot, UserRequest, Workflow, WorkflowError, WorkflowRun};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::answers::TypedAnswers;
use self::checkpoints::{CheckpointDirectory, LockedRun};
use self::show::{RunEnd, ShowCalls};
use super::chat;
use super::labels::{self, Decisions};
use crate::args::{
    Global, WorkflowCheckArgs, WorkflowCheckpointsArgs, WorkflowCommand, WorkflowFileArgs,
    WorkflowRunArgs,
};
use crate::exit::{Exit, UsageError};
use crate::{host, inspector, print};
use cofferdam::code::LedgerSeal;
use cofferdam::config::ConfigFile;
use cofferdam::inspector::{RunProgress, report_event, run_question, workflows_of_files};
use cofferdam::workflow_file::{AgentParts, WorkflowFile};
use cofferdam::{ContextOptions, ContextSettings, Purpose};

pub(crate) async fn run(global: &Global, command: WorkflowCommand) -> anyhow::Result<Exit> {
    match command {
        WorkflowCommand::Run(args) => run_file(global, &args).await,
        WorkflowCommand::Graph(args) => graph(&args),
        WorkflowCommand::Check(args) => check(global, &args).await,
        WorkflowCommand::Checkpoints(args) => checkpoints(&args).await,
    }
}

async fn run_file(global: &Global, args: &WorkflowRunArgs) -> anyhow::Result<Exit> {
    let file = WorkflowFile::read_ambient(&args.file)?;
    let input = args.input.as_deref().map(chat::text_or_stdin).transpose()?;
    let answers = TypedAnswers::new(args)?;
    let settings = chat::request_settings(&args.setting)?;
    let config = host::config(&args.plugins)?;
    let open = match args.resume {
        Some(_) => CheckpointDirectory::open_existing,
        None => CheckpointDirectory::open,
    };
    let kept = args.checkpoints.as_deref().map(open).transpose()?;
    // Tools must not change the files that control the workflow.
    let mut protected = vec![args.file.clone()];
    protected.extend(kept.iter().map(|kept| kept.directory.clone()));
    let mut selection = host::selection(&args.plugins)?;
    let flag = args.inspector.inspector.as_ref();
    let prompts = inspector::prompts(flag);
    // Without an answer, a program that waits in no checkpoint would be lost.
    let may_wait = kept.is_some() || answers.can_approve(prompts.as_ref());
    let ledgers = may_wait.then(|| chat::ledgers(&selection, config.as_ref())).flatten();
    protected.extend(ledgers.iter().map(|ledgers| ledgers.directory().to_owned()));
    let suspends_programs = ledgers.is_some();
    selection.code.hides_recorded_types = args.labels;
    selection.code.seal = ledgers.map(|ledgers| Arc::new(ledgers) as Arc<dyn LedgerSeal>);
    let tools = host::build(global, selection.clone(), Purpose::Converse, &protected).await?;
    let progress = flag.map(|_| RunProgress::new(file.name()));
    if let Some(flag) = flag {
        let mut options = inspector::options(config.as_ref(), prompts.clone())?;
        let files = vec![args.file.clone()];
        let directory = args.checkpoints.clone();
        options.workflows = Some(workflows_of_files(files, directory, progress.clone()));
        inspector::start(flag, options, CancellationToken::new()).await?;
    }
    let call_log = tools.call_log().cloned();
    let mut answers = answers.with(prompts, tools.toolset().clone(), call_log);
    let approvals = chat::approvals(&args.approval, tools.toolset(), config.as_ref())?
        .suspend_programs(suspends_programs);
    let decisions = Decisions::new(args.json);
    let policy = labels::policy(args.labels, config.as_ref(), &tools, &decisions)?;
    let has_policy = policy.is_some();
    let parts = AgentParts {
        model: args.model.as_deref(),
        settings,
        config: config.as_ref(),
        toolset: tools.toolset(),
        skills: tools.skills(),
        approvals,
        budget: ConfigFile::budget(args.budget_tokens, config.as_ref()),
        call_log: tools.call_log().cloned(),
        labels: policy,
        context: ContextSettings::new(
            ContextOptions::default(),
            config.as_ref(),
            &selection,
            &protected,
        ),
        layers: ConfigFile::call_layers(config.as_ref())?,
        layer: Some(&|id| Layer::function(ShowCalls { agent: id.to_owned() })),
        operator: host::operator(),
    };
    let max_iterations = args.max_iterations.map(std::num::NonZeroU64::get);
    let workflow = file.workflow(&parts, max_iterations)?;
    // The lock of the run that this one goes on from.
    let mut resumed = None;
    let begun = match (input, &args.resume, &kept) {
        (Some(input), ..) => {
            let run = workflow.run(Payload::text(input));
            RunStart::Run(Box::new(if has_policy { run.labelled() } else { run }))
        }
        (None, Some(id), Some(kept)) => {
            let (snapshot, lock) = kept.load(workflow.name(), id).await?;
            resumed = lock;
            if has_policy && !snapshot.is_labelled() {
                print::note(
                    "this run was begun without a label policy: all that it has read counts as \
                     untrusted and confidential",
                );
            }
            RunStart::Snapshot(Box::new(snapshot))
        }
        _ => {
            return Err(
                UsageError("pass an input, or --checkpoints DIR with --resume".to_owned()).into()
            );
        }
    };
    let kept = kept.map(|kept| kept.begin_run(workflow.name())).transpose()?;
    let run = ActiveRun { workflow, has_policy, kept, progress, is_json: args.json };
    let end = run.run_to_end(begun, &mut answers).await?;
    drop((run, resumed));
    if let Some(log) = tools.call_log() {
        log.finish().await;
    }
    show::end(&end, args.json)?;
    for id in answers.left() {
        print::note(&format!(
            "warning: the answer to `{id}` was not used: the run asked for no further answer of that name"
        ));
    }
    note_next_steps(&end, args);
    Ok(match exit_of(&end) {
        Exit::Ok if decisions.take_blocked() => {
            print::note("the label policy has blocked calls of this run");
            Exit::ToolError
        }
        // A run that waits may still use the answer later.
        Exit::Ok if answers.left().next().is_some() => Exit::Usage,
        exit => exit,
    })
}

/// Start of a run.
enum RunStart {
    Run(Box<WorkflowRun>),
    Snapshot(Box<Snapshot>),
}

/// A run, with its workflow and its checkpoints.
struct ActiveRun {
    workflow: Workflow,
    /// True if a label policy applies to the agents.
    has_policy: bool,
    kept: Option<LockedRun>,
    /// Progress that pages show.
    progress: Option<RunProgress>,
    is_json: bool,
}

impl ActiveRun {
    /// Runs the workflow until it is done, or until a request gets no answer.
    async fn run_to_end(
        &self,
        begun: RunStart,
        answers: &mut TypedAnswers,
    ) -> anyhow::Result<RunEnd> {
        let end = self.run_and_answer(begun, answers).await;
        if let Some(progress) = &self.progress {
            progress.ended(match &end {
                Ok(end) => show::end_words(end),
                Err(error) => format!("{error:#}"),
            });
        }
        end
    }

    async fn run_and_answer(
        &self,
        begun: RunStart,
        answers: &mut TypedAnswers,
    ) -> anyhow::Result<RunEnd> {
        let cancellation = super::cancelled_by_ctrl_c();
        let mut snapshot = match begun {
            RunStart::Run(run) => match self.read(*run, &cancellation).await? {
                Ok(snapshot) => snapshot,
                Err(error) => return Ok(RunEnd::Failed(error)),
            },
            RunStart::Snapshot(snapshot) => {
                if let Some(progress) = &self.progress {
                    let open = snapshot.requests().iter().map(run_question);
                    open.for_each(|question| progress.asked(question));
                }
                let resumed = match self.resume((*snapshot).clone()) {
                    Ok(run) => run,
                    Err(error) => return Ok(RunEnd::Failed(error)),
                };
                // Executors that do not wait for a request continue at once.
                match self.read(resumed, &cancellation).await? {
                    Ok(snapshot) => snapshot,
                    Err(error) => return Ok(RunEnd::Failed(error)),
                }
            }
        };
        loop {
            if snapshot.is_done() {
                return Ok(RunEnd::Done);
            }
            let given = answers.to(snapshot.requests(), &cancellation).await?;
            if cancellation.is_cancelled() {
                return Ok(RunEnd::Failed(WorkflowError::Cancelled));
            }
            if given.is_empty() {
                return Ok(RunEnd::Paused(snapshot.requests().to_vec()));
            }
            let mut run = self.resume(snapshot)?;
            for (id, answer) in given {
                if let Some(progress) = &self.progress {
                    progress.answered(&id);
                }
                run = run.answer(id, answer);
            }
            snapshot = match self.read(run, &cancellation).await? {
                Ok(snapshot) => snapshot,
                Err(error) => return Ok(RunEnd::Failed(error)),
            };
        }
    }

    fn resume(&self, snapshot: Snapshot) -> Result<WorkflowRun, WorkflowError> {
        let run = self.workflow.resume(snapshot)?;
        Ok(if self.has_policy { run.labelled() } else { run })
    }

    /// Shows the events of a run until it stops, and returns its state.
    async fn read(
        &self,
        run: WorkflowRun,
        cancellation: &CancellationToken,
    ) -> anyhow::Result<Result<Snapshot, WorkflowError>> {
        let mut run = run.cancellation(cancellation.clone());
        if let Some(kept) = &self.kept {
            run = run.checkpoints_of(&kept.checkpoints);
        }
        if let Some(progress) = self.progress.clone() {
            run = run.observer(move |event| report_event(&progress, event));
        }
        let mut stream = run.stream();
        while let Some(event) = stream.next().await {
            show::event(&event, self.is_json)?;
        }
        Ok(stream.finish().await)
    }
}

fn note_next_steps(end: &RunEnd, args: &WorkflowRunArgs) {
    let RunEnd::Paused(requests) = end else { return };
    let answer = |request: &UserRequest| match show::approval(request) {
        Some(_) => format!("--answer {}=yes", request.id),
        None => format!("--answer {}=TEXT", request.id),
    };
    let answers: Vec<_> = requests.iter().map(answer).collect();
    let answers = answers.join(" ");
    print::note(&match &args.checkpoints {
        Some(directory) => {
            let directory = directory.display();
            format!(
                "go on with the flags of this run and --checkpoints {directory} --resume {answers}"
            )
        }
        None => format!(
            "there is no terminal to ask at; pass {answers}, or --checkpoints DIR to resume later"
        ),
    });
}

fn exit_of(end: &RunEnd) -> Exit {
    match end {
        RunEnd::Done => Exit::Ok,
        RunEnd::Paused(_) => Exit::Plugin,
        RunEnd::Failed(error) => match error {
            WorkflowError::Executor { source, .. } => match source.downcast_ref::<RunError>() {
                Some(error) => chat::exit_of_error(error),
                None => Exit::ToolError,
            },
            WorkflowError::Cancelled => Exit::Interrupted,
            WorkflowError::Checkpoint(_) => Exit::Internal,
            WorkflowError::Selection { .. }
            | WorkflowError::NotConverged { .. }
            | WorkflowError::TooMuch { .. } => Exit::ToolError,
            _ => Exit::Usage,
        },
    }
}

fn graph(args: &WorkflowFileArgs) -> anyhow::Result<Exit> {
    let workflow = WorkflowFile::read_ambient(&args.file)?.outline()?;
    if args.json {
        print::result(
            &json!({"name": workflow.name(), "mermaid": workflow.mermaid()}).to_string(),
        )?;
    } else {
        print::more(&workflow.mermaid())?;
    }
    Ok(Exit::Ok)
}

async fn check(global: &Global, args: &WorkflowCheckArgs) -> anyhow::Result<Exit> {
    let file = WorkflowFile::read_ambient(&args.file.file)?;
    let workflow = file.outline()?;
    for warning in file.check_conditions()? {
        print::note(&format!("warning: {warning}"));
    }
    let has_agents_checked = args.describes_run();
    if has_agents_checked {
        let config = host::config(&args.plugins)?;
        let host = host::load(global, &args.plugins, Purpose::Converse).await?;
        file.check_agents(&host, args.model.as_deref(), config.as_ref(), &host::operator())?;
    }
    let executors: Vec<_> = workflow.executors().collect();
    let max_iterations = workflow.limits().max_iterations;
    if args.file.json {
        let described = json!({
            "name": workflow.name(),
            "executors": executors,
            "max_iterations": max_iterations,
            "structure": workflow.structure(),
            "has_agents_checked": has_agents_checked,
        });
        print::result(&described.to_string())?;
        return Ok(Exit::Ok);
    }
    let counted = print::counted(executors.len(), "executor");
    print::result(&format!("{}: {counted}, at most {max_iterations} supersteps", workflow.name()))?;
    if !has_agents_checked {
        print::note(
            "models and tools of the agents are not checked; pass the flags of `workflow run` that \
             select them, such as --config FILE",
        );
    }
    Ok(Exit::Ok)
}

async fn checkpoints(args: &WorkflowCheckpointsArgs) -> anyhow::Result<Exit> {
    let name = WorkflowFile::read_ambient(&args.file)?.name();
    let kept = CheckpointDirectory::open_existing(&args.checkpoints)?;
    for id in kept.checkpoints.list(&name).await.context("the checkpoints cannot be listed")? {
        let snapshot = kept.checkpoints.load(&name, &id).await;
        let state = match &snapshot {
            Ok(snapshot) if snapshot.is_done() => "done".to_owned(),
            Ok(snapshot) if !snapshot.requests().is_empty() => {
                let ids: Vec<_> =
                    snapshot.requests().iter().map(|request| request.id.as_str()).collect();
                format!("waits for {}", ids.join(", "))
            }
            Ok(_) => "goes on".to_owned(),
            Err(error) => error.to_string(),
        };
        if args.json {
            let requests =
                snapshot.as_ref().map(|snapshot| json!(snapshot.requests())).unwrap_or_default();
            let line = json!({"id": id, "superstep": id.superstep(), "state": state, "requests": requests});
            print::result(&line.to_string())?;
        } else {
            print::result(&format!("{id}  superstep {}, {state}", id.superstep()))?;
        }
    }
    Ok(Exit::Ok)
}

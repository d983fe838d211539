//! `cofferdam chat`: a conversation of the user with a model that calls tools.

mod approve;
mod conversation;
mod interrupts;
mod saved;
mod screen;
mod sources;
mod transcript;
mod turn;
mod waiting;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use cofferdam::code::LedgerSeal;
use cofferdam_agent::choice::ChoiceError;
use cofferdam_agent::history::HistoryError;
use cofferdam_agent::{
    Agent, AgentRun, ApprovalMode, Approvals, ChatClient, ChatErrorKind, Layer, LoopSettings,
    PlanMode, RunError, Session, TokenBudget, ToolMode,
};
use cofferdam_files::{read_named_text_ambient, read_text_at_most};
use cofferdam_labels::{Label, LabelPolicy, is_labelled, taint};
use cofferdam_tool::Toolset;
use cofferdam_tool::invoke::HostValues;
use tokio_util::sync::CancellationToken;

use self::approve::{ApprovalPages, ProgramApprovals, StandingApprovals};
use self::interrupts::Interrupts;
use self::saved::SavedSession;
use self::screen::{Screen, ShowCalls};
pub(crate) use self::screen::{describe_outcome, short};
use self::transcript::{StorageMark, Transcript};
use self::turn::{Conversation, TurnEnd};
use self::waiting::TypedDecisions;
use super::labels;
use crate::args::{ApprovalArgs, AskMode, ChatArgs, Global};
use crate::exit::{Exit, UsageError};
use crate::{host, inspector, print};
use cofferdam::agent_file::AgentFile;
use cofferdam::code_mode::Ledgers;
use cofferdam::config::ConfigFile;
use cofferdam::model_specs::{self, ModelSpec};
use cofferdam::records::CallLog;
use cofferdam::workflow::definition::RequestSettings;
use cofferdam::{
    AgentContext, ContextOptions, ContextSettings, PromptFile, Purpose, Selection, StoreLocation,
};

/// Maximum size of a prompt from standard input or of instructions from a file, in bytes.
const TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Variable of a prompt file that the typed prompt sets.
const PROMPT_VARIABLE: &str = "input";

pub(crate) async fn run(global: &Global, args: &ChatArgs) -> anyhow::Result<Exit> {
    if args.sessions {
        return saved::list(args.session_dir.as_deref(), args.json).await;
    }
    let file = args.plugins.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let definition = args.agent.as_deref().map(AgentFile::read_ambient).transpose()?;
    let defined = definition.as_ref().map(AgentFile::defined);
    check_dry_run(args)?;
    let model = match &defined {
        Some(defined) if args.model.is_none() => {
            defined.model(None, args.base_url.as_deref(), file.as_ref())?
        }
        _ => model_specs::choose(args.model.as_deref(), args.base_url.as_deref(), file.as_ref())?,
    };
    let settings = request_settings(&args.setting)?;
    let prompt = args.prompt.as_deref().map(text_or_stdin).transpose()?;
    let prompt_file = args.prompt_file.as_deref().map(PromptFile::read_ambient).transpose()?;
    let prompt = match &prompt_file {
        Some(file) => rendered_prompt(file, &args.prompt_arg, prompt)?,
        None => prompt,
    };
    let instructions = match (&args.system, &defined) {
        (Some(text), _) => Some(text_or_file(text)?),
        (None, Some(defined)) => defined.instructions()?,
        (None, None) => None,
    };
    let attached = args.attach.iter().map(|path| cofferdam::attachment(path));
    let attached = attached.collect::<cofferdam::Result<Vec<_>>>()?;
    if prompt.as_deref().is_some_and(|prompt| prompt.trim().is_empty()) && attached.is_empty() {
        return Err(UsageError("expected a prompt, found only spaces".to_owned()).into());
    }
    let saved = match &args.session {
        Some(name) => Some(Arc::new(SavedSession::open(args.session_dir.as_deref(), name)?)),
        None => None,
    };
    let typed = TypedDecisions::parse(&args.answer)?;
    let mut selection = host::selection(&args.plugins)?;
    if let Some(saved) = &saved {
        saved.repair().await?;
    }
    let ledgers = if saved.is_some() { ledgers(&selection, file.as_ref()) } else { None };
    let saved_in = saved.iter().map(|saved| saved.directory().to_owned());
    let sealed_in = ledgers.iter().map(|ledgers| ledgers.directory().to_owned());
    let named = args.agent.iter().chain(&args.prompt_file).cloned();
    let protected: Vec<_> = saved_in.chain(sealed_in).chain(named).collect();
    let options = ContextOptions {
        memory: args.memory_files.as_deref().map(StoreLocation::parse),
        todos: args.todos,
        plan_mode: args.plan,
    };
    selection.code.default_language = model.code_language();
    selection.code.hides_recorded_types = args.labels;
    let prompts = inspector::prompts(args.inspector.inspector.as_ref());
    let program_log = Arc::new(OnceLock::new());
    selection.code.approver = Some(Arc::new(ProgramApprovals {
        all: args.approval.yes,
        tools: args.approval.approve.clone(),
        prompts: prompts.clone(),
        is_kept: ledgers.is_some(),
        call_log: Arc::clone(&program_log),
    }));
    selection.code.seal = ledgers.map(|ledgers| Arc::new(ledgers) as Arc<dyn LedgerSeal>);
    check_loop(definition.as_ref(), args)?;
    let context =
        ContextSettings::new(options, file.as_ref(), &selection, &protected).open(defined)?;
    let tools = host::build(global, selection, Purpose::Converse, &protected).await?;
    if let Some(log) = tools.call_log() {
        let _ = program_log.set(Arc::clone(log));
    }
    if let Some(flag) = &args.inspector.inspector {
        let options = inspector::options(file.as_ref(), prompts.clone())?;
        inspector::start(flag, options, CancellationToken::new()).await?;
    }
    let screen = Screen::new(!args.json, &tools, args.plugins.config.clone());
    let screen = Arc::new(screen);
    let transcript = Transcript::new(args.json);
    let decisions = labels::Decisions::new(args.json);
    let policy = labels::policy(args.labels, file.as_ref(), &tools, &decisions)?;
    let decisions = policy.is_some().then_some(decisions);
    let session = match &saved {
        Some(saved) => saved.session()?,
        None => Session::new(),
    };
    if let (Some(saved), Some(_), false) = (&saved, &decisions, is_labelled(&session))
        && saved.has_messages().await
    {
        print::note(
            "this session was begun without a label policy: all that it has read counts as \
             untrusted and confidential",
        );
        taint(&session, &Label::unknown());
    }
    let toolset = match &defined {
        Some(defined) => defined.tools(tools.toolset(), tools.skills())?,
        None => tools.toolset().clone(),
    };
    let approvals = all_approvals(args, &toolset, file.as_ref(), definition.as_ref())?;
    let loop_settings = loop_settings(args, file.as_ref(), definition.as_ref())?;
    let agents = AgentFactory {
        args: args.clone(),
        settings,
        approvals: approvals.clone(),
        loop_settings,
        budget: ConfigFile::budget(args.budget_tokens, file.as_ref()),
        layers: ConfigFile::call_layers(file.as_ref())?,
        file,
        definition,
        toolset: toolset.clone(),
        instructions,
        prompt_file,
        context,
        saved: saved.clone(),
        transcript: transcript.clone(),
        stored: StorageMark::default(),
        screen: Arc::clone(&screen),
        policy,
        call_log: tools.call_log().cloned(),
    };
    let mut talk = Conversation {
        agent: agents.agent(&model)?,
        model: model.to_string(),
        agents,
        session,
        screen,
        typed,
        approved: StandingApprovals {
            all: args.approval.yes,
            tools: args.approval.approve.clone(),
            file_tools: file_tools(&tools),
            rules: approvals,
            toolset: toolset.clone(),
        },
        pages: prompts.map(|prompts| ApprovalPages { prompts, toolset: toolset.clone() }),
        interrupts: Interrupts::listen(),
        transcript,
        is_dry_run: args.dry_run,
        is_json: args.json,
        decisions,
        used: Default::default(),
        pinned: Vec::new(),
        attached,
        finish: None,
    };
    let call_log = tools.call_log().cloned();
    let save = |session: &Session| saved.as_ref().map_or(Ok(()), |saved| saved.save(session));
    let resumed = talk.resume().await?;
    if resumed.is_some() {
        save(&talk.session)?;
    }
    let is_over = match &resumed {
        Some(TurnEnd::Answered) => prompt.is_none() && !args.answer.is_empty(),
        Some(_) => !cofferdam_terminal::is_interactive(),
        None => false,
    };
    let exit = match (resumed.filter(|_| is_over), prompt) {
        (Some(end), _) => exit_of(&end),
        (None, Some(prompt)) => {
            let end = talk.turn(&prompt).await?;
            save(&talk.session)?;
            exit_of(&end)
        }
        (None, None) => conversation::run(&mut talk, &toolset, saved.is_some(), save).await?,
    };
    if let Some(log) = call_log {
        log.finish().await;
    }
    Ok(exit)
}

/// Returns the names of the file-access tools.
fn file_tools(tools: &cofferdam::Host) -> Vec<String> {
    let names = tools.toolset().definitions().map(|definition| definition.name.to_string());
    names.filter(|name| tools.is_file_tool(name)).collect()
}

/// Creates the agents of a conversation, one for each model that it uses.
struct AgentFactory {
    args: ChatArgs,
    file: Option<ConfigFile>,
    definition: Option<AgentFile>,
    toolset: Toolset,
    instructions: Option<String>,
    prompt_file: Option<PromptFile>,
    context: AgentContext,
    saved: Option<Arc<SavedSession>>,
    transcript: Transcript,
    /// Mark of the turns that the conversation contains.
    stored: StorageMark,
    screen: Arc<Screen>,
    policy: Option<LabelPolicy>,
    /// Options of requests that flags set.
    settings: RequestSettings,
    approvals: Approvals,
    loop_settings: LoopSettings,
    budget: Option<TokenBudget>,
    /// Middleware of the configuration around calls.
    layers: Vec<Layer>,
    call_log: Option<Arc<CallLog>>,
}

impl AgentFactory {
    /// Returns the values for tools of remote servers.
    fn host_values(&self) -> HostValues {
        self.file.as_ref().map(ConfigFile::host_values).unwrap_or_default()
    }

    fn plan_mode(&self) -> Option<&PlanMode> {
        self.context.plan_mode()
    }

    /// Returns the model that `typed` names, as `--model` does.
    fn model(&self, typed: &str) -> anyhow::Result<ModelSpec> {
        Ok(model_specs::choose(Some(typed), None, self.file.as_ref())?)
    }

    fn agent(&self, model: &ModelSpec) -> anyhow::Result<Arc<dyn AgentRun>> {
        let Self { args, toolset, screen, .. } = self;
        let defined = self.definition.as_ref().map(AgentFile::defined);
        let mut model = model.clone();
        if let Some(prompt) = &self.prompt_file {
            prompt.apply_to(&mut model)?;
        }
        if let Some(defined) = &defined {
            defined.set_options(&mut model)?;
        }
        let mut choice = defined.map(|defined| defined.choice(&model)).transpose()?.flatten();
        if let Some(prompt) = &self.prompt_file {
            choice = prompt.choice(&model, choice);
        }
        let options = &mut model.options;
        self.settings.apply_to(options);
        options.strict_schemas |= args.strict;
        options.tool_choice =
            args.tool_choice.as_deref().map(|word| tool_mode(word, toolset)).transpose()?;
        let mut settings = self.loop_settings.clone();
        let approvals = self.approvals.clone();
        let limits = Arc::clone(screen);
        settings.limit_observer = Some(Arc::new(move |reached| limits.limit(reached)));
        let retries = Arc::clone(screen);
        let client =
            model_specs::client(&model, Some(Arc::new(move |planned| retries.retry(planned))))?;
        let client = cofferdam::recorded(client, model.provider.word(), self.call_log.as_ref());
        let client: Arc<dyn ChatClient> = Arc::new(client);
        let compactions = Arc::clone(screen);
        // The same model writes the summaries.
        let compaction = model
            .compaction(args.context_window, Arc::clone(&client))
            .observer(move |report| compactions.compacted(report));
        let mut builder = Agent::builder(client)
            .name("cofferdam")
            .tools(toolset.clone())
            .options(model.options)
            .settings(settings)
            .approvals(approvals.run_others_at_once(true).suspend_programs(self.saved.is_some()))
            .compaction(compaction)
            .observer(cofferdam::run_recorder(model.provider.word(), self.call_log.as_ref()))
            .layer(Layer::function(ShowCalls(Arc::clone(screen))));
        for layer in &self.layers {
            builder = builder.layer(layer.clone());
        }
        if let Some(policy) = &self.policy {
            builder = builder.guard(policy.clone());
        }
        if let Some(file) = &self.file {
            builder = builder.tool_search(file.tool_search());
        }
        let format = defined.map(|defined| defined.response_format("agent")).transpose()?;
        if let Some(format) = format.flatten() {
            builder = builder.response_format(format);
        }
        if let Some(choice) = choice {
            builder = builder.choice(choice);
        }
        if let Some(instructions) = &self.instructions {
            builder = builder.instructions(instructions.clone());
        }
        if let Some(budget) = &self.budget {
            builder = builder.budget(budget.clone());
        }
        builder = builder.context_provider(self.stored.clone());
        if let Some(saved) = &self.saved {
            builder = builder.context_provider(saved.history());
        }
        builder = self.context.add_to(builder).context_provider(self.transcript.clone());
        let agent = builder.build().map_err(|error| UsageError(error.to_string()))?;
        match defined {
            Some(defined) => Ok(defined.bounded(agent)?),
            None => Ok(Arc::new(agent)),
        }
    }
}

/// Returns the seal of programs that wait for an approval. Without it, none waits: if there are no
/// programs or no directory for its key, or if results are redacted, which those in a ledger are
/// not.
pub(super) fn ledgers(selection: &Selection, file: Option<&ConfigFile>) -> Option<Ledgers> {
    if selection.code.offer(file).is_none() || file.is_some_and(ConfigFile::redacts_results) {
        return None;
    }
    let warn = |error: &dyn std::fmt::Display| {
        print::note(&format!("warning: no program can wait for an approval: {error}"));
    };
    let ledgers = Ledgers::of_user().inspect_err(|error| warn(error)).ok()?;
    Some(ledgers.with_report(move |error| warn(error)))
}

/// Returns an error if a session would store the outcome of a dry run.
fn check_dry_run(args: &ChatArgs) -> Result<(), UsageError> {
    if !args.dry_run || args.session.is_none() {
        return Ok(());
    }
    Err(UsageError(
        "--dry-run does not go with --session: later turns would take its changes for made; leave \
         one of them out"
            .to_owned(),
    ))
}

/// Returns an error if a loop of the agent would ignore a flag.
fn check_loop(definition: Option<&AgentFile>, args: &ChatArgs) -> Result<(), UsageError> {
    let is_bounded = definition.is_some_and(|file| file.defined().is_bounded());
    let ignored = [("--session", args.session.is_some()), ("--plan", args.plan)];
    match ignored.into_iter().find(|(_, is_set)| is_bounded && *is_set) {
        Some((name, _)) => Err(UsageError(format!(
            "the agent is `bounded`: each iteration begins without a conversation, so {name} has no effect"
        ))),
        None => Ok(()),
    }
}

/// Returns which calls need approval. Returns an error if a tool that is approved in advance does
/// not exist.
pub(super) fn approvals(
    args: &ApprovalArgs,
    toolset: &Toolset,
    file: Option<&ConfigFile>,
) -> anyhow::Result<Approvals> {
    for name in &args.approve {
        // Programs may call tools that the model does not see.
        known(name, toolset.unrestricted())?;
    }
    let approvals = Approvals::by_default(match args.ask {
        AskMode::Sources => ApprovalMode::Never,
        AskMode::Changes => ApprovalMode::ByAnnotation,
        AskMode::Always => ApprovalMode::Always,
    });
    Ok(match file {
        Some(file) => file.approvals(approvals)?,
        None => approvals,
    })
}

/// Returns which calls of a conversation need approval, by the flags, the configuration and the
/// agent file.
fn all_approvals(
    args: &ChatArgs,
    toolset: &Toolset,
    file: Option<&ConfigFile>,
    definition: Option<&AgentFile>,
) -> anyhow::Result<Approvals> {
    let approvals = approvals(&args.approval, toolset, file)?;
    let Some(defined) = definition.map(AgentFile::defined) else { return Ok(approvals) };
    let own = defined.approvals(Approvals::default())?;
    own.misspelled(toolset).iter().for_each(|one| print::note(&format!("warning: {one}")));
    Ok(defined.approvals(approvals)?)
}

/// Returns the settings of the loop, by the configuration, the agent file and the flags.
fn loop_settings(
    args: &ChatArgs,
    file: Option<&ConfigFile>,
    definition: Option<&AgentFile>,
) -> anyhow::Result<LoopSettings> {
    let mut settings = file.map(ConfigFile::loop_settings).transpose()?.unwrap_or_default();
    if let Some(definition) = definition {
        settings = definition.defined().settings(settings)?;
    }
    if let Some(iterations) = args.max_iterations {
        settings.max_iterations = iterations.get();
    }
    Ok(settings)
}

/// Returns the options of requests that `--setting` sets.
pub(super) fn request_settings(typed: &[String]) -> anyhow::Result<RequestSettings> {
    let settings = RequestSettings::parse(typed);
    Ok(settings.map_err(|error| UsageError(format!("--setting: {error}")))?)
}

/// Returns the prompt of a prompt file with the arguments that `--prompt-arg` sets. The typed
/// prompt is its variable `input`, or the prompt itself if the file has no template.
fn rendered_prompt(
    file: &PromptFile,
    typed: &[String],
    prompt: Option<String>,
) -> anyhow::Result<Option<String>> {
    let mut arguments = BTreeMap::new();
    for typed in typed {
        let Some((name, value)) = typed.split_once('=') else {
            let message = format!("--prompt-arg: `{typed}` has no value; expected NAME=VALUE");
            return Err(UsageError(message).into());
        };
        if arguments.insert(name.to_owned(), text_or_file(value)?).is_some() {
            return Err(UsageError(format!("--prompt-arg: `{name}` occurs twice")).into());
        }
    }
    if !file.has_template() {
        file.render(&arguments)?;
        return Ok(prompt);
    }
    if let Some(prompt) = prompt
        && arguments.insert(PROMPT_VARIABLE.to_owned(), prompt).is_some()
    {
        let message = "both PROMPT and --prompt-arg set the variable `input` of the prompt file";
        return Err(UsageError(message.to_owned()).into());
    }
    Ok(file.render(&arguments)?)
}

fn tool_mode(word: &str, toolset: &Toolset) -> anyhow::Result<ToolMode> {
    Ok(match word {
        "auto" => ToolMode::Auto,
        "none" => ToolMode::None,
        "required" => ToolMode::Required(None),
        name => ToolMode::Required(Some(known(name, toolset)?.to_owned())),
    })
}

fn known<'n>(name: &'n str, toolset: &Toolset) -> anyhow::Result<&'n str> {
    match toolset.definition(name) {
        Ok(_) => Ok(name),
        Err(refused) => Err(UsageError(cofferdam::text::refusal(&refused)).into()),
    }
}

/// Returns the exit code for the outcome of the last turn.
fn exit_of(end: &TurnEnd) -> Exit {
    match end {
        TurnEnd::Answered => Exit::Ok,
        TurnEnd::Unapproved | TurnEnd::Waiting => Exit::Plugin,
        TurnEnd::Blocked | TurnEnd::Unanswered => Exit::ToolError,
        TurnEnd::Stopped => Exit::Interrupted,
        TurnEnd::Failed(error) => exit_of_error(error),
    }
}

/// Returns the exit code for a run without a response.
pub(super) fn exit_of_error(error: &RunError) -> Exit {
    match error {
        RunError::Chat(error) if error.kind == ChatErrorKind::Configuration => Exit::Usage,
        RunError::Chat(_) | RunError::Answer(_) => Exit::Plugin,
        RunError::BudgetExceeded(_) | RunError::Calls(_) | RunError::FailClosed(_) => {
            Exit::ToolError
        }
        RunError::Cancelled => Exit::Interrupted,
        RunError::GuardMissing { .. } => Exit::Usage,
        RunError::Other(error) if error.is::<ChoiceError>() => Exit::Usage,
        RunError::Other(error)
            if error.downcast_ref::<HistoryError>().is_some_and(saved::is_unreadable) =>
        {
            Exit::Usage
        }
        _ => Exit::Internal,
    }
}

pub(super) fn text_or_stdin(text: &str) -> anyhow::Result<String> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let read = read_text_at_most(std::io::stdin(), TEXT_BYTES_MAX);
    Ok(read.map_err(|error| UsageError(format!("standard input cannot be read: {error}")))?)
}

pub(super) fn text_or_file(text: &str) -> anyhow::Result<String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let read = read_named_text_ambient(Path::new(path), TEXT_BYTES_MAX);
    Ok(read.map_err(|error| UsageError(format!("{path} cannot be read: {error}")))?)
}

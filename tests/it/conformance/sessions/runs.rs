//! Rows about agents with context providers, histories and sessions (`SES-2` to `SES-5`).

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cofferdam_agent::history::{FileHistory, FileHistoryOptions, HistoryFlags, IN_SESSION};
use cofferdam_agent::{
    AfterRun, Agent, AgentBuilder, BeforeRun, BoxError, ChatClient, ChatError, ChatRequest,
    ContextProvider, History, Message, MessageContent, Reply, ReplyStream, Session,
};
use serde_json::{Value, json};

use super::super::agent::{Model, block_on, finished};
use super::super::{Row, expect_same};
use super::{expect_part, texts};

/// Returns a model that gives one reply after another.
fn saying(replies: &[&str]) -> Model {
    Model::new(replies.iter().map(|reply| vec![MessageContent::text(*reply)]).collect())
}

/// Returns the texts of the model's request number `index`.
fn saw(model: &Model, index: usize) -> Result<Vec<String>, String> {
    model
        .seen()
        .get(index)
        .map(|seen| seen.texts())
        .ok_or_else(|| format!("there was no request {index}"))
}

/// Model whose service keeps the conversation.
struct Keeping(Model);

#[async_trait]
impl ChatClient for Keeping {
    fn model(&self) -> &str {
        self.0.model()
    }

    fn keeps_conversation(&self) -> bool {
        true
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        self.0.reply(request).await
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        self.0.stream(request).await
    }
}

/// Adds the row's instructions and messages, and records its calls and their contexts.
#[derive(Clone, Default)]
struct Provider {
    id: String,
    instructions: Option<String>,
    message: Option<String>,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    events: Vec<String>,
    /// Errors about the parts of the state.
    unscoped: Vec<String>,
    /// Sources of the messages that a run had as context.
    sources: Vec<Option<String>>,
}

#[async_trait]
impl ContextProvider for Provider {
    fn source_id(&self) -> &str {
        &self.id
    }

    async fn before_run(&self, run: &mut BeforeRun<'_>) -> Result<(), BoxError> {
        let mut log = self.log.lock().unwrap();
        log.events.push(format!("{} before", self.id));
        let runs = run.state["runs"].as_u64().unwrap_or_default();
        if !run.state.is_null() && *run.state != json!({"id": self.id, "runs": runs, "ended": runs})
        {
            log.unscoped.push(format!("{} found {}", self.id, run.state));
        }
        *run.state = json!({"id": self.id, "runs": runs + 1, "ended": runs});
        if let Some(text) = &self.instructions {
            run.add_instructions(text.as_str());
        }
        if let Some(text) = &self.message {
            run.add_messages([Message::user(text.as_str())]);
        }
        Ok(())
    }

    async fn after_run(&self, run: &mut AfterRun<'_>) -> Result<(), BoxError> {
        let mut log = self.log.lock().unwrap();
        log.events.push(format!("{} after", self.id));
        if run.state["id"] != self.id.as_str() || run.response.text().is_empty() {
            log.unscoped.push(format!("{} found {} after {:?}", self.id, run.state, run.response));
        }
        run.state["ended"] = run.state["runs"].clone();
        log.sources =
            run.context.iter().map(|message| message.source().map(str::to_owned)).collect();
        Ok(())
    }
}

fn built(builder: AgentBuilder) -> Result<Agent, String> {
    builder.build().map_err(|error| error.to_string())
}

/// Runs `input`, with a session if there is one, streamed or not.
fn run(
    agent: &Agent,
    session: Option<&Session>,
    input: &str,
    is_streaming: bool,
) -> Result<(), String> {
    let run = agent.run(input);
    let run = match session {
        Some(session) => run.session(session),
        None => run,
    };
    let done = block_on(finished(run, is_streaming))?;
    done.map(drop).map_err(|error| error.to_string())
}

/// Makes two runs with a history, in the session and in a file, streamed and not.
pub(super) fn flags(row: &Row) -> Result<(), String> {
    for is_in_files in [false, true] {
        for is_streaming in [false, true] {
            let got = flags_once(row, is_in_files, is_streaming)?;
            expect_part(row, &got).map_err(|error| {
                format!("files {is_in_files}, streaming {is_streaming}: {error}")
            })?;
        }
    }
    Ok(())
}

fn flags_once(row: &Row, is_in_files: bool, is_streaming: bool) -> Result<Value, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let files = FileHistory::open_ambient(directory.path(), FileHistoryOptions::default());
    let files = files.map_err(|error| error.to_string())?;
    let history =
        if is_in_files { History::in_files(files.clone()) } else { History::in_session() };
    let history = history.with_flags(read_flags(row.required("flags")?)?);
    let message = row.get("provider_message").and_then(Value::as_str);
    let provider =
        Provider { id: "p".into(), message: message.map(str::to_owned), ..Provider::default() };
    let model = saying(&texts(row.required("replies")?));
    let builder = Agent::builder(model.clone());
    let builder = match message {
        None => builder.context_provider(history),
        Some(_) if row.flag("provider_before_history") => {
            builder.context_provider(provider).context_provider(history)
        }
        Some(_) => builder.context_provider(history).context_provider(provider),
    };
    let agent = built(builder)?;
    let session = Session::with_id("s1");
    let inputs = texts(row.required("runs")?);
    for input in &inputs {
        run(&agent, Some(&session), input, is_streaming)?;
    }
    let stored = if is_in_files {
        block_on(async { files.read("s1").await.map_err(|error| error.to_string()) })?
    } else {
        let messages =
            session.part(IN_SESSION).get("messages").cloned().unwrap_or_else(|| json!([]));
        serde_json::from_value(messages).map_err(|error| error.to_string())?
    };
    let stored: Vec<_> = stored.iter().map(Message::text).collect();
    Ok(json!({
        "stored": stored,
        "first_run_model_saw": saw(&model, 0)?,
        "second_run_model_saw": saw(&model, 1)?,
    }))
}

fn read_flags(value: &Value) -> Result<HistoryFlags, String> {
    let mut flags = HistoryFlags::default();
    for (name, value) in value.as_object().ok_or("`flags` is not an object")? {
        let flag = match name.as_str() {
            "load_messages" => &mut flags.load_messages,
            "store_inputs" => &mut flags.store_inputs,
            "store_outputs" => &mut flags.store_outputs,
            "store_context_messages" => &mut flags.store_context_messages,
            other => return Err(format!("unknown flag `{other}`")),
        };
        *flag = value.as_bool().ok_or_else(|| format!("`{name}` is neither true nor false"))?;
    }
    Ok(flags)
}

pub(super) fn providers(row: &Row) -> Result<(), String> {
    for is_streaming in [false, true] {
        let log = Arc::<Mutex<Log>>::default();
        let session = Session::new();
        let runs = row.required("runs")?.as_u64().ok_or("`runs` is not a number")?;
        let model = saying(&vec!["reply"; usize::try_from(runs).unwrap_or_default()]);
        let mut builder = Agent::builder(model);
        let ids = texts(row.required("providers")?);
        for id in &ids {
            let (id, log) = ((*id).to_owned(), Arc::clone(&log));
            builder = builder.context_provider(Provider { id, log, ..Provider::default() });
        }
        let agent = built(builder)?;
        for _ in 0..runs {
            run(&agent, Some(&session), "hi", is_streaming)?;
        }
        for id in ids {
            // The provider's part of the state is stored with the session.
            expect_same(
                "state",
                &json!({"id": id, "runs": runs, "ended": runs}),
                &session.part(id),
            )?;
        }
        let log = log.lock().unwrap();
        if let Some(unscoped) = log.unscoped.first() {
            return Err(unscoped.clone());
        }
        expect_part(row, &json!({"events": log.events, "state_scoped": true}))?;
    }
    Ok(())
}

pub(super) fn instructions(row: &Row) -> Result<(), String> {
    let log = Arc::<Mutex<Log>>::default();
    let model = saying(&["reply"]);
    let mut builder = Agent::builder(model.clone());
    let texts = texts(row.required("providers")?);
    let ids: Vec<_> = (1..=texts.len()).map(|number| format!("p{number}")).collect();
    for (id, text) in ids.iter().zip(texts) {
        builder = builder.context_provider(Provider {
            id: id.clone(),
            instructions: Some(text.to_owned()),
            message: Some("context".into()),
            log: Arc::clone(&log),
        });
    }
    run(&built(builder)?, Some(&Session::new()), "hi", false)?;
    let seen = model.seen();
    let seen = seen.first().ok_or("the model was not asked")?;
    let ids: Vec<_> = ids.into_iter().map(Some).collect();
    let marked = log.lock().unwrap().sources == ids;
    expect_part(row, &json!({"instructions": seen.instructions, "marked_with_source": marked}))
}

/// Checks whether a run gets a history by default, and whether the model sees its messages.
pub(super) fn remembering(row: &Row) -> Result<(), String> {
    let situation = row.text("situation")?;
    let model = saying(&["one", "two"]);
    let mut session = Some(Session::new());
    let builder = |model: &Model| Agent::builder(model.clone());
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let files = FileHistory::open_ambient(directory.path(), FileHistoryOptions::default());
    let history = History::in_files(files.map_err(|error| error.to_string())?);
    let loads_not = HistoryFlags { load_messages: false, ..HistoryFlags::default() };
    let builder = match situation {
        "no session" => {
            session = None;
            builder(&model)
        }
        "session, no provider" => builder(&model),
        // The tools of this provider are irrelevant: it is not a history.
        "session, file-access provider only" => builder(&model)
            .context_provider(Provider { id: "file_access".into(), ..Provider::default() }),
        "session, history provider that loads" => builder(&model).context_provider(history),
        "session, history provider with load_messages off" => {
            builder(&model).context_provider(history.with_flags(loads_not))
        }
        "session, service keeps the conversation" => Agent::builder(Keeping(model.clone())),
        other => return Err(format!("unknown situation `{other}`")),
    };
    let agent = built(builder)?;
    for input in ["q1", "q2"] {
        run(&agent, session.as_ref(), input, false)?;
    }
    let is_added = session.as_ref().is_some_and(|session| !session.part(IN_SESSION).is_null());
    let is_shown = saw(&model, 1)? == ["q1", "one", "q2"];
    let is_shown_otherwise = situation == "session, history provider that loads";
    if is_shown != (is_added || is_shown_otherwise) {
        return Err(format!("added: {is_added}, and the model saw {:?}", saw(&model, 1)));
    }
    expect_part(row, &json!({"in_memory_history_added": is_added}))
}

//! Rows of `middleware.jsonl`: code around runs, model calls and function calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_agent::middleware::{
    AgentContext, AgentResult, CallArguments, ChatContext, ChatResult, FunctionContext,
    FunctionError, FunctionSignal, FunctionValue, Retry, Signal,
};
use cofferdam_agent::{
    BeforeRun, BoxError, ContextProvider, Layer, LayerKind, LiveTools, Message, Middleware, Next,
    Reply, Response, Role, RunError,
};
use cofferdam_tool::retry::Backoff;
use cofferdam_tool::{Content, Output};
use serde_json::{Map, Value, json};

use super::Row;
use super::agent::{Model, Tools, block_on, compare, finished, raised, written};
use super::agent_loop::builder;

pub(crate) fn run(row: &Row) -> Result<(), String> {
    block_on(async {
        match row.op.as_str() {
            "middleware" => middleware(row).await,
            other => Err(format!("unknown operation `{other}`")),
        }
    })
}

/// Actions of middleware, and the log of its events.
#[derive(Clone)]
struct Doing {
    name: String,
    actions: Vec<Value>,
    events: Arc<Mutex<Vec<String>>>,
    /// Tools of the run, for use after it.
    live: Arc<Mutex<Option<LiveTools>>>,
}

/// An action with its arguments.
struct Action<'a> {
    word: &'a str,
    value: &'a Value,
}

impl Doing {
    fn actions(&self) -> Vec<Action<'_>> {
        self.actions
            .iter()
            .map(|action| match action {
                Value::Object(object) => {
                    let (word, value) = object.iter().next().expect("an action has a word");
                    Action { word, value }
                }
                other => Action { word: other.as_str().unwrap_or_default(), value: &Value::Null },
            })
            .collect()
    }

    fn event(&self, event: impl Into<String>) {
        self.events.lock().unwrap().push(event.into());
    }
}

/// Parses a value of a row.
fn value(written: &Value) -> FunctionValue {
    match written.get("contents").and_then(Value::as_array) {
        Some(texts) => {
            let texts = texts
                .iter()
                .map(|text| Content::Text(text.as_str().unwrap_or_default().to_owned()));
            FunctionValue::Output(Output::Contents(texts.collect()))
        }
        None => written.clone().into(),
    }
}

fn unknown(word: &str) -> BoxError {
    format!("unknown action `{word}`").into()
}

fn message(written: &Value) -> Arc<Message> {
    let role = match written["role"].as_str() {
        Some("system") => Role::System,
        Some("assistant") => Role::Assistant,
        _ => Role::User,
    };
    let text = written["text"].as_str().unwrap_or_default();
    Arc::new(Message::new(role, vec![cofferdam_agent::MessageContent::text(text)]))
}

fn text(written: &Value) -> Option<String> {
    written.as_str().map(str::to_owned)
}

#[async_trait]
impl Middleware<FunctionContext> for Doing {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        *self.live.lock().unwrap() = Some(context.tools.clone());
        let carried = |written: &Value| (!written.is_null()).then(|| value(written));
        for Action { word, value: given } in self.actions() {
            match word {
                "next" => next.run(context).await?,
                "next_or" => match next.run(context).await {
                    Err(FunctionSignal::Error(_)) => context.result = Some(value(given)),
                    other => other?,
                },
                "set_arguments" => context.arguments = CallArguments::Value(given.clone()),
                "set_result" => context.result = Some(value(given)),
                "raise" => {
                    return Err(FunctionError::Other(text(given).unwrap_or_default().into()).into());
                }
                "fail_closed" => {
                    return Err(FunctionSignal::FailClosed(text(given).unwrap_or_default().into()));
                }
                "terminate" => return Err(FunctionSignal::Terminate(carried(given))),
                "terminate_on" => {
                    if given["call_id"] == context.call_id.as_str() {
                        return Err(FunctionSignal::Terminate(carried(&given["result"])));
                    }
                }
                "log_in" => self.event(format!("{}>", self.name)),
                "log_out" => self.event(format!("{}<", self.name)),
                "note" => {}
                "log_call_id" => self.event(format!("call_id {}", context.call_id)),
                other => return Err(FunctionSignal::FailClosed(unknown(other))),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Middleware<ChatContext> for Doing {
    async fn process(
        &self,
        context: &mut ChatContext,
        next: Next<'_, ChatContext>,
    ) -> Result<(), Signal<Reply>> {
        for Action { word, value: given } in self.actions() {
            match word {
                "next" => next.run(context).await?,
                "set_result" => {
                    let reply = Reply::text(text(given).unwrap_or_default());
                    context.result = Some(ChatResult::Reply(reply));
                }
                "raise" => {
                    return Err(RunError::Other(text(given).unwrap_or_default().into()).into());
                }
                "terminate" => return Err(Signal::Terminate(text(given).map(Reply::text))),
                "add_message" => context.request.messages.push(message(given)),
                "log_in" => self.event(format!("{}>", self.name)),
                "log_out" => self.event(format!("{}<", self.name)),
                "log_message_count" => {
                    self.event(format!("messages {}", context.request.messages.len()))
                }
                other => return Err(RunError::Other(unknown(other)).into()),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Middleware<AgentContext> for Doing {
    async fn process(
        &self,
        context: &mut AgentContext,
        next: Next<'_, AgentContext>,
    ) -> Result<(), Signal<Response>> {
        for Action { word, value: given } in self.actions() {
            match word {
                "next" => next.run(context).await?,
                "set_result" => {
                    let response = Response::text_only(text(given).unwrap_or_default());
                    context.result = Some(AgentResult::Response(response));
                }
                "raise" => {
                    return Err(RunError::Other(text(given).unwrap_or_default().into()).into());
                }
                "terminate" => return Err(Signal::Terminate(text(given).map(Response::text_only))),
                "add_message" => context.messages.push(message(given)),
                "log_in" => self.event(format!("{}>", self.name)),
                "log_out" => self.event(format!("{}<", self.name)),
                "log_message_count" => self.event(format!("messages {}", context.messages.len())),
                other => return Err(RunError::Other(unknown(other)).into()),
            }
        }
        Ok(())
    }
}

fn kind(word: &str) -> Result<LayerKind, String> {
    Ok(match word {
        "agent" => LayerKind::Agent,
        "chat" => LayerKind::Chat,
        "function" => LayerKind::Function,
        other => return Err(format!("unknown kind `{other}`")),
    })
}

/// Returns the layer that an entry of a row describes.
fn layer_of(
    entry: &Value,
    events: &Arc<Mutex<Vec<String>>>,
    live: &Arc<Mutex<Option<LiveTools>>>,
) -> Result<(LayerKind, Layer), String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let doing = Doing {
        name: text("name").unwrap_or("m").to_owned(),
        actions: entry.get("do").and_then(Value::as_array).cloned().unwrap_or_default(),
        events: Arc::clone(events),
        live: Arc::clone(live),
    };
    let declared = kind(text("kind").ok_or("middleware without a kind")?)?;
    let handler = text("handler").map(kind).transpose()?.unwrap_or(declared);
    Ok((declared, layer(handler, doing)))
}

fn layer(kind: LayerKind, doing: Doing) -> Layer {
    match kind {
        LayerKind::Agent => Layer::agent(doing),
        LayerKind::Chat => Layer::chat(doing),
        LayerKind::Function => Layer::function(doing),
    }
}

/// Context provider with middleware.
struct Provider(Layer);

#[async_trait]
impl ContextProvider for Provider {
    fn source_id(&self) -> &str {
        "provider"
    }

    async fn before_run(&self, run: &mut BeforeRun<'_>) -> Result<(), BoxError> {
        Ok(run.add_middleware(vec![self.0.clone()])?)
    }
}

async fn middleware(row: &Row) -> Result<(), String> {
    let (model, tools) = (Model::of(row)?, Tools::new());
    let events = Arc::new(Mutex::new(Vec::new()));
    let live = Arc::new(Mutex::new(None));
    let mut builder = builder(row, &model, &tools)?;
    let (mut of_run, mut refused) = (Vec::new(), false);
    let entries = row.get("middleware").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut installed = 0_usize;
    for entry in &entries {
        if let Some(bundle) = entry.get("bundle").and_then(Value::as_array) {
            let layers = bundle
                .iter()
                .map(|entry| layer_of(entry, &events, &live))
                .collect::<Result<Vec<_>, _>>()?;
            match Layer::bundle(layers) {
                Ok(layers) => {
                    installed += layers.len();
                    builder =
                        layers.into_iter().fold(builder, cofferdam_agent::AgentBuilder::layer);
                }
                Err(_) => refused = true,
            }
            continue;
        }
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        if let Some(retries) = text("name").and_then(|name| name.strip_prefix("retry ")) {
            let retries = retries.parse().map_err(|_| format!("`{retries}` is not a number"))?;
            builder = builder.layer(Layer::function(Retry::new(Backoff {
                retries_max: retries,
                pause: Duration::from_millis(1),
                pause_max: Duration::from_millis(1),
            })));
            continue;
        }
        let Ok(bundle) = Layer::bundle([layer_of(entry, &events, &live)?]) else {
            refused = true;
            continue;
        };
        installed += bundle.len();
        for layer in bundle {
            builder = match (text("from"), text("level").unwrap_or("agent")) {
                (Some("context provider"), _) => builder.context_provider(Provider(layer)),
                (Some(other), _) => return Err(format!("unknown source `{other}`")),
                (None, "agent") => builder.layer(layer),
                (None, "client") => builder.client_layer(layer),
                (None, "run") => {
                    of_run.push(layer);
                    builder
                }
                (None, other) => return Err(format!("unknown level `{other}`")),
            };
        }
    }
    let keeper = Doing {
        name: String::new(),
        actions: vec!["next".into()],
        events: Arc::clone(&events),
        live,
    };
    if row.expect.get("error").is_some() {
        builder = builder.layer(Layer::function(keeper.clone()));
    }
    let agent = builder.build().map_err(|error| error.to_string())?;
    let mut run = agent.run("hi");
    for layer in of_run {
        run = run.layer(layer);
    }
    let ran = finished(run, row.flag("stream")).await?;
    let mut found = Map::new();
    if row.expect.get("error").is_some() {
        found.insert("error".to_owned(), outside(row, &keeper).await?.into());
    }
    let log = tools.take_log();
    found.insert("attempts".to_owned(), log.len().into());
    found.insert("tool_log".to_owned(), log.into());
    found.insert("installed".to_owned(), installed.into());
    let seen_tools: Vec<_> = model.seen().into_iter().map(|seen| seen.tools).collect();
    found.insert("tools_seen".to_owned(), json!(seen_tools));
    found.insert("events".to_owned(), events.lock().unwrap().clone().into());
    found.insert("model_calls".to_owned(), model.seen().len().into());
    found.insert("model_saw".to_owned(), json!(model.seen().last().map(super::agent::Seen::texts)));
    found.insert("add_error".to_owned(), json!(tools.refusal()));
    let is_refused = matches!(&ran, Err(RunError::Other(error)) if error.is::<cofferdam_agent::MiddlewareRefused>());
    found.insert("refused".to_owned(), (refused || is_refused).into());
    match ran {
        Ok(response) => {
            let results = response.messages.iter().flat_map(|message| message.results());
            let results: Vec<_> = results.map(|result| result.result.clone()).collect();
            for (name, index) in [("result", 0), ("first_result", 0), ("second_result", 1)] {
                found.insert(name.to_owned(), json!(results.get(index)));
            }
            found
                .insert("response".to_owned(), written(&response.messages, &|id, _| id.to_owned()));
            found.insert("raised".to_owned(), Value::Null);
        }
        Err(error) => {
            found.insert("raised".to_owned(), raised(&error));
        }
    }
    compare(&row.expect, &found)
}

/// Uses the tools of a run's context after the run, and returns the error.
async fn outside(row: &Row, keeper: &Doing) -> Result<String, String> {
    let calls = vec![vec![cofferdam_agent::MessageContent::call("1", "add", r#"{"a":1,"b":2}"#)]];
    let tools = Tools::new();
    let (toolset, _) = tools.toolset(&["add".to_owned()])?;
    let agent = cofferdam_agent::Agent::builder(Model::new(calls)).tools(toolset);
    let agent =
        agent.layer(Layer::function(keeper.clone())).build().map_err(|error| error.to_string())?;
    agent.run("hi").await.map_err(|error| error.to_string())?;
    let live = keeper.live.lock().unwrap().clone().ok_or("no tool was called")?;
    let note = row.get("note").and_then(Value::as_str).unwrap_or(&row.id);
    let changed = match note.contains("remove") {
        true => live.remove_tools(&["add"]),
        false => live.add_tools(tools.source("none")?),
    };
    Ok(changed.err().map(|error| error.to_string()).unwrap_or_default())
}

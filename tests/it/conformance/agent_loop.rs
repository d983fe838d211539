//! Rows of `loop.jsonl`: the function-calling loop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_agent::middleware::{FunctionContext, FunctionSignal, FunctionValue};
use cofferdam_agent::{
    Agent, AgentBuilder, ApprovalMode, Approvals, BudgetLimits, ChatOptions, Delta, FunctionResult,
    IterationContext, IterationHook, LoopSettings, Message, MessageContent, Middleware, Next,
    Response, Role, RunError, TokenBudget, ToolMode,
};
use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::Row;
use super::agent::{Model, Tools, block_on, compare, finished, raised, written};

pub(crate) fn run(row: &Row) -> Result<(), String> {
    block_on(async {
        match row.op.as_str() {
            "run" => loop_run(row).await,
            "settings" => settings_row(row),
            "defaults" => defaults(row),
            "timing" => timing(row).await,
            "cancel_during" => cancel_during(row).await,
            "invoker" => invoker(row).await,
            "tool_returns_result" => tool_returns_result(row).await,
            "options_untouched" => options_untouched(row).await,
            "hook_raises" => hook_raises(row).await,
            "stream_buffer" => stream_buffer(row).await,
            "budget" => budget(row).await,
            other => Err(format!("unknown operation `{other}`")),
        }
    })
}

/// Returns the names in a list.
pub(super) fn names(value: Option<&Value>) -> Vec<String> {
    let names = value.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the settings of a row. Some are tools or are in the unit of the test clock.
pub(super) fn settings(row: &Row, tools: &Tools) -> Result<LoopSettings, String> {
    let mut given = row.get("settings").and_then(Value::as_object).cloned().unwrap_or_default();
    let duration = given.remove("max_duration_ms").and_then(|ms| ms.as_u64());
    let additional = given.remove("additional_tools");
    let mut settings = LoopSettings::from_json(&given).map_err(|error| error.to_string())?;
    settings.max_duration = duration.map(Duration::from_millis);
    settings.additional_tools = tools.toolset(&names(additional.as_ref()))?.0;
    Ok(settings)
}

/// Returns a builder of an agent with the tools of a row. `needs` needs approval, as do the tools
/// that the row calls gated.
pub(super) fn builder(row: &Row, model: &Model, tools: &Tools) -> Result<AgentBuilder, String> {
    let (toolset, declared) = tools.toolset(&names(row.get("tools")))?;
    let gated = names(row.get("gated")).into_iter().chain(["needs".to_owned()]);
    let approvals = gated
        .fold(Approvals::default(), |approvals, tool| approvals.with(tool, ApprovalMode::Always));
    let builder =
        Agent::builder(model.clone()).tools(toolset).approvals(approvals).clock(tools.clone());
    let builder = builder.settings(settings(row, tools)?);
    Ok(match declared {
        Some(definition) => builder.declare(definition),
        None => builder,
    })
}

fn options(row: &Row) -> Result<ChatOptions, String> {
    let tool_choice = row.get("options").and_then(|options| options.get("tool_choice"));
    let tool_choice = match tool_choice {
        None | Some(Value::Null) => None,
        Some(Value::String(word)) => Some(match word.as_str() {
            "auto" => ToolMode::Auto,
            "none" => ToolMode::None,
            "required" => ToolMode::Required(None),
            other => return Err(format!("unknown tool choice `{other}`")),
        }),
        Some(object) => {
            let name = ["required", "name", "required_function_name"]
                .into_iter()
                .find_map(|key| object.get(key)?.as_str());
            Some(ToolMode::Required(Some(name.ok_or("a tool choice without a name")?.to_owned())))
        }
    };
    Ok(ChatOptions { tool_choice, ..ChatOptions::default() })
}

/// Records its contexts and acts as the row says.
#[derive(Clone, Default)]
struct Hook {
    calls: Arc<Mutex<Vec<Value>>>,
    /// All messages after the input.
    messages: Arc<Mutex<Vec<Arc<Message>>>>,
    terminate_at: Option<u64>,
    sets_usage_to_zero: bool,
    raises: Option<String>,
}

impl Hook {
    fn of(row: &Value) -> Result<Self, String> {
        let mut hook = Self::default();
        for (name, value) in row.as_object().ok_or("`hook` is not an object")? {
            match name.as_str() {
                "record" => {}
                "terminate_at" => hook.terminate_at = value.as_u64(),
                "sets_usage_to_zero" => hook.sets_usage_to_zero = value == true,
                "raises" | "raise" => hook.raises = value.as_str().map(str::to_owned),
                other => return Err(format!("unknown hook `{other}`")),
            }
        }
        Ok(hook)
    }
}

#[async_trait]
impl IterationHook for Hook {
    async fn completed(
        &self,
        context: &mut IterationContext<'_>,
    ) -> Result<(), cofferdam_agent::BoxError> {
        self.calls.lock().unwrap().push(json!({
            "iteration": context.iteration,
            "total_usage": context.total_usage,
            "messages": context.messages.len(),
            "is_streaming": context.is_streaming,
        }));
        *self.messages.lock().unwrap() = context.messages[1..].to_vec();
        if let Some(usage) = &mut context.total_usage
            && self.sets_usage_to_zero
        {
            *usage = cofferdam_agent::TokenUsage::default();
        }
        context.terminate = self.terminate_at == Some(u64::from(context.iteration));
        match &self.raises {
            Some(message) => Err(message.clone().into()),
            None => Ok(()),
        }
    }
}

async fn loop_run(row: &Row) -> Result<(), String> {
    let (model, tools) = (Model::of(row)?, Tools::new());
    let mut settings = settings(row, &tools)?;
    // If a run raises an error, its messages are those that a hook has seen.
    let raises = row.expect.get("raises").is_some();
    let hook = row.get("hook").map(Hook::of).transpose()?.or(raises.then(Hook::default));
    settings.iteration_completed =
        hook.clone().map(|hook| Arc::new(hook) as Arc<dyn IterationHook>);
    let agent = builder(row, &model, &tools)?
        .settings(settings)
        .build()
        .map_err(|error| error.to_string())?;
    let ran = finished(agent.run("hi").options(options(row)?), row.flag("stream")).await?;
    let model_calls: Vec<_> = model.seen().iter().map(super::agent::Seen::written).collect();
    let mut found = Map::new();
    found.insert("tool_log".to_owned(), tools.take_log().into());
    let model_calls = model_calls.into_iter().map(|call| in_words_of(row, call));
    let model_calls: Vec<_> = model_calls.collect();
    found.insert("model_calls".to_owned(), expected_calls(&row.expect, &model_calls).into());
    let hook = hook.unwrap_or_default();
    found.insert("hook_calls".to_owned(), hook.calls.lock().unwrap().clone().into());
    let (messages, usage, raises) = match ran {
        Ok(response) => (response.messages, json!(response.usage), Value::Null),
        Err(error) => (hook.messages.lock().unwrap().clone(), Value::Null, raised(&error)),
    };
    // Several errors are an aggregate; a single one is not.
    let raises = match row.expect.get("raises").is_some_and(Value::is_object) {
        true => json!({ "aggregate": raises }),
        false => raises,
    };
    let request = |_: &str, call_id: &str| format!("<request {call_id}>");
    found.insert("response".to_owned(), written(&messages, &request));
    found.insert("usage".to_owned(), usage);
    found.insert("raises".to_owned(), raises);
    compare(&row.expect, &found)
}

/// Returns a request in which the function that must be called is named as in the row.
fn in_words_of(row: &Row, mut call: Value) -> Value {
    let given = row.get("options").and_then(|options| options.get("tool_choice"));
    if let Some(given) = given.filter(|_| call["tool_choice"].is_object()) {
        call["tool_choice"] = given.clone();
    }
    call
}

/// Returns the model's requests with only the keys that the row has for them.
fn expected_calls(expect: &Value, calls: &[Value]) -> Vec<Value> {
    let expected = expect.get("model_calls").and_then(Value::as_array).cloned().unwrap_or_default();
    let keys = |index: usize| expected.get(index).or(expected.first()).and_then(Value::as_object);
    let shown = |(index, call): (usize, &Value)| match keys(index) {
        Some(keys) => {
            keys.keys().map(|key| (key.clone(), call[key].clone())).collect::<Map<_, _>>().into()
        }
        None => call.clone(),
    };
    calls.iter().enumerate().map(shown).collect()
}

fn settings_row(row: &Row) -> Result<(), String> {
    let given = row.get("settings").and_then(Value::as_object).cloned().unwrap_or_default();
    let found = match LoopSettings::from_json(&given) {
        Ok(_) => json!({"ok": true, "error": null}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    compare(&row.expect, found.as_object().ok_or("no object")?)
}

fn defaults(row: &Row) -> Result<(), String> {
    let found = LoopSettings::default().to_json();
    let expect = row.expect.get("settings").or(row.expect.get("defaults")).unwrap_or(&row.expect);
    compare(expect, found.as_object().ok_or("no object")?)
}

async fn timing(row: &Row) -> Result<(), String> {
    let calls = row.required("calls")?.as_array().ok_or("`calls` is not a list")?;
    let call = |(index, call): (usize, &Value)| {
        MessageContent::call(index.to_string(), "sleep", call.to_string())
    };
    let script =
        vec![calls.iter().enumerate().map(call).collect(), vec![MessageContent::text("k")]];
    let (model, tools) = (Model::new(script), Tools::new());
    let (toolset, _) = tools.toolset(&["sleep".to_owned()])?;
    let agent = Agent::builder(model).tools(toolset).settings(settings(row, &tools)?);
    let agent = agent.build().map_err(|error| error.to_string())?;
    let response = agent.run("hi").await.map_err(|error| error.to_string())?;
    let results: Vec<_> = results(&response).map(|result| result.result.clone()).collect();
    let found = json!({"log": tools.take_log(), "results": results});
    compare(&row.expect, found.as_object().ok_or("no object")?)
}

fn results(response: &Response) -> impl Iterator<Item = &FunctionResult> {
    response.messages.iter().flat_map(|message| message.results())
}

async fn cancel_during(row: &Row) -> Result<(), String> {
    let tool = row.text("tool")?;
    let arguments =
        json!({"tag": "a", "text": "a", "a": 1, "b": 1, "ms": 2000, "x": 1}).to_string();
    let tool = if tool == "slow" { "sleep" } else { tool };
    let model = Model::repeating(vec![MessageContent::call("1", tool, arguments)]);
    let tools = Tools::new();
    let (toolset, _) = tools.toolset(&[tool.to_owned()])?;
    let agent =
        Agent::builder(model.clone()).tools(toolset).build().map_err(|error| error.to_string())?;
    let cancellation = CancellationToken::new();
    let session = cofferdam_agent::Session::with_id("s");
    let run = agent.run("hi").session(&session).cancellation(cancellation.clone());
    let cancel = async {
        while tools.take_log().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cancellation.cancel();
    };
    let (ran, ()) = tokio::join!(run.into_future(), cancel);
    let asked = model.seen().len();
    let (raised, tool_results) = match &ran {
        Err(RunError::Cancelled) => ("cancelled".to_owned(), 0),
        Err(other) => (other.to_string(), 0),
        Ok(response) => ("nothing".to_owned(), results(response).count()),
    };
    let found =
        json!({"raised": raised, "tool_results": tool_results, "further_model_calls": asked - 1});
    compare(&row.expect, found.as_object().ok_or("no object")?)
}

/// Invoker, selected by a word of the rows.
struct Invoker(String);

#[async_trait]
impl Middleware<FunctionContext> for Invoker {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        if !self.0.contains("without calling") && self.0.contains("call") {
            next.run(context).await?;
            if self.0.contains("twice") {
                next.run(context).await?;
            }
        }
        if let Some(fixed) = self.0.split('"').nth(1) {
            context.result = Some(fixed.into());
        }
        Ok(())
    }
}

async fn invoker(row: &Row) -> Result<(), String> {
    let arguments = r#"{"a":1,"b":2}"#;
    let model = Model::new(vec![
        vec![MessageContent::call("1", "add", arguments)],
        vec![MessageContent::text("k")],
    ]);
    let tools = Tools::new();
    let (toolset, _) = tools.toolset(&["add".to_owned()])?;
    let invoker = Arc::new(Invoker(row.text("behaviour")?.to_owned()));
    let settings = LoopSettings { invoker: Some(invoker), ..LoopSettings::default() };
    let agent = Agent::builder(model).tools(toolset).settings(settings);
    let agent = agent.build().map_err(|error| error.to_string())?;
    let response = agent.run("hi").await.map_err(|error| error.to_string())?;
    let result = results(&response).next().map(|result| result.result.clone());
    let found = json!({"result": result, "tool_log": tools.take_log()});
    compare(&row.expect, found.as_object().ok_or("no object")?)
}

/// Tool that answers with a finished result.
struct Finished(FunctionResult);

#[async_trait]
impl Middleware<FunctionContext> for Finished {
    async fn process(
        &self,
        context: &mut FunctionContext,
        _: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        context.result = Some(FunctionValue::Finished(self.0.clone()));
        Ok(())
    }
}

async fn tool_returns_result(row: &Row) -> Result<(), String> {
    let call_id = row.text("call_id")?;
    let given = row.required("result")?;
    let of = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut finished =
        FunctionResult { call_id: of("id"), result: of("value"), ..FunctionResult::default() };
    // Marks the result: the mark is lost if the result is converted.
    finished.extra.insert("mark".to_owned(), true.into());
    let model = Model::new(vec![
        vec![MessageContent::call(call_id, "none", "{}")],
        vec![MessageContent::text("k")],
    ]);
    let (toolset, _) = Tools::new().toolset(&["none".to_owned()])?;
    let settings =
        LoopSettings { invoker: Some(Arc::new(Finished(finished))), ..LoopSettings::default() };
    let agent = Agent::builder(model).tools(toolset).settings(settings);
    let agent = agent.build().map_err(|error| error.to_string())?;
    let response = agent.run("hi").await.map_err(|error| error.to_string())?;
    let result = results(&response).next().ok_or("there is no result")?;
    let found = json!({
        "result": result.result,
        "id": result.call_id,
        "wrapped": !result.extra.contains_key("mark"),
    });
    compare(&row.expect, found.as_object().ok_or("no object")?)
}

async fn options_untouched(row: &Row) -> Result<(), String> {
    let given = options(row)?;
    let before = given.clone();
    let model = Model::repeating(vec![MessageContent::call("1", "none", "{}")]);
    let (toolset, _) = Tools::new().toolset(&["none".to_owned()])?;
    let settings = LoopSettings { max_iterations: 1, ..LoopSettings::default() };
    let agent = Agent::builder(model.clone()).tools(toolset).settings(settings);
    let agent = agent.build().map_err(|error| error.to_string())?;
    agent.run("hi").options(given.clone()).await.map_err(|error| error.to_string())?;
    let is_withdrawn =
        model.seen().last().is_some_and(|seen| seen.written()["tool_choice"] == "none");
    let is_same = given == before && is_withdrawn;
    let word = given.tool_choice.as_ref().map(|mode| match mode {
        ToolMode::Auto => "auto",
        ToolMode::None => "none",
        ToolMode::Required(_) => "required",
    });
    match &row.expect {
        Value::Object(expect) => {
            for (name, expected) in expect {
                let got = match name.as_str() {
                    "tool_choice" => json!(word),
                    "changed" | "caller_options_changed" => json!(!is_same),
                    "unchanged" | "untouched" | "same" => json!(is_same),
                    other => return Err(format!("unknown key `{other}` in `expect`")),
                };
                super::expect_same(name, expected, &got)?;
            }
            if is_same { Ok(()) } else { Err("the options were changed".to_owned()) }
        }
        expected => super::expect_same("untouched", expected, &json!(is_same)),
    }
}

async fn hook_raises(row: &Row) -> Result<(), String> {
    let message = row.get("message").or(row.get("raises")).or(row.get("error"));
    let message = message
        .or_else(|| row.get("hook")?.get("raises"))
        .and_then(Value::as_str)
        .unwrap_or("hook broke");
    let hook = Hook { raises: Some(message.to_owned()), ..Hook::default() };
    let model = Model::repeating(vec![MessageContent::call("1", "none", "{}")]);
    let tools = Tools::new();
    let (toolset, _) = tools.toolset(&["none".to_owned()])?;
    let settings =
        LoopSettings { iteration_completed: Some(Arc::new(hook)), ..LoopSettings::default() };
    let agent = Agent::builder(model.clone()).tools(toolset).settings(settings);
    let agent = agent.build().map_err(|error| error.to_string())?;
    let ran = finished(agent.run("hi"), row.flag("stream")).await?;
    let text = ran.err().map(|error| error.to_string());
    let found = json!({
        "raised": text,
        "raises": text,
        "error": text,
        "model_calls": model.seen().len(),
        "tool_log": tools.take_log(),
    });
    compare(&row.expect, found.as_object().ok_or("no object")?)
}

/// Checks which updates came before the end of the reply.
async fn stream_buffer(row: &Row) -> Result<(), String> {
    let mut names = names(row.get("tools"));
    if names.is_empty() {
        names.push("add".to_owned());
        if row.flag("gated") || row.flag("approval") || row.flag("needs_approval") {
            names.push("needs".to_owned());
        }
    }
    let updates = row.get("updates").and_then(Value::as_array).cloned().unwrap_or_default();
    let update = |update: &Value| match update.as_str().and_then(|update| update.split_once(' ')) {
        Some(("text", text)) => Ok(MessageContent::text(text)),
        Some(("call", tool)) => Ok(MessageContent::call("1", tool, r#"{"a":1,"b":2,"x":1}"#)),
        _ => Err(format!("unknown update {update}")),
    };
    let updates: Vec<_> = updates.iter().map(update).collect::<Result<_, String>>()?;
    let model = match row.get("model_script") {
        Some(_) => Model::of(row)?,
        None if !updates.is_empty() => Model::new(vec![updates]),
        None => Model::new(vec![
            vec![MessageContent::call("1", "add", r#"{"a":1,"b":2}"#), MessageContent::text("x")],
            vec![MessageContent::text("k")],
        ]),
    };
    let tools = Tools::new();
    let (toolset, _) = tools.toolset(&names)?;
    let approvals = names.iter().filter(|name| *name == "needs" || row.flag("gated"));
    let approvals =
        approvals.fold(Approvals::default(), |all, name| all.with(name, ApprovalMode::Always));
    // Middleware at the model observes the end of the stream: updates before it were not held back.
    let ended = Arc::new(Mutex::new(false));
    let agent = Agent::builder(model).tools(toolset).approvals(approvals).layer(ends(&ended));
    let agent = agent.build().map_err(|error| error.to_string())?;
    let mut stream = agent.run("hi").stream();
    let mut is_held_back = true;
    let (mut has_calls, mut early) = (false, 0);
    while let Some(update) = stream.next().await {
        let update = update.map_err(|error| error.to_string())?;
        if update.role != Some(Role::Tool)
            && update.deltas.iter().any(|delta| matches!(delta, Delta::Call { .. }))
        {
            has_calls = true;
            is_held_back &= *ended.lock().unwrap();
            early += u32::from(!*ended.lock().unwrap());
        }
    }
    if !has_calls {
        return Err("no update holds a call".to_owned());
    }
    match &row.expect {
        Value::Object(expect) => {
            for (name, expected) in expect {
                let got = match name.as_str() {
                    "held_back" | "held" | "buffered" | "calls_held_back" => json!(is_held_back),
                    "call_updates_before_end" => json!(early),
                    "passed_through" | "immediate" | "streamed" => json!(!is_held_back),
                    other => return Err(format!("unknown key `{other}` in `expect`")),
                };
                super::expect_same(name, expected, &got)?;
            }
            Ok(())
        }
        expected => super::expect_same("held back", expected, &json!(is_held_back)),
    }
}

/// Returns chat middleware that records the end of the reply's stream.
fn ends(ended: &Arc<Mutex<bool>>) -> cofferdam_agent::Layer {
    struct Ends(Arc<Mutex<bool>>);
    type Context = cofferdam_agent::middleware::ChatContext;
    #[async_trait]
    impl Middleware<Context> for Ends {
        async fn process(
            &self,
            context: &mut Context,
            next: Next<'_, Context>,
        ) -> Result<(), cofferdam_agent::middleware::Signal<cofferdam_agent::Reply>> {
            use cofferdam_agent::middleware::ChatResult;
            next.run(context).await?;
            *self.0.lock().unwrap() = false;
            if let Some(ChatResult::Stream(stream)) = context.result.take() {
                let ended = Arc::clone(&self.0);
                // The last update of a reply holds only its usage.
                let stream = stream.map_updates(move |update| {
                    *ended.lock().unwrap() |= update.deltas.is_empty();
                    update
                });
                context.result = Some(ChatResult::Stream(stream));
            }
            Ok(())
        }
    }
    cofferdam_agent::Layer::chat(Ends(Arc::clone(ended)))
}

async fn budget(row: &Row) -> Result<(), String> {
    let usages = row.required("usages")?.as_array().ok_or("`usages` is not a list")?;
    let usages: Vec<_> = usages.iter().map(super::agent::usage_of).collect::<Result<_, _>>()?;
    let last = usages.len();
    let model = Model::repeating(vec![MessageContent::call("1", "none", "{}")]).with_usages(usages);
    let (toolset, _) = Tools::new().toolset(&["none".to_owned()])?;
    // The model goes on as long as there are usages: the row says whether the run ends before.
    let rounds = u32::try_from(last).map_err(|error| error.to_string())?;
    let settings = LoopSettings {
        iteration_completed: Some(Arc::new(move |context: &mut IterationContext<'_>| {
            context.terminate = context.iteration + 1 >= rounds;
            Ok(())
        })),
        ..LoopSettings::default()
    };
    let agent = Agent::builder(model.clone()).tools(toolset).settings(settings);
    let agent = agent.build().map_err(|error| error.to_string())?;
    let budget = nested(row.required("budget")?, None)?;
    let ran = finished(agent.run("hi").budget(budget), row.flag("stream")).await?;
    let found = json!({
        "model_calls": model.seen().len(),
        "error": ran.err().map(|error| error.to_string()),
    });
    compare(&row.expect, found.as_object().ok_or("no object")?)
}

/// Returns the innermost of nested budgets.
fn nested(row: &Value, outer: Option<&TokenBudget>) -> Result<TokenBudget, String> {
    let limit = |name: &str| row.get(name).and_then(Value::as_u64);
    let limits =
        BudgetLimits { total: limit("total"), input: limit("input"), output: limit("output") };
    let budget = outer.map_or_else(|| TokenBudget::new(limits), |outer| outer.inner(limits));
    if let Some(total) = limit("used_before") {
        budget.count(cofferdam_agent::TokenUsage { total, ..Default::default() });
    }
    match row.get("inner") {
        Some(inner) => nested(inner, Some(&budget)),
        None => Ok(budget),
    }
}

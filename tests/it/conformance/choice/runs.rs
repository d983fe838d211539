//! Rows about the effect of a behavior on a run (`CHOICE-8`, `CHOICE-14`, `CHOICE-15`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_agent::choice::FunctionName;
use cofferdam_agent::{
    Agent, ChoiceBehavior, FunctionCall, FunctionResult, MessageContent, Response,
};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, Toolset};
use serde_json::{Value, json};

use super::super::Row;
use super::super::agent::{Model, block_on, compare, finished};
use super::{behavior, index, object, texts};

/// Observations of a run.
struct Seen {
    response: Response,
    /// Functions that ran, in order.
    ran: Vec<String>,
    /// Maximum number of functions that ran concurrently.
    together: usize,
    model_calls: usize,
}

impl Seen {
    fn results(&self) -> Vec<FunctionResult> {
        self.response.messages.iter().flat_map(|message| message.results()).cloned().collect()
    }
}

/// Returns the registry of a row, or two functions of one plugin.
fn registered(row: &Row) -> Value {
    row.get("registry").cloned().unwrap_or_else(|| json!({"MyPlugin": ["Function1", "Function2"]}))
}

/// Runs a model that makes these calls, with the functions of a registry and a behavior.
fn seen(
    registry: &Value,
    behavior: ChoiceBehavior,
    calls: &[&str],
    is_streaming: bool,
) -> Result<Seen, String> {
    let ran = Arc::<Mutex<Vec<String>>>::default();
    let counters = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let mut toolset = Toolset::new();
    for (plugin, names) in registry.as_object().ok_or("`registry` is not an object")? {
        let mut functions = Functions::new(plugin.as_str());
        for name in texts(names)? {
            let (ran, counters, called) =
                (Arc::clone(&ran), Arc::clone(&counters), name.to_owned());
            let declaration = Declaration::new(name, "A function.", r#"{"type":"object"}"#);
            let with = functions.with(declaration, move |_, _| {
                ran.lock().unwrap().push(called.clone());
                let counters = Arc::clone(&counters);
                async move {
                    let (running, most) = &*counters;
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(json!("ran"))
                }
            });
            functions = with.map_err(|error| error.to_string())?;
        }
        toolset.add(Arc::new(functions)).map_err(|error| error.to_string())?;
    }
    let calls = calls.iter().enumerate().map(|(number, name)| {
        let name = FunctionName::new(*name);
        MessageContent::call(number.to_string(), name.function(), "{}")
    });
    let model = Model::new(vec![calls.collect(), vec![MessageContent::text("done")]]);
    let agent =
        Agent::builder(model.clone()).tools(toolset).build().map_err(|error| error.to_string())?;
    let run = agent.run("hi").choice(behavior);
    let response = block_on(finished(run, is_streaming))?.map_err(|error| error.to_string())?;
    let ran = ran.lock().unwrap().clone();
    Ok(Seen {
        response,
        ran,
        together: counters.1.load(Ordering::SeqCst),
        model_calls: model.seen().len(),
    })
}

/// Runs a reply with several calls and checks whether they ran concurrently.
pub(super) fn concurrent(row: &Row) -> Result<(), String> {
    let options = row.get("options").cloned().unwrap_or_else(|| json!({}));
    let behavior = ChoiceBehavior::from_value(&json!({"type": "auto", "options": options}));
    let behavior = behavior.map_err(|error| error.to_string())?;
    let calls = vec!["Function1"; index(row, "calls")?];
    for is_streaming in [false, true] {
        let seen = seen(&registered(row), behavior.clone(), &calls, is_streaming)?;
        let results = seen.results();
        if seen.ran != calls
            || results.len() != calls.len()
            || results.iter().any(|result| result.result != "ran")
        {
            return Err(format!("{:?} ran, with {results:?}", seen.ran));
        }
        compare(
            &row.expect,
            &object(json!({"together": seen.together > 1, "results": results.len()}))?,
        )?;
    }
    Ok(())
}

/// Calls a registered function that was not advertised to the model.
pub(super) fn call_unadvertised(row: &Row) -> Result<(), String> {
    let registry = registered(row);
    let all: Vec<_> = registry.as_object().into_iter().flatten().collect();
    let all: Vec<String> = all
        .into_iter()
        .flat_map(|(plugin, names)| {
            names.as_array().into_iter().flatten().map(move |name| (plugin, name))
        })
        .map(|(plugin, name)| format!("{plugin}.{}", name.as_str().unwrap_or_default()))
        .collect();
    let behavior = match given(row)? {
        Some(behavior) => behavior,
        None => match row.get("advertised").or_else(|| row.get("functions")) {
            Some(advertised) => ChoiceBehavior::auto().functions(texts(advertised)?),
            None => ChoiceBehavior::auto().functions(all.first().map(String::as_str)),
        },
    };
    let words = ["call", "calls", "called", "function", "name", "tool"];
    let call = words.into_iter().find_map(|name| row.get(name));
    let call = match call {
        Some(Value::String(name)) => name.clone(),
        Some(other) => return Err(format!("cannot call {other}")),
        None => all.last().cloned().unwrap_or_default(),
    };
    for is_streaming in [false, true] {
        let seen = seen(&registry, behavior.clone(), &[&call], is_streaming)?;
        let results = seen.results();
        let result = results.first().ok_or("there is no result")?;
        if row.expect.is_string() {
            super::expect_same("result", &row.expect, &json!(result.result))?;
            continue;
        }
        let has_run = !seen.ran.is_empty();
        let found = json!({
            "result": result.result, "text": result.result, "shown": result.result, "error": result.result,
            "is_error": result.is_error, "ran": has_run, "runs": has_run, "executed": has_run, "invoked": has_run, "called": has_run,
            "model_calls": seen.model_calls,
        });
        compare(&row.expect, &object(found)?)?;
    }
    Ok(())
}

/// Checks calls that the caller of a run makes.
pub(super) fn manual(row: &Row) -> Result<(), String> {
    let behavior = given(row)?.unwrap_or_else(ChoiceBehavior::auto).auto_invoke(false);
    let calls = match row.get("calls") {
        Some(Value::Array(_)) => texts(row.required("calls")?)?,
        Some(Value::Number(_)) => vec!["Function1"; index(row, "calls")?],
        Some(other) => return Err(format!("cannot make the calls {other}")),
        None => vec![row.get("call").and_then(Value::as_str).unwrap_or("Function1")],
    };
    for is_streaming in [false, true] {
        let seen = seen(&registered(row), behavior.clone(), &calls, is_streaming)?;
        let returned: Vec<&FunctionCall> =
            seen.response.messages.iter().flat_map(|message| message.calls()).collect();
        let names: Vec<_> =
            calls.iter().map(|call| FunctionName::new(*call).function().to_owned()).collect();
        let is_returned =
            returned.iter().map(|call| &call.name).eq(&names) && seen.results().is_empty();
        let has_run = !seen.ran.is_empty();
        let found = json!({
            "executed": has_run, "ran": has_run, "invoked": has_run, "called": has_run,
            "returned": is_returned, "calls_returned": is_returned, "returned_to_caller": is_returned,
            "unexecuted": is_returned && !has_run,
            "calls_returned_unexecuted": is_returned && !has_run,
            "calls": returned.len(), "results": seen.results().len(), "model_calls": seen.model_calls,
        });
        if !is_returned || has_run || seen.model_calls != 1 {
            return Err(format!("the calls were not handed to the caller: {found}"));
        }
        compare(&row.expect, &object(found)?)?;
    }
    Ok(())
}

/// Returns the behavior of a row, if it has one.
fn given(row: &Row) -> Result<Option<ChoiceBehavior>, String> {
    match row.get("json").or_else(|| row.get("code")).or_else(|| row.get("yaml")) {
        Some(_) => behavior(row)?.map(Some),
        None => Ok(None),
    }
}

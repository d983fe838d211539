//! Rows of calls in order: one call in each reply of the model.

use std::sync::{Arc, Mutex};

use cofferdam_agent::{MessageContent, Response};
use cofferdam_labels::{LabelPolicy, context_of};
use cofferdam_tool::ToolSource;
use cofferdam_tool::label::{StatedBy, StatedLabels};
use serde_json::{Map, Value, json};

use super::read;
use super::runs::{Scene, Strange, VALUE, is_reference};
use crate::conformance::agent::{Model, block_on, compare};
use crate::conformance::{Row, results};
use crate::module::{Answer, Definition, Item, Module};

/// A call of a row: the tool, and the user's answer to an approval.
struct Call {
    tool: String,
    approved: Option<bool>,
}

pub(super) fn run(row: &Row) -> Result<(), String> {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let calls = calls(row)?;
    let mut scene = Scene::new();
    let stated = row.get("tools").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut names: Vec<&str> = stated.keys().map(String::as_str).collect();
    // A called tool without stated labels is a tool of the program.
    names.extend(
        calls.iter().map(|call| call.tool.as_str()).filter(|name| !stated.contains_key(*name)),
    );
    names.dedup();
    for (index, name) in names.iter().enumerate() {
        let is_new = !names.iter().take(index).any(|earlier| earlier == name);
        if is_new && *name != "inspect_variable" && *name != "quarantined_llm" {
            let labels = stated.get(*name).map_or(Ok(StatedLabels::default()), read)?;
            scene.add_source(source(name, labels, &log)?)?;
        }
    }
    // Plugins have a runtime of their own.
    block_on(played(row, &calls, &scene, &log))
}

async fn played(
    row: &Row,
    calls: &[Call],
    scene: &Scene,
    log: &Mutex<Vec<String>>,
) -> Result<(), String> {
    let script: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(index, call)| vec![MessageContent::call(index.to_string(), local(&call.tool), "{}")])
        .collect();
    let model = Model::new(script);
    let agent = scene.agent(policy(row)?, model.clone())?;
    let mut requested = Vec::new();
    let mut responses = Vec::new();
    let mut next = agent.run("hi");
    loop {
        let response = next.session(&scene.session).await.map_err(|error| error.to_string())?;
        let requests: Vec<_> = response.approval_requests().cloned().collect();
        responses.push(response);
        let mut answers = Vec::new();
        for request in &requests {
            let index: usize =
                request.function_call.call_id.parse().map_err(|_| "an id is no index")?;
            let call = calls.get(index).ok_or("a call that is none")?;
            requested.push(call.tool.clone());
            match call.approved {
                Some(true) => answers.push(request.approve()),
                Some(false) => answers.push(request.refuse(None)),
                None => {}
            }
        }
        if answers.is_empty() {
            break;
        }
        next = agent.run(answers);
    }
    let ran = log.lock().unwrap().clone();
    let asked = model.seen().len();
    compare_all(row, calls, &responses, ran, asked, &requested, scene)
}

fn compare_all(
    row: &Row,
    calls: &[Call],
    responses: &[Response],
    ran: Vec<String>,
    asked: usize,
    requested: &[String],
    scene: &Scene,
) -> Result<(), String> {
    let (mut hidden, mut blocked, mut loop_ends) = (Vec::new(), Value::Null, false);
    let results = responses
        .iter()
        .flat_map(|response| &response.messages)
        .flat_map(|message| message.results());
    for result in results {
        let index: usize = result.call_id.parse().map_err(|_| "an id is no index")?;
        let call = calls.get(index).ok_or("a result of nothing")?;
        if is_reference(&result.result).is_some() {
            if result.result.contains(VALUE) {
                return Err(format!("the value is shown: {}", result.result));
            }
            hidden.push(call.tool.clone());
        } else if result.is_error {
            blocked = serde_json::from_str(&result.result).map_err(|_| result.result.clone())?;
            if blocked["function"] == local(&call.tool) {
                blocked["function"] = call.tool.clone().into();
            }
            // The model is not called again.
            loop_ends = asked == index + 1;
        }
    }
    let context = context_of(&scene.session);
    let mut found = Map::new();
    // Calls are logged under the local names of tools.
    let row_name =
        |ran: String| calls.iter().map(|call| &call.tool).find(|name| local(name) == ran).cloned();
    found.insert("ran".to_owned(), json!(ran.into_iter().map(row_name).collect::<Vec<_>>()));
    found.insert("hidden".to_owned(), json!(hidden));
    found.insert("blocked".to_owned(), blocked);
    found.insert("loop_ends".to_owned(), loop_ends.into());
    found.insert("context".to_owned(), json!(context.integrity));
    for name in ["confidentiality", "context_confidentiality"] {
        found.insert(name.to_owned(), json!(context.confidentiality));
    }
    found.insert("approval_requested".to_owned(), json!(requested.last()));
    found.insert("approvals_requested".to_owned(), json!(requested));
    if row.expect.get("approval_requested").is_some_and(Value::is_array) {
        found.insert("approval_requested".to_owned(), json!(requested));
    }
    if let Some(false) = row.expect.get("approval_requested").and_then(Value::as_bool) {
        found.insert("approval_requested".to_owned(), (!requested.is_empty()).into());
    }
    compare(&row.expect, &found)
}

/// Returns the tool of a row: a real plugin, a tool of a server, or a function of the program.
fn source(
    name: &str,
    labels: StatedLabels,
    log: &Arc<Mutex<Vec<String>>>,
) -> Result<Arc<dyn ToolSource>, String> {
    let strange = Strange { labels, log: Arc::clone(log), ..Strange::named(&local(name)) };
    if name.starts_with("plugin") {
        let plugins = results::world();
        let definitions = vec![Definition::new(&local(name))];
        let module = Module {
            definitions,
            answer: Answer::Contents(vec![Item::Text(VALUE.as_bytes())]),
            ..Module::default()
        };
        let fixture = plugins.run(plugins.module(module));
        let plugin =
            fixture.toolset.source(&local(name)).cloned().ok_or("the plugin has no such tool")?;
        return Ok(Arc::new(Noted { plugin, strange }));
    }
    let is_strangers = name.starts_with("mcp") || name.starts_with("server");
    let by = if is_strangers { StatedBy::ThirdParty } else { StatedBy::Program };
    Ok(Arc::new(Strange { by, ..strange }))
}

/// Plugin whose calls are logged.
struct Noted {
    plugin: Arc<dyn ToolSource>,
    strange: Strange,
}

#[async_trait::async_trait]
impl ToolSource for Noted {
    fn name(&self) -> &str {
        self.plugin.name()
    }

    fn definitions(&self) -> Arc<[Arc<cofferdam_tool::ToolDefinition>]> {
        self.plugin.definitions()
    }

    fn labels(&self, _: &cofferdam_tool::ToolName) -> StatedLabels {
        self.strange.labels.clone()
    }

    fn states_for(&self) -> StatedBy {
        self.plugin.states_for()
    }

    async fn invoke(
        &self,
        call: cofferdam_tool::ToolCall<'_>,
        context: &cofferdam_tool::CallContext,
    ) -> cofferdam_tool::Completion {
        self.strange.log.lock().unwrap().push(call.tool.name.to_string());
        self.plugin.invoke(call, context).await
    }
}

/// Returns a valid name for a tool of a row.
fn local(name: &str) -> String {
    name.replace(' ', "_")
}

fn calls(row: &Row) -> Result<Vec<Call>, String> {
    let written = row.required("calls")?.as_array().ok_or("`calls` is not a list")?;
    let call = |written: &Value| {
        let text = written.as_str().ok_or("a call is not text")?;
        let (tool, said) = match text.split_once(" (") {
            Some((tool, said)) => (tool, Some(said.trim_end_matches(')'))),
            None => (text, None),
        };
        let approved = match said {
            None => None,
            Some("approved") => Some(true),
            Some("refused" | "rejected" | "denied" | "not approved") => Some(false),
            Some(other) => return Err(format!("unknown word `{other}`")),
        };
        Ok(Call { tool: tool.to_owned(), approved })
    };
    written.iter().map(call).collect()
}

fn policy(row: &Row) -> Result<Option<LabelPolicy>, String> {
    let (mut policy, mut is_on) = (LabelPolicy::new(), false);
    for (name, value) in row.get("settings").and_then(Value::as_object).into_iter().flatten() {
        policy = match name.as_str() {
            "policy" => {
                is_on = read(value)?;
                policy
            }
            "auto_hide_untrusted" => policy.auto_hide_untrusted(read(value)?),
            "approval_on_violation" => policy.approval_on_violation(read(value)?),
            "allow_untrusted_tools" => {
                let tools: Vec<String> = read(value)?;
                tools.iter().fold(policy, |policy, tool| policy.allow_untrusted_tool(local(tool)))
            }
            other => return Err(format!("unknown setting `{other}`")),
        };
    }
    Ok(is_on.then_some(policy))
}

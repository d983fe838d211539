//! Small runs with a label policy.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cofferdam_agent::{Agent, FunctionResult, MessageContent, ScriptedClient, Session};
use cofferdam_labels::{LabelDecision, LabelPolicy, context_of};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::label::{Label, StatedBy, StatedLabels};
use cofferdam_tool::{
    CallContext, CallRecord, Completion, Outcome, Output, ToolCall, ToolDefinition, ToolName,
    ToolSource, Toolset,
};
use serde_json::{Map, Value, json};

use crate::conformance::agent::{Model, compare};

/// Result of tools, which must stay hidden.
pub(super) const VALUE: &str = "the hidden value";

/// A third-party tool.
#[derive(Clone)]
pub(super) struct Strange {
    pub(super) name: String,
    pub(super) definition: Option<Arc<ToolDefinition>>,
    pub(super) by: StatedBy,
    /// Labels stated about the tool.
    pub(super) labels: StatedLabels,
    /// Label of its results.
    pub(super) said: Option<Label>,
    /// Log of calls.
    pub(super) log: Arc<Mutex<Vec<String>>>,
}

impl Strange {
    /// Creates a third-party tool without stated labels.
    pub(super) fn named(name: &str) -> Self {
        let declaration = Declaration::new(name, "Does what a row needs.", r#"{"type":"object"}"#);
        Self {
            name: format!("source of {name}"),
            definition: declaration.compile().ok().map(Arc::new),
            by: StatedBy::ThirdParty,
            labels: StatedLabels::default(),
            said: None,
            log: Arc::default(),
        }
    }

    pub(super) fn tool(&self) -> Result<&ToolName, String> {
        Ok(&self.definition.as_ref().ok_or("the tool has a name that is none")?.name)
    }
}

#[async_trait]
impl ToolSource for Strange {
    fn name(&self) -> &str {
        &self.name
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        self.definition.iter().cloned().collect()
    }

    fn labels(&self, _: &ToolName) -> StatedLabels {
        self.labels.clone()
    }

    fn states_for(&self) -> StatedBy {
        self.by
    }

    async fn invoke(&self, call: ToolCall<'_>, _: &CallContext) -> Completion {
        self.log.lock().unwrap().push(call.tool.name.to_string());
        let mut record = CallRecord::default();
        record.label.clone_from(&self.said);
        Completion::new(Outcome::Ok(Output::Value(json!(VALUE))), record)
    }
}

/// A session and tools.
pub(super) struct Scene {
    pub(super) session: Session,
    toolset: Toolset,
}

impl Scene {
    pub(super) fn new() -> Self {
        Self { session: Session::with_id("s"), toolset: Toolset::new() }
    }

    pub(super) fn add(&mut self, source: Strange) -> Result<(), String> {
        self.add_source(Arc::new(source))
    }

    pub(super) fn add_source(&mut self, source: Arc<dyn ToolSource>) -> Result<(), String> {
        self.toolset.add(source).map_err(|error| error.to_string())
    }

    /// Hides values with these labels directly in the stored session: rows also use labels with
    /// which no result is hidden.
    pub(super) fn hidden(&self, labels: &[Label]) -> Vec<String> {
        let ids: Vec<_> = (0..labels.len()).map(|index| format!("var_{index:016x}")).collect();
        let entry = |(id, label): (&String, &Label)| json!({"id": id, "bytes": VALUE.len(), "label": label});
        let entries: Vec<_> = ids.iter().zip(labels).map(entry).collect();
        self.session.set_part("labels", json!({ "variables": entries }));
        for id in &ids {
            self.session.set_part(&format!("label_variable:{id}"), json!({ "text": VALUE }));
        }
        ids
    }

    pub(super) fn agent(&self, policy: Option<LabelPolicy>, model: Model) -> Result<Agent, String> {
        let builder = Agent::builder(model).tools(self.toolset.clone());
        let builder = match policy {
            Some(policy) => builder.guard(policy),
            None => builder,
        };
        builder.build().map_err(|error| error.to_string())
    }

    /// Returns the result of one call by a model.
    pub(super) async fn call(
        &self,
        policy: LabelPolicy,
        tool: &str,
        arguments: &Value,
    ) -> Result<FunctionResult, String> {
        let model = Model::new(vec![vec![MessageContent::call("1", tool, arguments.to_string())]]);
        let run = self.agent(Some(policy), model)?.run("hi").session(&self.session);
        let response = run.await.map_err(|error| error.to_string())?;
        let result = response.messages.iter().find_map(|message| message.results().next().cloned());
        result.ok_or_else(|| "there is no result".to_owned())
    }

    /// Returns the label of a call's result.
    pub(super) async fn label_of_call(
        &self,
        policy: LabelPolicy,
        tool: &str,
        arguments: &Value,
    ) -> Result<Label, String> {
        let result = self.call(policy, tool, arguments).await?;
        if result.is_error {
            return Err(format!("the call fails: {}", result.result));
        }
        super::read(result.extra.get("security_label").ok_or("the result has no label")?)
    }
}

pub(super) fn is_reference(text: &str) -> Option<Map<String, Value>> {
    let Ok(Value::Object(members)) = serde_json::from_str(text) else { return None };
    members.get("type").is_some_and(|kind| kind == "variable_reference").then_some(members)
}

/// Compares the model's view of a hidden result, key by key.
pub(super) async fn reference_shape(expect: &Value) -> Result<(), String> {
    let mut scene = Scene::new();
    scene.add(Strange::named("tool"))?;
    let result = scene.call(LabelPolicy::new(), "tool", &json!({})).await?;
    if result.result.contains(VALUE) {
        return Err(format!("the value is shown: {}", result.result));
    }
    let reference =
        is_reference(&result.result).ok_or_else(|| format!("no reference: {}", result.result))?;
    let keys = |members: &Map<String, Value>| json!(members.keys().collect::<Vec<_>>());
    let label = reference["security_label"].as_object().ok_or("the label is not an object")?;
    let id = reference["variable_id"].as_str().ok_or("the id is not text")?;
    let digits = id.strip_prefix("var_").ok_or("the id does not begin with var_")?;
    let is_hexadecimal = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if digits.len() != 16 || !is_hexadecimal {
        return Err(format!("{id} is not an id"));
    }
    let mut found = reference.clone();
    found.insert("keys".to_owned(), keys(&reference));
    for name in ["label_keys", "security_label_keys"] {
        found.insert(name.to_owned(), keys(label));
    }
    found.insert("id_prefix".to_owned(), "var_".into());
    found.insert("variable_id_prefix".to_owned(), "var_".into());
    for name in ["id_digits", "hex_digits", "id_hex_digits"] {
        found.insert(name.to_owned(), digits.len().into());
    }
    found.insert("id_length".to_owned(), id.len().into());
    let expected = expect.as_object().ok_or("`expect` is not an object")?;
    for (name, expected) in expected {
        // Keys and placeholders stand for random values.
        if matches!(name.as_str(), "variable_id" | "id" | "id_pattern" | "variable_id_pattern") {
            let pattern = expected.as_str().unwrap_or_default();
            let bare = pattern.trim_start_matches('^').trim_end_matches('$');
            if ![
                "var_[0-9a-f]{16}",
                "var_[a-f0-9]{16}",
                "var_<16 hex>",
                "var_<16 hexadecimal digits>",
            ]
            .contains(&bare)
            {
                return Err(format!("unknown pattern `{pattern}`"));
            }
            found.insert(name.clone(), expected.clone());
        }
        if name == "security_label" && expected.is_array() {
            found.insert(name.clone(), keys(label));
        }
        if name == "description" && matches!(expected, Value::Bool(true)) {
            let is_there = reference["description"].as_str().is_some_and(|text| !text.is_empty());
            found.insert(name.clone(), is_there.into());
        }
        if name == "keys" || name.ends_with("label_keys") {
            let given: Vec<_> = expected.as_array().into_iter().flatten().collect();
            let known = found[name].as_array().cloned().unwrap_or_default();
            if given.len() == known.len() && given.iter().all(|name| known.contains(name)) {
                found.insert(name.clone(), expected.clone());
            }
        }
    }
    compare(expect, &found)
}

/// Returns the tools that a model sees without any of its own.
pub(super) async fn offered(policy: bool) -> Result<Value, String> {
    let model = Model::new(vec![vec![MessageContent::text("done")]]);
    let scene = Scene::new();
    let agent = scene.agent(policy.then(LabelPolicy::new), model.clone())?;
    agent.run("hi").session(&scene.session).await.map_err(|error| error.to_string())?;
    Ok(json!(model.seen().first().ok_or("the model was not asked")?.tools))
}

/// Inspects a hidden value and returns the resulting context.
pub(super) async fn inspect(label: &Label) -> Result<Map<String, Value>, String> {
    let scene = Scene::new();
    let ids = scene.hidden(std::slice::from_ref(label));
    let arguments = json!({ "variable_id": ids[0] });
    let result = scene.call(LabelPolicy::new(), "inspect_variable", &arguments).await?;
    if result.is_error || result.result != VALUE {
        return Err(format!("the value is not shown: {}", result.result));
    }
    let mut found = of_context(&scene.session);
    for name in ["value", "result", "shown"] {
        found.insert(name.to_owned(), result.result.clone().into());
    }
    found.insert("hidden".to_owned(), false.into());
    Ok(found)
}

fn of_context(session: &Session) -> Map<String, Value> {
    let context = context_of(session);
    let mut found = Map::new();
    found.insert("context".to_owned(), json!(context.integrity));
    found.insert("context_integrity".to_owned(), json!(context.integrity));
    found.insert("integrity".to_owned(), json!(context.integrity));
    for name in ["confidentiality", "context_confidentiality"] {
        found.insert(name.to_owned(), json!(context.confidentiality));
    }
    found.insert("principals".to_owned(), json!(context.principals));
    found
}

/// Asks a quarantined model about hidden values and returns the resulting context.
pub(super) async fn quarantined(labels: &[Label]) -> Result<Map<String, Value>, String> {
    let scene = Scene::new();
    let ids = scene.hidden(labels);
    let quarantine = ScriptedClient::new([cofferdam_agent::Reply::text("the answer")]).recording();
    let policy = LabelPolicy::new().quarantine(quarantine.clone());
    let arguments = json!({"prompt": "What is it?", "variable_ids": ids});
    let result = scene.call(policy, "quarantined_llm", &arguments).await?;
    let requests = quarantine.requests();
    let [request] = requests.as_slice() else {
        return Err(format!("{} model calls", requests.len()));
    };
    let sent: String = request.messages.iter().map(|message| message.text()).collect();
    if !sent.contains("What is it?") || labels.iter().any(|_| !sent.contains(VALUE)) {
        return Err(format!("the model was asked something else: {sent}"));
    }
    let hidden = is_reference(&result.result).is_some() && !result.result.contains("the answer");
    let label: Label =
        super::read(result.extra.get("security_label").ok_or("the result has no label")?)?;
    let mut found = super::written(&label);
    found.insert("hidden".to_owned(), hidden.into());
    let tools: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    found.insert("tools".to_owned(), json!(tools));
    found.insert("has_tools".to_owned(), (!tools.is_empty()).into());
    found.insert("tools_offered".to_owned(), tools.len().into());
    let result = json!({"integrity": label.integrity, "confidentiality": label.confidentiality});
    found.insert("result".to_owned(), result);
    found.insert("model_calls".to_owned(), 1.into());
    found.insert("context".to_owned(), json!(context_of(&scene.session).integrity));
    Ok(found)
}

/// Checks the message to a model about a variable that the session does not have.
pub(super) async fn unknown(expect: &Value, id: &str, is_of_another: bool) -> Result<(), String> {
    let mut scene = Scene::new();
    let mut id = id.to_owned();
    if is_of_another {
        scene.add(Strange::named("tool"))?;
        let result = scene.call(LabelPolicy::new(), "tool", &json!({})).await?;
        let reference = is_reference(&result.result).ok_or("nothing is hidden")?;
        id = reference["variable_id"].as_str().unwrap_or_default().to_owned();
        scene.session = Session::with_id("another");
    }
    let result =
        scene.call(LabelPolicy::new(), "inspect_variable", &json!({ "variable_id": id })).await?;
    let shown: Value = serde_json::from_str(&result.result).map_err(|error| error.to_string())?;
    let mut found = shown.as_object().cloned().ok_or("the result is not an object")?;
    found.insert("result".to_owned(), shown);
    // The rows' fixed word for the message of `LBL-14`.
    let expect = match expect["error"] == "unknown variable" {
        true => json!({"error": "Unknown variable '<id>'"}),
        false => expect.clone(),
    };
    let expect = expect.to_string().replace("<id>", &id);
    let expect: Value = serde_json::from_str(&expect).map_err(|error| error.to_string())?;
    compare(&expect, &found)
}

/// Checks the audit of a decision.
pub(super) async fn audit(word: &str, expect: &Value) -> Result<(), String> {
    let wanted = match word {
        "label given" | "labelled" | "label_given" | "label" | "given" => "labelled",
        "hidden" => "hidden",
        "blocked" => "blocked",
        "approved" => "approved",
        "approval requested" | "approval_requested" => "approval_requested",
        other => return Err(format!("unknown decision `{other}`")),
    };
    let made = decisions(wanted).await?;
    let of_word: Vec<_> = made.iter().filter(|line| line["decision"] == wanted).collect();
    let decision = of_word.first().ok_or_else(|| format!("nothing was {wanted}: {made:?}"))?;
    let has = |name: &Value| match name.as_str() {
        Some("labels") => decision.get("label").is_some() && decision.get("context").is_some(),
        Some("context_label") => decision.get("context").is_some(),
        Some("function") => decision.get("tool").is_some(),
        Some(name) => decision.get(name).is_some(),
        None => false,
    };
    let all = json!(made).to_string();
    let expected = expect.as_object().ok_or("`expect` is not an object")?;
    for (name, expected) in expected {
        match name.as_str() {
            "has" => {
                let names = expected.as_array().ok_or("`has` is not a list")?;
                if let Some(missing) = names.iter().find(|name| !has(name)) {
                    return Err(format!("{missing} is missing in {decision}"));
                }
            }
            "has_value" if *expected == json!(all.contains(VALUE)) => {}
            "has_value" => return Err(format!("the value is in {all}")),
            "decision" if decision["decision"] == *expected => {}
            other => return Err(format!("unknown key `{other}`, or not as expected: {expected}")),
        }
    }
    Ok(())
}

/// Returns all decisions of a run that makes such a decision.
async fn decisions(wanted: &str) -> Result<Vec<Value>, String> {
    let made: Arc<Mutex<Vec<Value>>> = Arc::default();
    let to = Arc::clone(&made);
    let hides = matches!(wanted, "hidden" | "labelled");
    let asks = wanted.starts_with("appro");
    let policy = LabelPolicy::new()
        .auto_hide_untrusted(hides)
        .approval_on_violation(asks)
        .audit(move |decision: &LabelDecision<'_>| to.lock().unwrap().push(decision.to_json()));
    let mut scene = Scene::new();
    scene.add(Strange::named("fetch"))?;
    scene.add(Strange { by: StatedBy::Program, ..Strange::named("send") })?;
    let calls = ["fetch", "send"].iter().enumerate();
    let script = calls
        .map(|(index, tool)| vec![MessageContent::call(index.to_string(), *tool, "{}")])
        .collect();
    let agent = scene.agent(Some(policy), Model::new(script))?;
    let response =
        agent.run("hi").session(&scene.session).await.map_err(|error| error.to_string())?;
    let answers: Vec<_> = response.approval_requests().map(|request| request.approve()).collect();
    if !answers.is_empty() {
        agent.run(answers).session(&scene.session).await.map_err(|error| error.to_string())?;
    }
    Ok(std::mem::take(&mut *made.lock().unwrap()))
}

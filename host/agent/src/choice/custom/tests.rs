use std::sync::Mutex;

use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, Toolset};
use serde_json::{Value, json};

use super::*;
use crate::choice::{
    AUTO_INVOKED_REQUESTS_MAX, ChoiceBehavior, ChoiceKind, ChoiceOptions, FunctionRegistry,
    RegisteredFunction,
};
use crate::{AfterScript, Agent, AgentBuilder, Response, ScriptedClient, ToolMode};

/// A choice that a function makes.
struct Chosen<F>(F);

impl<F> FunctionChoice for Chosen<F>
where
    F: Fn(&ChoiceContext<'_>) -> Result<ChoiceConfiguration, ChoiceError> + Send + Sync,
{
    fn configure(&self, context: &ChoiceContext<'_>) -> Result<ChoiceConfiguration, ChoiceError> {
        (self.0)(context)
    }
}

fn custom<F>(choose: F) -> ChoiceBehavior
where
    F: Fn(&ChoiceContext<'_>) -> Result<ChoiceConfiguration, ChoiceError> + Send + Sync + 'static,
{
    ChoiceBehavior::custom(Arc::new(Chosen(choose)))
}

/// Advertises all functions, and `once` only until it has been called.
fn hiding_once(context: &ChoiceContext<'_>) -> Result<ChoiceConfiguration, ChoiceError> {
    let mut chosen = ChoiceBehavior::auto().configure(context)?;
    let mut calls = context.history.iter().flat_map(|message| message.calls());
    if calls.any(|call| call.name == "once")
        && let Some(functions) = &mut chosen.functions
    {
        functions.retain(|function| function.definition().name.as_str() != "once");
    }
    Ok(chosen)
}

fn tools() -> Toolset {
    let mut functions = Functions::new("tests");
    for name in ["once", "often"] {
        let declaration = Declaration::new(name, "For tests.", r#"{"type":"object"}"#);
        functions = functions.with(declaration, async |_, _| Ok(json!("done"))).unwrap();
    }
    let mut tools = Toolset::new();
    tools.add(Arc::new(functions)).unwrap();
    tools
}

/// Returns a model that calls these functions, one per reply, and then answers.
fn calling(names: &[&str]) -> ScriptedClient {
    let call = |name: &&str| json!({"calls": [{"tool": name}]}).to_string();
    let mut lines: Vec<_> = names.iter().map(call).collect();
    lines.push(json!({"text": "answer"}).to_string());
    let client = ScriptedClient::read("script", lines.join("\n").as_bytes()).unwrap();
    client.then(AfterScript::Silence).recording()
}

fn agent(client: &ScriptedClient) -> AgentBuilder {
    Agent::builder(client.clone()).tools(tools())
}

fn results(response: &Response) -> Vec<String> {
    let results = response.messages.iter().flat_map(|message| message.results());
    results.map(|result| result.result.clone()).collect()
}

/// Returns the names that each request advertised.
fn advertised(client: &ScriptedClient) -> Vec<Vec<String>> {
    let names = |tools: &[Arc<cofferdam_tool::ToolDefinition>]| {
        tools.iter().map(|tool| tool.name.to_string()).collect()
    };
    client.requests().iter().map(|request| names(&request.tools)).collect()
}

#[tokio::test]
async fn a_tool_can_be_hidden_after_its_first_call() {
    let client = calling(&["often", "once", "often", "once"]);
    let agent = agent(&client).choice(custom(hiding_once)).build().unwrap();
    let response = agent.run("go").await.unwrap();
    assert_eq!(response.text(), "answer");
    let (both, one) = (vec!["once", "often"], vec!["often"]);
    assert_eq!(advertised(&client), [both.clone(), both, one.clone(), one.clone(), one]);
    // The second call of a hidden tool does not run (`CHOICE-14`).
    let results = results(&response);
    assert_eq!(results[..3], ["done", "done", "done"]);
    assert!(results[3].contains("a function that wasn't defined"), "{results:?}");
}

#[tokio::test]
async fn a_behavior_sees_the_number_of_the_request_the_history_and_the_functions() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let behavior = custom(move |context| {
        let functions = context.registry.map(|registry| registry.functions().len());
        log.lock().unwrap().push((context.request_index, context.history.len(), functions));
        ChoiceBehavior::auto().configure(context)
    });
    let client = calling(&["once"]);
    agent(&client).build().unwrap().run("go").choice(behavior).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [(0, 1, Some(2)), (1, 3, Some(2))]);
}

#[tokio::test]
async fn the_mode_and_the_options_count_for_one_request() {
    let behavior = custom(|context| {
        let mut chosen = ChoiceBehavior::auto().configure(context)?;
        if context.request_index == 1 {
            chosen.choice = ChoiceKind::Required;
            chosen.options = ChoiceOptions {
                allow_concurrent_invocation: true,
                allow_parallel_calls: Some(true),
                allow_strict_schema_adherence: true,
            };
        }
        Ok(chosen)
    });
    let client = calling(&["once", "often"]);
    agent(&client).choice(behavior).build().unwrap().run("go").await.unwrap();
    let options = client.requests().into_iter().map(|request| request.options);
    let options: Vec<_> = options
        .map(|options| (options.tool_choice, options.allow_parallel_calls, options.strict_schemas))
        .collect();
    let auto = (Some(ToolMode::Auto), None, false);
    let required = (Some(ToolMode::Required(None)), Some(true), true);
    assert_eq!(options, [auto.clone(), required, auto]);
}

#[tokio::test]
async fn calls_go_back_to_the_caller_without_invocation() {
    let not_by_configuration = custom(|context| {
        let chosen = ChoiceBehavior::auto().configure(context)?;
        Ok(ChoiceConfiguration { auto_invoke: false, ..chosen })
    });
    let never_for_none = custom(|context| {
        let chosen = ChoiceBehavior::auto().configure(context)?;
        Ok(ChoiceConfiguration { choice: ChoiceKind::None, ..chosen })
    });
    let not_by_behavior = custom(hiding_once).auto_invoke(false);
    for behavior in [not_by_configuration, never_for_none, not_by_behavior] {
        let client = calling(&["once"]);
        let agent = agent(&client).choice(behavior).build().unwrap();
        let response = agent.run("go").await.unwrap();
        assert_eq!((client.requests().len(), results(&response).len()), (1, 0));
    }
}

#[tokio::test]
async fn an_error_of_a_behavior_ends_the_run() {
    let behavior = custom(|_| Err(ChoiceError::Custom { message: "no plan".to_owned() }));
    let client = calling(&[]);
    let agent = agent(&client).choice(behavior).build().unwrap();
    assert_eq!(agent.run("go").await.unwrap_err().to_string(), "no plan");
    assert!(client.requests().is_empty());
}

#[test]
fn a_configuration_is_checked_like_a_built_in_one() {
    let registry = FunctionRegistry::of(&tools());
    let known = registry.functions()[0].clone();
    let other = FunctionRegistry::of(&tools());
    let unknown =
        RegisteredFunction::new(Some("absent"), Arc::clone(other.functions()[0].definition()));
    let configure = |functions: Vec<RegisteredFunction>, registry, request_index| {
        let behavior = custom(move |_| {
            Ok(ChoiceConfiguration {
                choice: ChoiceKind::Auto,
                functions: Some(functions.clone()),
                auto_invoke: true,
                options: ChoiceOptions::default(),
            })
        });
        let context = ChoiceContext { registry, request_index, ..ChoiceContext::default() };
        behavior.configure(&context)
    };
    let repeated = configure(vec![known.clone(), known.clone()], Some(&registry), 0).unwrap();
    assert_eq!(repeated.functions, Some(vec![known.clone()]));
    assert_eq!(configure(Vec::new(), Some(&registry), 0).unwrap().functions, None);
    let late = configure(vec![known.clone()], Some(&registry), AUTO_INVOKED_REQUESTS_MAX);
    assert!(!late.unwrap().auto_invoke);
    assert_eq!(configure(vec![known], None, 0), Err(ChoiceError::NoRegistry));
    let name = "absent.once".to_owned();
    assert_eq!(
        configure(vec![unknown], Some(&registry), 0),
        Err(ChoiceError::NotAvailable { name })
    );
}

#[test]
fn a_custom_behavior_is_equal_to_its_clones_and_has_no_text_form() {
    let (one, other) = (custom(hiding_once), custom(hiding_once));
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_ne!(one, ChoiceBehavior::auto());
    assert!(one.is_custom() && !ChoiceBehavior::auto().is_custom());
    assert_eq!(one.to_value()["type"], Value::from("custom"));
    assert!(ChoiceBehavior::from_value(&one.to_value()).is_err());
}

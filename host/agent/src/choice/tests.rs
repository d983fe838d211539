use std::time::{Duration, Instant};

use cofferdam_tool::{Annotations, InputSchema, ToolDefinition, ToolName};
use serde_json::{Value, json};

use super::*;
use crate::{Agent, Effort, Reply, ScriptedClient};

fn function(plugin: Option<&str>, name: &str) -> RegisteredFunction {
    let input = Arc::new(InputSchema::compile(name, r#"{"type":"object"}"#).unwrap());
    let definition = ToolDefinition {
        name: ToolName::new(name).unwrap(),
        title: None,
        description: String::new(),
        input,
        output: None,
        annotations: Annotations::default(),
        group: None,
    };
    RegisteredFunction::new(plugin, Arc::new(definition))
}

fn registry() -> FunctionRegistry {
    let mut registry = FunctionRegistry::new();
    for (plugin, name) in
        [(Some("Mail"), "Send"), (Some("Mail"), "list.all"), (None, "now"), (Some("mail"), "send")]
    {
        registry.add(function(plugin, name));
    }
    registry
}

/// Returns the names that are advertised, or the error.
fn advertised(
    behavior: &ChoiceBehavior,
    registry: Option<&FunctionRegistry>,
) -> Result<Vec<String>, String> {
    let context = ChoiceContext { registry, ..ChoiceContext::default() };
    let configuration = behavior.configure(&context).map_err(|error| error.to_string())?;
    assert_ne!(configuration.functions, Some(vec![]));
    Ok(configuration.functions.iter().flatten().map(ToString::to_string).collect())
}

#[test]
fn the_same_behaviour_is_loaded_from_code_json_and_yaml() {
    let code = ChoiceBehavior::required().functions(["Mail.Send", "now"]).options(ChoiceOptions {
        allow_concurrent_invocation: true,
        allow_parallel_calls: Some(false),
        allow_strict_schema_adherence: false,
    });
    let json = r#"{
        "type": "required", "functions": ["Mail.Send", "now"], "auto_invoke": false, "of_no_meaning": [1],
        "options": {"allow_concurrent_invocation": true, "allow_parallel_calls": false, "allow_strict_schema_adherence": null}
    }"#;
    let yaml = "
type: required
functions:
  - Mail.Send
  - now
auto_invoke: false
of_no_meaning: [1]
options:
  allow_concurrent_invocation: true
  allow_parallel_calls: false
  allow_strict_schema_adherence: ~
";
    assert_eq!(ChoiceBehavior::from_json(json).unwrap(), code);
    assert_eq!(ChoiceBehavior::from_yaml(yaml).unwrap(), code);
    assert_eq!(ChoiceBehavior::from_value(&code.to_value()).unwrap(), code);
    let indented = |text: &str| text.replace('\n', "\n      ");
    let in_json = format!(
        r#"{{"execution_settings": {{"gpt": {{"temperature": 0.5, "function_choice_behavior": {json}}}}}}}"#
    );
    let in_yaml = format!(
        "name: p\ntemplate: |\n  Hi {{{{x}}}}\nexecution_settings:\n  gpt:\n    temperature: \
         0.5\n    function_choice_behavior:{}\n",
        indented(yaml.trim_end())
    );
    let [in_json, in_yaml] =
        [PromptSettings::from_json(&in_json), PromptSettings::from_yaml(&in_yaml)]
            .map(Result::unwrap);
    assert_eq!(in_json, in_yaml);
    let settings = in_yaml.service("gpt").unwrap();
    assert_eq!(settings.behavior.as_ref(), Some(&code));
    assert_eq!(Value::Object(settings.extension_data.clone()), json!({"temperature": 0.5}));
    assert_eq!(in_yaml.service("other"), None);
}

#[test]
fn what_code_says_replaces_what_a_prompt_says_as_a_whole() {
    let settings = ServiceSettings {
        behavior: Some(ChoiceBehavior::auto().functions(["a.b"])),
        ..ServiceSettings::default()
    };
    assert_eq!(settings.behavior_or(None), settings.behavior);
    assert_eq!(settings.behavior_or(Some(ChoiceBehavior::none())), Some(ChoiceBehavior::none()));
}

#[test]
fn a_service_without_an_entry_gets_the_default_and_one_with_an_entry_nothing_of_it() {
    let prompt = PromptSettings::from_yaml(
        "
execution_settings:
  default: {temperature: 0, function_choice_behavior: {type: auto}}
  own: {temperature: 1}
  empty:
function_choice_behavior: {type: none}
",
    );
    let prompt = prompt.unwrap();
    assert_eq!(prompt.service("other").unwrap().behavior, Some(ChoiceBehavior::auto()));
    assert_eq!(prompt.service("default"), prompt.service("other"));
    assert_eq!(prompt.service("own").unwrap().behavior, None);
    assert_eq!(prompt.service("own").unwrap().extension_data["temperature"], 1);
    assert_eq!(prompt.service("empty"), Some(&ServiceSettings::default()));
    assert_eq!(PromptSettings::from_json("{}").unwrap().service("x"), None);
    assert_eq!(
        PromptSettings::from_json(r#"{"execution_settings": null}"#).unwrap().service("x"),
        None
    );
}

#[test]
fn a_behaviour_that_is_none_is_refused_with_the_reason() {
    let cases = [
        (json!({"type": "auto", "functions": null, "options": null}), ""),
        (json!({}), "Function choice behavior has no type."),
        (json!({"type": null}), "Function choice behavior has no type."),
        (json!({"type": "Auto"}), "Unknown function choice behavior type 'Auto'."),
        (json!({"type": ""}), "Unknown function choice behavior type ''."),
        (json!({"type": 5}), "Unknown function choice behavior type '5'."),
        (json!("auto"), "`function_choice_behavior` must be an object"),
        (json!({"type": "auto", "functions": "a.b"}), "`functions` must be a list of names"),
        (json!({"type": "auto", "functions": [1]}), "`functions` must be a list of names"),
        (json!({"type": "auto", "options": []}), "`options` must be an object"),
        (
            json!({"type": "auto", "options": {"allow_parallel_calls": "no"}}),
            "`allow_parallel_calls` must be true or false",
        ),
    ];
    for (value, expected) in cases {
        let shown = ChoiceBehavior::from_value(&value).err().map(|error| error.to_string());
        assert_eq!(shown.unwrap_or_default(), expected, "{value}");
    }
}

#[test]
fn yaml_is_that_of_1_2_and_has_limits() {
    // `no` is a string, which is not a valid type here; `none` is not null.
    let refused = ChoiceBehavior::from_yaml("type: no").unwrap_err();
    assert_eq!(refused.to_string(), "Unknown function choice behavior type 'no'.");
    assert_eq!(ChoiceBehavior::from_yaml("type: none").unwrap(), ChoiceBehavior::none());
    assert_eq!(ChoiceBehavior::from_yaml("{\"type\": \"auto\"}").unwrap(), ChoiceBehavior::auto());
    for broken in [
        "type: auto\ntype: none",
        "type: [",
        "--- {type: auto}\n--- {type: none}",
        "type: *undefined",
        "\u{0}",
    ] {
        assert!(
            matches!(ChoiceBehavior::from_yaml(broken), Err(InvalidChoice::Yaml(_))),
            "{broken}"
        );
    }
    let aliases = "function_choice_behavior: &b {type: auto}\n";
    let shared = format!(
        "x: {{{aliases}}}\nexecution_settings: {{default: {{function_choice_behavior: *b}}}}"
    )
    .replace('\n', "");
    assert!(PromptSettings::from_yaml(&shared.replace("}execution", "}\nexecution")).is_ok());

    let mut laughs = String::from("a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n");
    for level in 1..12 {
        let parts = vec![format!("*a{}", level - 1); 9].join(", ");
        laughs.push_str(&format!("a{level}: &a{level} [{parts}]\n"));
    }
    let deep = format!("type: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("type: auto\nx: {}", "y".repeat(1 << 20));
    let many = format!("type: auto\nx: [{}]", "1,".repeat(400_000));
    let started = Instant::now();
    for bomb in [laughs.as_str(), &deep, &many] {
        assert!(matches!(ChoiceBehavior::from_yaml(bomb), Err(InvalidChoice::Yaml(_))));
    }
    for text in [ChoiceBehavior::from_yaml(&long), ChoiceBehavior::from_json(&long)] {
        assert!(matches!(text, Err(InvalidChoice::TooLarge { .. })));
    }
    assert!(started.elapsed() < Duration::from_secs(20), "the limits do not limit");
}

#[test]
fn names_are_split_at_the_first_dot_and_looked_up_whatever_the_case() {
    for (written, plugin, function) in [
        ("p.f", Some("p"), "f"),
        (" p . f ", Some("p"), "f"),
        ("p.f.g", Some("p"), "f.g"),
        ("f", None, "f"),
        (" f ", None, "f"),
        (".f", Some(""), "f"),
        ("p.", Some("p"), ""),
        ("", None, ""),
    ] {
        let name = FunctionName::new(written);
        assert_eq!((name.plugin(), name.function()), (plugin, function), "{written:?}");
    }
    let registry = registry();
    for (listed, found) in [
        ("MAIL.SEND", Some("Mail.Send")),
        ("mail.send", Some("mail.send")),
        ("mail . LIST.ALL", Some("Mail.list.all")),
        ("NOW", Some("now")),
        (".now", Some("now")),
        ("Send", None),
        ("Mail.now", None),
        ("Other.Send", None),
        ("", None),
    ] {
        let function = registry.find(&listed.into()).map(ToString::to_string);
        assert_eq!(function.as_deref(), found, "{listed:?}");
    }
}

#[test]
fn no_list_is_everything_an_empty_one_nothing_and_any_other_exactly_that() {
    let registry = registry();
    let all = ["Mail.Send", "Mail.list.all", "now", "mail.send"];
    for behavior in [ChoiceBehavior::auto(), ChoiceBehavior::required(), ChoiceBehavior::none()] {
        assert_eq!(advertised(&behavior, Some(&registry)).unwrap(), all);
        let none: [&str; 0] = [];
        assert!(advertised(&behavior.clone().functions(none), Some(&registry)).unwrap().is_empty());
        let listed = behavior.functions(["now", "MAIL.SEND", "now", "Mail.Send"]);
        assert_eq!(advertised(&listed, Some(&registry)).unwrap(), ["now", "Mail.Send"]);
    }
}

#[test]
fn what_is_not_there_depends_on_who_makes_the_calls() {
    let registry = registry();
    let none: [&str; 0] = [];
    let no_kernel = "Auto-invocation is not supported when no kernel is provided.";
    for behavior in [ChoiceBehavior::auto(), ChoiceBehavior::required()] {
        assert_eq!(advertised(&behavior, None).unwrap_err(), no_kernel);
        assert_eq!(advertised(&behavior.clone().functions(none), None).unwrap_err(), no_kernel);
        let listed = behavior
            .functions(["Mail.Send", " Other . Go"])
            .instances([function(Some("Other"), "Go")]);
        let refused = "The specified function  Other . Go is not available in the kernel.";
        assert_eq!(advertised(&listed, Some(&registry)).unwrap_err(), refused);
        let manual = listed.auto_invoke(false);
        assert_eq!(advertised(&manual, Some(&registry)).unwrap(), ["Mail.Send", "Other.Go"]);
        assert_eq!(
            advertised(&manual, None).unwrap_err(),
            "The specified function Mail.Send was not found."
        );
    }
    let manual = ChoiceBehavior::none().auto_invoke(true);
    assert_eq!(advertised(&manual, None).unwrap(), none);
    let refused = "The specified function a.b was not found.";
    assert_eq!(
        advertised(&manual.clone().functions(["a.b"]), Some(&registry)).unwrap_err(),
        refused
    );
    let supplied = manual.instances([function(Some("mail"), "SEND"), function(None, "x")]);
    assert_eq!(advertised(&supplied, None).unwrap(), ["mail.SEND", "x"]);
    // The registered function takes precedence.
    assert_eq!(advertised(&supplied, Some(&registry)).unwrap(), ["Mail.Send", "x"]);
    assert!(advertised(&supplied.instances([]), Some(&registry)).unwrap().is_empty());
}

#[test]
fn required_advertises_once_and_the_others_always() {
    let registry = registry();
    for request_index in [0, 1, 5] {
        let context =
            ChoiceContext { registry: Some(&registry), request_index, ..ChoiceContext::default() };
        let required = ChoiceBehavior::required().configure(&context).unwrap();
        assert_eq!(required.choice, ChoiceKind::Required);
        assert_eq!(required.functions.is_some(), request_index == 0);
        assert_eq!(required.is_advertised("now"), request_index == 0);
        for behavior in [ChoiceBehavior::auto(), ChoiceBehavior::none()] {
            assert!(behavior.configure(&context).unwrap().is_advertised("now"));
        }
    }
}

#[test]
fn nothing_is_invoked_automatically_for_ever() {
    let registry = registry();
    let auto_invokes = |behavior: ChoiceBehavior, request_index, depth| {
        let context = ChoiceContext {
            registry: Some(&registry),
            request_index,
            depth,
            ..ChoiceContext::default()
        };
        behavior.configure(&context).unwrap().auto_invoke
    };
    for (request_index, depth, expected) in [
        (0, 0, true),
        (127, 127, true),
        (128, 0, false),
        (500, 0, false),
        (0, 128, false),
        (0, 500, false),
    ] {
        assert_eq!(auto_invokes(ChoiceBehavior::auto(), request_index, depth), expected);
        assert_eq!(auto_invokes(ChoiceBehavior::required(), request_index, depth), expected);
        assert!(!auto_invokes(ChoiceBehavior::none().auto_invoke(true), request_index, depth));
        assert!(!auto_invokes(ChoiceBehavior::auto().auto_invoke(false), request_index, depth));
    }
}

#[tokio::test]
async fn calls_know_how_deep_they_are() {
    fn down(levels: usize) -> std::pin::Pin<Box<dyn Future<Output = usize> + Send>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            if levels == 0 { depth() } else { nested(down(levels - 1)).await }
        })
    }
    assert_eq!(down(0).await, 0);
    let (one, other) = tokio::join!(nested(down(2)), nested(down(127)));
    assert_eq!((one, other, depth()), (3, 128, 0));
}

#[test]
fn options_are_set_for_the_run() {
    let (mut settings, mut options) = (LoopSettings::default(), ChatOptions::default());
    let asked = ChoiceOptions {
        allow_concurrent_invocation: true,
        allow_parallel_calls: Some(true),
        allow_strict_schema_adherence: true,
    };
    asked.apply(&mut settings, &mut options);
    assert!(settings.allow_concurrent_invocation && options.strict_schemas);
    assert_eq!(options.allow_parallel_calls, Some(true));
    ChoiceOptions::default().apply(&mut settings, &mut options);
    assert!(!settings.allow_concurrent_invocation);
    assert_eq!(options.allow_parallel_calls, Some(true));
}

#[test]
fn options_of_a_prompt_file_complete_those_of_the_caller() {
    let entry = json!({"temperature": 0.5, "top_p": 1, "max_tokens": 100, "model_id": "m",
        "stop_sequences": ["END"], "seed": 7, "reasoning_effort": "low", "other": {"a": 1}});
    let read = |entry: &Value| {
        let prompt = json!({"execution_settings": {"default": entry}});
        PromptSettings::from_value(&prompt).unwrap().service("default").unwrap().clone()
    };
    let settings = read(&entry);
    let own = ChatOptions { temperature: Some(0.0), seed: Some(1), ..ChatOptions::default() };
    let expected = ChatOptions {
        temperature: Some(0.0),
        top_p: Some(1.0),
        max_output_tokens: Some(100),
        model: Some("m".to_owned()),
        stop: vec!["END".to_owned()],
        seed: Some(1),
        effort: Some(Effort::Low),
        ..ChatOptions::default()
    };
    assert_eq!(settings.complete(own).unwrap(), expected);
    let own = ChatOptions { stop: vec!["x".to_owned()], ..ChatOptions::default() };
    assert_eq!(settings.complete(own).unwrap().stop, ["x"]);
    assert_eq!(settings.extension_data["other"], json!({"a": 1}));
    for (entry, message) in [
        (json!({"temperature": "warm"}), "`temperature` must be a number"),
        (json!({"max_tokens": 0}), "`max_tokens` must be a positive integer"),
        (json!({"stop": [1]}), "`stop` must be a list of strings"),
        (json!({"seed": 1.5}), "`seed` must be an integer"),
        (
            json!({"effort": "most"}),
            "`effort` must be one of none, minimal, low, medium, high, xhigh, max",
        ),
    ] {
        let error = read(&entry).complete(ChatOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let unset = read(&json!({"temperature": null, "stop": "one"}));
    let options = unset.complete(ChatOptions::default()).unwrap();
    assert_eq!((options.temperature, options.stop), (None, vec!["one".to_owned()]));
}

#[tokio::test]
async fn settings_of_a_prompt_file_take_effect_in_a_run() {
    let prompt = PromptSettings::from_json(
        r#"{"execution_settings": {"default": {"temperature": 0.5,
            "function_choice_behavior": {"type": "none"}}}}"#,
    );
    let prompt = prompt.unwrap();
    let settings = prompt.service("any").unwrap();
    let model = ScriptedClient::new([Reply::text("a"), Reply::text("b")]).recording();
    let agent = Agent::builder(model.clone()).build().unwrap();
    agent.run("go").prompt_settings(settings).unwrap().await.unwrap();
    let run = agent.run("go").choice(ChoiceBehavior::auto());
    run.prompt_settings(settings).unwrap().await.unwrap();
    let options: Vec<_> = model.requests().into_iter().map(|request| request.options).collect();
    assert_eq!(options[0].temperature, Some(0.5));
    let choices = options.iter().map(|options| options.tool_choice.clone());
    let expected = [Some(ToolMode::None), Some(ToolMode::Auto)];
    assert!(choices.eq(expected));
}

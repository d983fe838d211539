use std::sync::Arc;

use cofferdam_agent::{LOAD_TOOL, PlanMode, ScriptedClient, TodoList};
use cofferdam_tool::Functions;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::search::SEARCH_TOOL;
use serde_json::{Value, json};

use super::*;

fn tools(names: &[&str]) -> Toolset {
    let mut functions = Functions::new("texts");
    for name in names {
        let declaration = Declaration::new(*name, "Does something.", r#"{"type":"object"}"#);
        functions = functions.with(declaration, async |_, _| Ok(Value::Null)).unwrap();
    }
    let mut tools = Toolset::new();
    tools.add(Arc::new(functions)).unwrap();
    tools
}

/// Creates an agent without tool search.
fn agent(tools: Toolset) -> Agent {
    let model = ScriptedClient::read("script", br#"{"text":"x"}"#.as_slice()).unwrap();
    Agent::builder(model).tools(tools).tool_search(None).build().unwrap()
}

/// Creates a case with these fields, beside a name and a prompt.
fn case(fields: Value) -> EvalCase {
    let mut case = json!({"name": "c", "prompt": "p"});
    case.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    EvalCase::from_value(&case).unwrap()
}

/// Checks a case with these fields for an agent with tools of these names.
fn check(fields: Value, names: &[&str]) -> Result<(), String> {
    let tools = tools(names);
    let checked = check_tools(&[case(fields)], &agent(tools.clone()), &tools);
    checked.map_err(|error| error.to_string())
}

#[test]
fn unknown_tools_are_refused_with_the_nearest_one() {
    let names = ["word_count", "reverse"];
    for known in [json!({}), json!({"calls": [{"tool": "word_count"}], "forbidden": ["reverse"]})] {
        assert_eq!(check(known.clone(), &names), Ok(()), "{known}");
    }
    let unknown = |field: &str, tool: &str, advice: &str| {
        Err(format!(
            "the case \"c\" names {tool:?} in `{field}`: expected a tool of the agent, found no \
             tool of this name; {advice}"
        ))
    };
    for (fields, names, message) in [
        (
            json!({"forbidden": ["reverse", "word_cuont"]}),
            &names[..],
            unknown("forbidden", "word_cuont", "did you mean `word_count`?"),
        ),
        (
            json!({"calls": [{"tool": "Word_Count", "max": 0}]}),
            &names,
            unknown("calls", "Word_Count", "did you mean `word_count`?"),
        ),
        (
            json!({"forbidden": ["send_mail"]}),
            &names,
            unknown("forbidden", "send_mail", "the tools are word_count, reverse"),
        ),
        (
            json!({"calls": [{"tool": "word_count"}]}),
            &[],
            unknown(
                "calls",
                "word_count",
                "no tools are selected; select some, such as with --plugin",
            ),
        ),
    ] {
        assert_eq!(check(fields.clone(), names), message, "{fields}");
    }
}

#[test]
fn a_needed_tool_is_one_of_the_agent_and_others_may_be_forbidden() {
    let all = tools(&["word_count", "reverse"]);
    let own = all.restrict(|tool| tool.name.as_str() == "word_count");
    let check = |fields: Value| {
        let case = case(fields);
        check_tools(&[case], &agent(own.clone()), &all).map_err(|e| e.to_string())
    };
    assert_eq!(check(json!({"calls": [{"tool": "word_count"}], "forbidden": ["reverse"]})), Ok(()));
    assert_eq!(check(json!({"calls": [{"tool": "reverse", "max": 0}]})), Ok(()));
    let refused = check(json!({"calls": [{"tool": "reverse"}]})).unwrap_err();
    assert!(
        refused.ends_with("the host has it, so add it to the `tools` of the agent"),
        "{refused}"
    );
}

#[test]
fn tools_that_an_agent_adds_are_known() {
    let forbids = |tool: &str| [case(json!({"forbidden": [tool]}))];
    let model = ScriptedClient::read("script", br#"{"text":"x"}"#.as_slice()).unwrap();
    let builder = Agent::builder(model).context_provider(TodoList::new().unwrap());
    let agent = builder.context_provider(PlanMode::new().unwrap()).build().unwrap();
    let none = Toolset::new();
    for known in ["todos_add", "mode_set", SEARCH_TOOL, LOAD_TOOL] {
        check_tools(&forbids(known), &agent, &none).unwrap();
    }
    for (unknown, advice) in [("todos_ad", "did you mean `todos_add`?"), ("file_memory_ls", "")] {
        let refused = check_tools(&forbids(unknown), &agent, &none).unwrap_err().to_string();
        assert!(refused.ends_with(advice), "{refused}");
    }
}

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cofferdam_agent::middleware::{ChatContext, Signal};
use cofferdam_agent::{
    Agent, Layer, Middleware, Next, PlanMode, Reply, ScriptedClient, Session, TodoList,
};
use cofferdam_tool::Functions;
use cofferdam_tool::declaration::Declaration;
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

/// Checks a case with these fields, beside a name and a prompt.
fn check(fields: Value, names: &[&str]) -> Result<(), String> {
    let mut case = json!({"name": "c", "prompt": "p"});
    case.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let case = EvalCase::from_value(&case).unwrap();
    check_tools(&[case], &tools(names)).map_err(|error| error.to_string())
}

#[test]
fn unknown_tools_are_refused_with_the_nearest_one() {
    let names = ["word_count", "reverse"];
    for known in [
        json!({}),
        json!({"calls": [{"tool": "word_count"}], "forbidden": ["reverse"]}),
        json!({"forbidden": [SEARCH_TOOL, LOAD_TOOL, "todos_add", "file_memory_write"]}),
    ] {
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
        (json!({"forbidden": ["todos_ad"]}), &[], {
            unknown("forbidden", "todos_ad", "did you mean `todos_add`?")
        }),
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

/// Collects the names of the tools that the model sees.
struct ToolNames(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Middleware<ChatContext> for ToolNames {
    async fn process(
        &self,
        context: &mut ChatContext,
        next: Next<'_, ChatContext>,
    ) -> Result<(), Signal<Reply>> {
        let names = context.request.tools.iter().map(|tool| tool.name.to_string());
        self.0.lock().unwrap().extend(names);
        next.run(context).await
    }
}

#[tokio::test]
async fn tools_that_an_agent_adds_are_known() {
    let names = Arc::new(Mutex::new(Vec::new()));
    let model = ScriptedClient::read("script", br#"{"text":"x"}"#.as_slice()).unwrap();
    let agent = Agent::builder(model)
        .context_provider(TodoList::new().unwrap())
        .context_provider(PlanMode::new().unwrap())
        .layer(Layer::Chat(Arc::new(ToolNames(Arc::clone(&names)))))
        .build()
        .unwrap();
    agent.run("p").session(&Session::new()).await.unwrap();
    let names = names.lock().unwrap().clone();
    assert_eq!(names.len(), 7, "{names:?}");
    for name in names {
        assert!(BESIDE.contains(&name.as_str()), "{name}");
    }
}

//! Code around every call of a tool: it caches results and does not repeat calls.

#![expect(clippy::print_stdout, reason = "a program shows what came of it")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cofferdam_agent::middleware::{FunctionContext, FunctionSignal, FunctionValue};
use cofferdam_agent::{Agent, Layer, Middleware, Next, ScriptedClient};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, Toolset};
use serde_json::json;

const SCRIPT: &str = r#"
{"calls":[{"tool":"add","arguments":{"a":1,"b":2}},{"tool":"add","arguments":{"a":1,"b":2}},{"tool":"add","arguments":{"a":2,"b":2}}]}
{"text":"3 and 4."}
"#;

/// Answers a repeated call from its cache.
#[derive(Default)]
struct Remember {
    answers: Mutex<HashMap<String, FunctionValue>>,
}

impl Remember {
    fn answers(&self) -> std::sync::MutexGuard<'_, HashMap<String, FunctionValue>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Middleware<FunctionContext> for Remember {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let key = format!("{} {}", context.tool.name, context.arguments.to_text());
        if let Some(known) = self.answers().get(&key).cloned() {
            println!("known: {key}");
            context.result = Some(known);
            return Ok(());
        }
        println!("called: {key}");
        // `?` passes a failure on without caching it.
        next.run(context).await?;
        if let Some(FunctionValue::Output(_)) = &context.result {
            self.answers().extend(context.result.clone().map(|value| (key, value)));
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    });
    let add = Declaration::new("add", "Adds two numbers.", schema.to_string());
    let functions = Functions::new("math").with(add, async |arguments, _context| {
        let number = |name: &str| {
            arguments.value().get(name).and_then(serde_json::Value::as_i64).unwrap_or_default()
        };
        Ok(json!(number("a") + number("b")))
    })?;
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions))?;
    let model = ScriptedClient::read("script", SCRIPT.as_bytes())?;
    let agent =
        Agent::builder(model).tools(toolset).layer(Layer::function(Remember::default())).build()?;
    println!("model: {}", agent.run("Add.").await?.text());
    Ok(())
}

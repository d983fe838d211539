//! Custom tools: anything that can be listed and called is a `ToolSource`. For single functions
//! there is `Functions`.

#![expect(clippy::print_stdout, reason = "a program shows what came of it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::{Agent, ScriptedClient};
use cofferdam_tool::declaration::{Declaration, check_declarations};
use cofferdam_tool::{
    CallContext, CallRecord, Completion, Outcome, Output, ToolCall, ToolDefinition, ToolFailure,
    ToolSource, Toolset,
};
use serde_json::{Map, Value, json};

const SCRIPT: &str = r#"
{"calls":[{"tool":"price","arguments":{"article":"tee"}}]}
{"calls":[{"tool":"price","arguments":{"article":"tea","pieces":"3"}}]}
{"text":"Three packs of tea are 12.60."}
"#;

/// A price list as a tool.
struct Prices {
    definitions: Arc<[Arc<ToolDefinition>]>,
    prices: BTreeMap<&'static str, f64>,
}

impl Prices {
    fn new() -> anyhow::Result<Self> {
        let schema = json!({
            "type": "object",
            "properties": {
                "article": {"type": "string", "description": "What it is called in the list"},
                "pieces": {"type": "integer", "minimum": 1, "default": 1},
            },
            "required": ["article"],
        });
        let price = Declaration::new("price", "What an article costs.", schema.to_string());
        // The rules are those for plugins: schemas are compiled here and not at the first call.
        let definitions = check_declarations(&[price])?.into_iter().map(Arc::new).collect();
        Ok(Self { definitions, prices: BTreeMap::from([("tea", 4.2), ("milk", 1.1)]) })
    }

    fn price(&self, arguments: &Map<String, Value>) -> Outcome {
        // Already decoded by the schema: the string "3" is the number 3, and missing members have
        // their defaults.
        let article = arguments.get("article").and_then(Value::as_str).unwrap_or_default();
        let pieces = arguments.get("pieces").and_then(Value::as_f64).unwrap_or(1.0);
        match self.prices.get(article) {
            Some(price) => Outcome::Ok(Output::Value(json!({"total": price * pieces}))),
            None => Outcome::Failure(ToolFailure::new(format!("there is no article `{article}`"))),
        }
    }
}

#[async_trait]
impl ToolSource for Prices {
    fn name(&self) -> &str {
        "prices"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, call: ToolCall<'_>, _context: &CallContext) -> Completion {
        Completion::new(self.price(call.arguments.value()), CallRecord::default())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(Prices::new()?))?;
    let model = ScriptedClient::read("script", SCRIPT.as_bytes())?;
    let agent = Agent::builder(model).tools(toolset).build()?;
    let response = agent.run("What are three packs of tea?").await?;
    for result in response.messages.iter().flat_map(|message| message.results()) {
        println!("tool: {}", result.result);
    }
    println!("model: {}", response.text());
    Ok(())
}

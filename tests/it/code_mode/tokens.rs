//! Tokens of a task with many calls: order totals of eight users, from five tools.

use cofferdam::agent::compaction::{OpenAiTokens, TokenCounter};
use cofferdam::agent::{Agent, ChatRequest, ScriptedClient};
use serde_json::Map;

use super::*;

const USERS: [(&str, &str, u32); 8] = [
    ("ada", "gold", 3),
    ("ben", "silver", 2),
    ("cleo", "gold", 4),
    ("dora", "basic", 1),
    ("emil", "basic", 3),
    ("fay", "silver", 2),
    ("gus", "gold", 1),
    ("hana", "basic", 2),
];

const PROGRAM: &str = "\
const users = await tools.list_users({});
return Object.fromEntries(await Promise.all(users.map(async ({id}) => {
  const [{tier, region}, orders] = await Promise.all([tools.get_user({id}), tools.list_orders({user: id})]);
  const [{percent}, {rate}] = await Promise.all([tools.get_discount({tier}), tools.get_tax({region})]);
  const sum = orders.reduce((sum, order) => sum + order.quantity * order.unit_price, 0);
  return [id, Math.round(sum * (100 - percent) * (100 + rate)) / 10000];
})));";

fn orders(user: &str, count: u32) -> Vec<Value> {
    let order = |index: u32| {
        json!({
            "id": format!("{user}-{index}"), "product": format!("product {index} for {user}"),
            "quantity": index + 1, "unit_price": 10 + index, "currency": "EUR",
            "status": "delivered", "ordered_at": format!("2026-0{}-11T09:30:00Z", index + 1),
            "address": {"street": "Long Street 1", "city": "Delft", "country": "NL"},
        })
    };
    (0..count).map(order).collect()
}

/// Returns the result of a tool of the task.
fn answer(tool: &str, arguments: &Map<String, Value>) -> Value {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let user = |id: &str| USERS.into_iter().find(|(name, ..)| *name == id).unwrap();
    match tool {
        "list_users" => USERS.iter().map(|(id, ..)| json!({"id": id})).collect(),
        "get_user" => {
            let (id, tier, _) = user(text("id"));
            json!({
                "id": id, "name": format!("{id} example"), "tier": tier, "region": "NL",
                "email": format!("{id}@example.com"), "created_at": "2024-03-01T10:00:00Z",
            })
        }
        "list_orders" => {
            let (id, _, count) = user(text("user"));
            orders(id, count).into()
        }
        "get_discount" => {
            let percent = match text("tier") {
                "gold" => 20,
                "silver" => 10,
                _ => 0,
            };
            json!({"tier": text("tier"), "percent": percent})
        }
        _ => json!({"region": text("region"), "rate": 21}),
    }
}

fn task() -> Functions {
    let one = |name: &str, description: &str| {
        json!({"type": "object", "properties": {name: {"type": "string", "description": description}}, "required": [name]})
            .to_string()
    };
    let tools = [
        ("list_users", "Lists the ids of all users.", ANY_OBJECT.to_owned()),
        ("get_user", "Returns name, tier and region of a user.", one("id", "Id of the user.")),
        ("list_orders", "Lists the orders of a user.", one("user", "Id of the user.")),
        (
            "get_discount",
            "Returns the discount of a tier, in percent.",
            one("tier", "Name of the tier."),
        ),
        (
            "get_tax",
            "Returns the tax rate of a region, in percent.",
            one("region", "Code of the region."),
        ),
    ];
    tools.into_iter().fold(Functions::new("shop"), |functions, (name, description, schema)| {
        let declaration = Declaration::new(name, description, schema);
        functions
            .with(declaration, async move |arguments, _| Ok(answer(name, arguments.value())))
            .unwrap()
    })
}

/// Returns the totals as the program computes them.
fn totals() -> Value {
    let total = |(id, tier, count): &(&str, &str, u32)| {
        let sum: u64 = orders(id, *count)
            .iter()
            .map(|order| {
                order["quantity"].as_u64().unwrap() * order["unit_price"].as_u64().unwrap()
            })
            .sum();
        let tier = Map::from_iter([("tier".to_owned(), json!(tier))]);
        let percent = answer("get_discount", &tier)["percent"].as_u64().unwrap();
        let total = (sum * (100 - percent) * 121) as f64 / 10_000.0;
        ((*id).to_owned(), if total.fract() == 0.0 { json!(total as u64) } else { json!(total) })
    };
    Value::Object(USERS.iter().map(total).collect())
}

/// Returns the tokens that all requests of a conversation send, and those of the replies.
fn tokens(requests: &[ChatRequest], final_answer: &str) -> u64 {
    let counter = OpenAiTokens::for_model("gpt-5");
    let of_request = |request: &ChatRequest| {
        let tools = request.tools.iter().map(|tool| {
            counter.text(tool.name.as_str())
                + counter.text(&tool.description)
                + counter.data(&tool.input.published().to_string())
        });
        let messages = request.messages.iter().map(|message| counter.message(message));
        tools.sum::<u64>() + messages.sum::<u64>()
    };
    requests.iter().map(of_request).sum::<u64>() + counter.text(final_answer)
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"tool": tool, "arguments": arguments})
}

async fn converse(host: &Host, replies: &[Value]) -> (u64, Vec<ChatRequest>) {
    let script: Vec<_> = replies.iter().map(Value::to_string).collect();
    let client = ScriptedClient::read("script", script.join("\n").as_bytes()).unwrap().recording();
    let agent = Agent::builder(client.clone())
        .instructions("You answer questions about orders.")
        .tools(host.toolset().clone())
        .build()
        .unwrap();
    let response =
        agent.run("What is the total of each user, with discount and tax?").await.unwrap();
    let requests = client.requests();
    (tokens(&requests, &response.text()), requests)
}

/// The model that calls tools directly makes all calls of one kind in one reply, which is the best
/// that it can do.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_needs_a_third_of_the_tokens_of_direct_calls() {
    let final_answer = json!({"text": format!("The totals are {}.", totals())});
    let of_each = |tool: &str, argument: &str| -> Vec<Value> {
        USERS.iter().map(|(id, ..)| call(tool, json!({argument: id}))).collect()
    };
    let tiers = ["gold", "silver", "basic"].map(|tier| call("get_discount", json!({"tier": tier})));
    let mut rates = tiers.to_vec();
    rates.push(call("get_tax", json!({"region": "NL"})));
    let direct = [
        json!({"calls": [call("list_users", json!({}))]}),
        json!({"calls": of_each("get_user", "id")}),
        json!({"calls": of_each("list_orders", "user")}),
        json!({"calls": rates}),
        final_answer.clone(),
    ];
    let plain = Host::builder().source(Arc::new(task())).build().await.unwrap();
    let (direct, _) = converse(&plain, &direct).await;
    let programs = [json!({"calls": [call("run_code", json!({"code": PROGRAM}))]}), final_answer];
    let host = builder(Language::JavaScript, task());
    let host = only(host).build().await.unwrap();
    let (code, requests) = converse(&host, &programs).await;
    let results: Vec<_> =
        requests[1].messages.iter().flat_map(|message| message.results()).collect();
    let result: Value = serde_json::from_str(&results[0].result).unwrap();
    assert_eq!(result["result"], totals());
    println!("order totals: {direct} tokens with direct calls, {code} with a program");
    assert!(code * 100 <= direct * 35, "{code} of {direct}");
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_of_120_tools_are_few_tokens() {
    let schema = r#"{"type":"object","properties":{"query":{"type":"string","description":"Words to look for in the records of the service."},"limit":{"type":"integer","minimum":1,"maximum":100}}}"#;
    let many = (0..120).fold(Functions::new("many"), |functions, index| {
        let name = format!("service_{index}_find_records");
        let tool = Declaration::new(name, "Finds records of a service by words.", schema);
        functions.with(tool, async |_, _| Ok(json!(null))).unwrap()
    });
    let host = only(builder(Language::JavaScript, many)).build().await.unwrap();
    let tool = host.toolset().definition("run_code").unwrap();
    let counter = OpenAiTokens::for_model("gpt-5");
    let tokens =
        counter.text(&tool.description) + counter.data(&tool.input.published().to_string());
    println!("120 tools: {tokens} tokens of definitions");
    assert!(tokens <= 1200, "{tokens}");
    let found = run(&host, "return await tools.$search('service 7')").await;
    assert!(
        found["result"][0].as_str().unwrap().contains("service_7_find_records(args"),
        "{found}"
    );
}

//! Agents that work together (`WF-13`, `WF-14`). Each answers `from <name>`.

use cofferdam_agent::{Agent, Message, MessageContent};
use cofferdam_workflow::{
    Concurrent, GroupChat, Handoff, InvalidOrchestration, Magentic, RunOutcome, Sequential,
    Workflow, selector_fn,
};
use serde_json::{Value, json};

use super::super::agent::{Model, block_on};
use super::{Came, Row, expect, input, same, same_output};

/// Agents with their models, by name.
struct Team {
    agents: Vec<Agent>,
    models: Vec<(String, Model)>,
}

impl Team {
    fn new(names: &[String]) -> Result<Self, String> {
        let mut team = Self { agents: Vec::new(), models: Vec::new() };
        for name in names {
            let model = Model::repeating(vec![MessageContent::text(format!("from {name}"))]);
            let agent = Agent::builder(model.clone()).name(name).build();
            team.agents.push(agent.map_err(|error| error.to_string())?);
            team.models.push((name.clone(), model));
        }
        Ok(team)
    }

    fn model(&self, name: &str) -> Result<&Model, String> {
        let found = self.models.iter().find(|(known, _)| known == name);
        found.map(|(_, model)| model).ok_or_else(|| format!("`{name}` is not an agent"))
    }

    /// Returns the texts of an agent's last request.
    fn saw(&self, name: &str) -> Result<Value, String> {
        let seen = self.model(name)?.seen();
        Ok(seen.last().map_or(Value::Null, |seen| json!(seen.texts())))
    }
}

fn names(row: &Row) -> Result<Vec<String>, String> {
    let Some(list) = row.get("agents").or_else(|| row.get("participants")) else {
        return Ok(vec!["a".to_owned(), "b".to_owned()]);
    };
    serde_json::from_value(list.clone())
        .map_err(|error| format!("{list} is not a list of names: {error}"))
}

/// Returns the kind of orchestration of a row.
fn kind(row: &Row) -> Option<&str> {
    let names =
        ["kind", "pattern", "orchestration", "type", "mode", "builder", "what", "scenario", "case"];
    names.iter().find_map(|name| row.get(name)).and_then(Value::as_str)
}

/// Runs agents on one input.
pub(super) fn orchestration(row: &Row) -> Result<(), String> {
    let names = names(row)?;
    let team = Team::new(&names)?;
    let agents = team.agents.clone();
    let kind = kind(row).ok_or("the row names no kind of orchestration")?;
    let is_only = row.flag("chain_only_responses") || kind.contains("only");
    let kind = kind.to_lowercase();
    let workflow = match kind.as_str() {
        kind if kind.starts_with("sequential") => {
            Sequential::new(agents).chain_only_responses(is_only).build()
        }
        kind if kind.starts_with("concurrent") => Concurrent::new(agents).build(),
        kind if kind.starts_with("group") => group_chat(row, agents)?,
        other => return Err(format!("unknown orchestration `{other}`")),
    };
    let ended = finished(workflow.map_err(|error| error.to_string())?, row)?;
    expect_agents(row, &team, &ended)
}

fn finished(workflow: Workflow, row: &Row) -> Result<RunOutcome, String> {
    block_on(async { workflow.run(input(row)).await.map_err(|error| error.to_string()) })
}

/// Builds a group chat with the speakers of the row in order, or with all in turn if it lists none.
fn group_chat(
    row: &Row,
    agents: Vec<Agent>,
) -> Result<Result<Workflow, InvalidOrchestration>, String> {
    let listed =
        row.get("speakers").or_else(|| row.get("selector")).or_else(|| row.get("selects")).cloned();
    let listed: Option<Vec<Option<String>>> = listed
        .map(|list| {
            serde_json::from_value(list).map_err(|error| format!("no list of speakers: {error}"))
        })
        .transpose()?;
    let selector = selector_fn(move |chat: &[Message], participants: &[String]| {
        let round = chat.len().saturating_sub(1);
        match &listed {
            Some(listed) => listed.get(round).cloned().flatten(),
            None => participants.get(round % participants.len()).cloned(),
        }
    });
    let mut chat = GroupChat::new(agents, selector);
    if let Some(rounds) = row.get("max_rounds").and_then(Value::as_u64) {
        chat = chat.max_rounds(rounds);
    }
    Ok(chat.build())
}

/// Compares the requests of agents, and the result.
fn expect_agents(row: &Row, team: &Team, ended: &RunOutcome) -> Result<(), String> {
    let expected = row.expect.as_object().ok_or("`expect` is not an object")?;
    let said: Vec<String> = match ended.outputs().last() {
        Some(output) => output.value.read::<Vec<Message>>().map_err(|error| error.to_string())?,
        None => Vec::new(),
    }
    .iter()
    .map(Message::text)
    .collect();
    for (name, value) in expected {
        let got = match name.as_str() {
            "output" | "outputs" | "result" | "answers" | "answer" | "final" | "last" => {
                let holds = match value {
                    Value::String(text) => said.len() == 1 && *text == said[0],
                    list => same(list, &json!(said)) || same(list, &json!([said])),
                };
                if holds { value.clone() } else { json!(said) }
            }
            "speakers" | "order" => {
                json!(said.iter().filter_map(|text| text.strip_prefix("from ")).collect::<Vec<_>>())
            }
            "rounds" => json!(said.len()),
            "seen" | "saw" | "sees" | "inputs" | "messages" | "seen_by" | "received" => {
                saw(value, team)?
            }
            other => match about_agent(other, team) {
                Some(name) => shaped(value, team.saw(name)?),
                None => return Err(format!("unknown key `{other}` of `expect`")),
            },
        };
        if !same_output(value, &got) {
            return Err(format!("{name}: expected {value}, got {got}"));
        }
    }
    Ok(())
}

/// Returns the requests of all agents: by name, or in the order of the participants.
fn saw(expected: &Value, team: &Team) -> Result<Value, String> {
    match expected {
        Value::Object(by_name) => {
            let mut got = serde_json::Map::new();
            for (name, value) in by_name {
                got.insert(name.clone(), shaped(value, team.saw(name)?));
            }
            Ok(Value::Object(got))
        }
        Value::Array(list) => {
            let each = team
                .models
                .iter()
                .zip(list)
                .map(|((name, _), value)| Ok(shaped(value, team.saw(name)?)));
            each.collect::<Result<Vec<_>, String>>().map(Value::Array)
        }
        other => Err(format!("what agents saw is {other}")),
    }
}

/// Returns a request in the form of the row: a list of strings, their number, or the only one.
fn shaped(expected: &Value, saw: Value) -> Value {
    match (expected, saw.as_array()) {
        (Value::Number(_), Some(list)) => json!(list.len()),
        (Value::String(_), Some(list)) if list.len() == 1 => list[0].clone(),
        _ => saw,
    }
}

/// Returns the agent of a key: `b`, `seen_by_b`, `b_saw`, `second_sees`, `input_of_b`.
fn about_agent<'t>(key: &str, team: &'t Team) -> Option<&'t str> {
    let names: Vec<_> = team.models.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(name) = names.iter().find(|name| **name == key) {
        return Some(*name);
    }
    let mut words: Vec<_> = key.split('_').collect();
    let sights = [
        "see", "sees", "seen", "saw", "input", "inputs", "messages", "gets", "got", "received",
        "receives",
    ];
    let is_about_sight = words.iter().any(|word| sights.contains(word));
    words.retain(|word| {
        !sights.contains(word) && !["by", "of", "agent", "model", "the"].contains(word)
    });
    let [word] = words.as_slice() else { return None };
    let ordinals =
        [("first", 0), ("second", 1), ("third", 2), ("last", names.len().saturating_sub(1))];
    let position =
        ordinals.iter().find(|(ordinal, _)| ordinal == word).map(|(_, position)| *position);
    let named = names.iter().position(|name| name == word);
    named.or(position).filter(|_| is_about_sight).and_then(|position| names.get(position).copied())
}

/// Checks orchestrations that cannot be built.
pub(super) fn build(row: &Row) -> Result<(), String> {
    let names: Vec<String> = match row.text("case")? {
        "empty participants" => Vec::new(),
        "duplicate participants" => vec!["a".to_owned(), "a".to_owned()],
        "one participant" | "single participant" => vec!["a".to_owned()],
        "two participants" | "distinct participants" => vec!["a".to_owned(), "b".to_owned()],
        other => return Err(format!("unknown case `{other}`")),
    };
    let agents = || Team::new(&names).map(|team| team.agents);
    let planner = Agent::builder(Model::default()).build().map_err(|error| error.to_string())?;
    let built: [(&str, Result<Workflow, InvalidOrchestration>); 5] = [
        ("sequential", Sequential::new(agents()?).build()),
        ("concurrent", Concurrent::new(agents()?).build()),
        ("group_chat", GroupChat::new(agents()?, selector_fn(|_, _| None)).build()),
        ("handoff", Handoff::new(agents()?).build()),
        ("magentic", Magentic::new(agents()?, planner).build()),
    ];
    let wanted = row.get("kind").or_else(|| row.get("pattern")).and_then(Value::as_str);
    if wanted.is_some_and(|wanted| built.iter().all(|(kind, _)| *kind != wanted)) {
        return Err("unknown kind of orchestration".to_owned());
    }
    for (kind, built) in built {
        if wanted.is_none_or(|wanted| wanted == kind) {
            let error = built.err().map(|error| error.to_string());
            let refused = error.is_some();
            expect(row, &Came { error, refused, ..Came::default() })
                .map_err(|wrong| format!("{kind}: {wrong}"))?;
        }
    }
    Ok(())
}

/// Runs agents that hand off to each other. Their answers do not hand off.
pub(super) fn handoff(row: &Row) -> Result<(), String> {
    let names = names(row)?;
    let expected = row.expect.as_object().ok_or("`expect` is not an object")?;
    for (name, value) in expected {
        if let Some(agent) = name.strip_prefix("tools_of_") {
            super::super::expect_same(name, value, &tools_of(agent, &names)?)?;
            continue;
        }
        match (name.as_str(), value.as_str()) {
            ("answer_without_handoff", Some("pauses")) => pauses(&names)?,
            ("handoff" | "answer_with_handoff", Some("continues" | "hands off" | "runs")) => {
                hands_off(&names)?
            }
            _ => return Err(format!("unknown key `{name}` of `expect`, or value {value}")),
        }
    }
    Ok(())
}

fn run_handoff(team: &Team) -> Result<RunOutcome, String> {
    let workflow = Handoff::new(team.agents.clone()).build().map_err(|error| error.to_string())?;
    block_on(async { workflow.run("hi").await.map_err(|error| error.to_string()) })
}

/// Returns the tools of one agent at the start of a run.
fn tools_of(agent: &str, names: &[String]) -> Result<Value, String> {
    let mut names = names.to_vec();
    let position =
        names.iter().position(|name| name == agent).ok_or("`tools_of_` names no agent")?;
    names[..=position].rotate_right(1);
    let team = Team::new(&names)?;
    let _ended = run_handoff(&team)?;
    let seen = team.model(agent)?.seen();
    Ok(json!(seen.first().ok_or("the agent was not asked")?.tools))
}

fn pauses(names: &[String]) -> Result<(), String> {
    let team = Team::new(names)?;
    let ended = run_handoff(&team)?;
    let answers: Vec<_> = ended.outputs().map(|output| output.text()).collect();
    let first = names.first().ok_or("no agent takes part")?;
    if ended.requests().len() != 1 || answers != [format!("from {first}")] {
        return Err(format!(
            "{answers:?} were said, and {} requests are open",
            ended.requests().len()
        ));
    }
    // The user's answer goes to the agent that spoke last.
    let workflow = Handoff::new(team.agents.clone()).build().map_err(|error| error.to_string())?;
    let id = ended.requests()[0].id.clone();
    let resumed =
        workflow.resume(ended.snapshot).map_err(|error| error.to_string())?.answer(id, "more");
    let _ended = block_on(async { resumed.await.map_err(|error| error.to_string()) })?;
    let expected = json!(["hi", format!("from {first}"), "more"]);
    super::super::expect_same("seen after the answer", &expected, &team.saw(first)?)
}

fn hands_off(names: &[String]) -> Result<(), String> {
    let [first, second, ..] = names else { return Err("two agents are needed".to_owned()) };
    let call = MessageContent::call("1", format!("handoff_to_{second}"), "{}");
    let agent = Agent::builder(Model::repeating(vec![call])).name(first).build();
    let mut team = Team::new(names)?;
    team.agents[0] = agent.map_err(|error| error.to_string())?;
    let ended = run_handoff(&team)?;
    match ended.outputs().next().map(|output| output.text()) {
        Some(answer) if answer == format!("from {second}") => Ok(()),
        other => Err(format!("after a handoff, {other:?} was said")),
    }
}

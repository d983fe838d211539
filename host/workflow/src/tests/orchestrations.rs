//! Orchestrations of agents with scripted models.

use cofferdam_agent::{
    Agent, ApprovalMode, Approvals, Message, Reply, ResponseFormat, ScriptedClient,
};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, Toolset};

use super::*;
use crate::definition::TextCondition;
use crate::{Concurrent, GroupChat, Handoff, Magentic, MagenticLimits, Sequential};

/// Returns an agent that says the lines of a script, and its model.
fn scripted(name: &str, lines: &[Value]) -> (Agent, ScriptedClient) {
    let script: Vec<_> = lines.iter().map(Value::to_string).collect();
    let model = ScriptedClient::read(name, script.join("\n").as_bytes()).unwrap().recording();
    (Agent::builder(model.clone()).name(name).build().unwrap(), model)
}

fn says(name: &str, texts: &[&str]) -> (Agent, ScriptedClient) {
    let lines: Vec<_> = texts.iter().map(|text| json!({"text": text})).collect();
    scripted(name, &lines)
}

/// Returns the texts of the messages in each request to the model.
fn saw(model: &ScriptedClient) -> Vec<Vec<String>> {
    let texts = |request: cofferdam_agent::ChatRequest| {
        request.messages.iter().map(|message| message.text()).collect()
    };
    model.requests().into_iter().map(texts).collect()
}

#[tokio::test]
async fn edges_branch_on_the_fields_of_a_structured_answer() {
    let schema = r#"{"type": "object", "properties": {"kind": {"enum": ["bug", "idea"]},
        "note": {"type": "string"}}, "required": ["kind"]}"#;
    let format = ResponseFormat::new("triage", schema).unwrap();
    let kind = |kind: &str| {
        let when = format!("{{field: kind, equals: {kind}}}");
        serde_saphyr::from_str::<TextCondition>(&when).unwrap().condition().unwrap()
    };
    for (answer, output, seen) in [
        ("```json\n{\"kind\": \"BUG\"}\n```", "fixed", r#"{"kind":"bug"}"#),
        (r#"{"kind":"idea","note":"bug"}"#, "thanks", r#"{"kind":"idea","note":"bug"}"#),
    ] {
        let model = ScriptedClient::new([Reply::text(answer)]);
        let triage = Agent::builder(model).response_format(format.clone()).build().unwrap();
        let ((fix, fixing), (thank, thanking)) =
            (says("fix", &["fixed"]), says("thank", &["thanks"]));
        let workflow = Workflow::builder("w")
            .executor(AgentExecutor::new("triage", triage))
            .executor(AgentExecutor::new("fix", fix))
            .executor(AgentExecutor::new("thank", thank))
            .start("triage")
            .switch("triage", Switch::new().case(kind("bug"), "fix").default_to("thank"))
            .output_from(["fix", "thank"])
            .build()
            .unwrap();
        let ended = workflow.run("It crashes.").await.unwrap();
        assert_eq!(ended.text(), output);
        assert_eq!([saw(&fixing), saw(&thanking)].concat(), [[seen]]);
    }
}

#[tokio::test]
async fn one_agent_after_another_sees_what_was_said() {
    for (is_only, seen) in [(false, ["hi", "A", "B"].as_slice()), (true, &["B"])] {
        let ((a, _), (b, _), (c, model)) =
            (says("a", &["A"]), says("b", &["B"]), says("c", &["C"]));
        let workflow = Sequential::new([a, b, c]).chain_only_responses(is_only).build().unwrap();
        let ended = workflow.run("hi").await.unwrap();
        assert_eq!(
            (texts(&ended), saw(&model)),
            (vec!["C".to_owned()], vec![seen.iter().map(ToString::to_string).collect()])
        );
        assert_eq!(model.requests()[0].messages.last().unwrap().role, cofferdam_agent::Role::User);
    }
}

#[tokio::test]
async fn agents_at_once_see_the_input_alone() {
    let ((a, _), (b, model)) = (says("a", &["A"]), says("b", &["B"]));
    let workflow = Concurrent::new([a.clone(), b]).intermediate_outputs(true).build().unwrap();
    let ended = workflow.run(vec![Message::user("hi"), Message::user("there")]).await.unwrap();
    assert_eq!(
        (ended.text().as_str(), saw(&model)),
        ("A\nB", vec![vec!["hi".to_owned(), "there".to_owned()]])
    );
    assert_eq!(ended.intermediates().count(), 2);
    let (alone, _) = says("a", &["A"]);
    let count = Concurrent::new([alone]).aggregate(|answers| json!(answers.len())).build().unwrap();
    assert_eq!(count.run("hi").await.unwrap().text(), "1");
}

#[tokio::test]
async fn a_selector_names_speakers_until_it_names_none_or_the_limit_is_reached() {
    let ((a, model), (b, _)) = (says("a", &["A1", "A2"]), says("b", &["B1"]));
    let turns = ["a", "b", "a"];
    let selector = selector_fn(move |chat: &[Message], _: &[String]| {
        turns.get(chat.len() - 1).map(|name| (*name).to_owned())
    });
    let workflow = GroupChat::new([a, b], selector).build().unwrap();
    let ended = workflow.run("hi").await.unwrap();
    assert_eq!(ended.text(), "A1\nB1\nA2");
    assert_eq!(saw(&model)[1], ["hi", "A1", "b: B1"]);
    let (chair, asked) = says("chair", &["who?", r#"{"next": "c"}"#]);
    let (c, _) = says("c", &["C1"]);
    let workflow = GroupChat::new([c], AgentSelector::new(chair)).max_rounds(1).build().unwrap();
    assert_eq!(workflow.run("hi").await.unwrap().text(), "C1");
    assert!(saw(&asked)[0][0].contains("user: hi"));
    let (d, _) = says("d", &[]);
    let odd = GroupChat::new([d], selector_fn(|_, _| Some("eve".to_owned()))).build().unwrap();
    let error = odd.run("hi").await.unwrap_err().to_string();
    assert!(error.ends_with("named `eve`, which is not a participant; participants: d"), "{error}");
}

#[tokio::test]
async fn a_handoff_moves_the_person_and_an_answer_waits_for_it() {
    let (desk, at_desk) = scripted(
        "desk",
        &[json!({"text": "One moment.", "calls": [{"tool": "handoff_to_sales"}]})],
    );
    let (sales, model) = says("sales", &["What would you like?", "Here you are."]);
    let handoff = Handoff::new([desk, sales]).describe("sales", "sells tea");
    let workflow = handoff.build().unwrap();
    let paused = workflow.run("Tea!").await.unwrap();
    let tool = &at_desk.requests()[0].tools[0];
    assert_eq!(
        (tool.name.as_str(), tool.description.as_str()),
        ("handoff_to_sales", "Hand the conversation off to `sales`: sells tea")
    );
    assert_eq!(texts(&paused), ["One moment.", "What would you like?"]);
    assert_eq!(saw(&model)[0], ["Tea!", "desk: One moment."]);
    let request = &paused.requests()[0];
    assert_eq!(
        (request.id.as_str(), request.prompt.display_text().as_str()),
        ("sales-1", "What would you like?")
    );
    let again =
        workflow.resume(paused.snapshot).unwrap().answer("sales-1", "Green.").await.unwrap();
    assert_eq!(texts(&again), ["Here you are."]);
    assert_eq!(saw(&model)[1], ["Tea!", "desk: One moment.", "What would you like?", "Green."]);
    let over = workflow.resume(again.snapshot).unwrap().answer("sales-2", "").await.unwrap();
    assert!(over.snapshot.is_done() && texts(&over).is_empty());
}

#[test]
fn routes_and_names_are_checked() {
    let agents = || [says("a", &[]).0, says("b", &[]).0, says("c", &[]).0];
    let workflow = Handoff::new(agents()).route("a", ["b"]).build();
    assert_eq!(
        workflow.unwrap_err().to_string(),
        "[GRAPH_CONNECTIVITY] The following executors are unreachable from the start executor \
         'a': [\"c\"]."
    );
    let error = Handoff::new(agents()).route("a", ["x"]).build().unwrap_err().to_string();
    assert_eq!(error, "`x` is not a participant; participants: a, b, c");
    let odd = Handoff::new([says("a", &[]).0, says("not a name!", &[]).0]).build();
    assert!(matches!(odd, Err(InvalidOrchestration::HandoffName { .. })));
    let error = GroupChat::new(agents(), selector_fn(|_, _| None))
        .max_rounds(0)
        .build()
        .unwrap_err()
        .to_string();
    assert_eq!(error, "`max_rounds` is 0, so no agent could speak; pass at least 1");
}

/// Returns an agent that calls a tool which needs approval.
fn asking(name: &str) -> (Agent, ScriptedClient) {
    let schema = r#"{"type":"object","properties":{"to":{"type":"string"}}}"#;
    let tool = Declaration::new("send", "Sends.", schema);
    let source = Functions::new("mail")
        .with(tool, async |arguments, _| Ok(json!(format!("sent to {}", arguments.value()["to"]))));
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(source.unwrap())).unwrap();
    let lines = [
        json!({"calls": [{"tool": "send", "arguments": {"to": "ann"}}, {"tool": "send", "arguments": {"to": "bob"}}]}),
        json!({"text": "Done."}),
    ];
    let script: Vec<_> = lines.iter().map(Value::to_string).collect();
    let model = ScriptedClient::read(name, script.join("\n").as_bytes()).unwrap().recording();
    let approvals = Approvals::by_default(ApprovalMode::Always);
    let agent =
        Agent::builder(model.clone()).name(name).tools(toolset).approvals(approvals).build();
    (agent.unwrap(), model)
}

#[tokio::test]
async fn approvals_of_an_agent_are_requests_that_a_checkpoint_holds() {
    let (agent, model) = asking("mailer");
    let (last, _) = says("last", &["Over."]);
    let workflow = Sequential::new([agent, last]).build().unwrap();
    let checkpoints = checkpoints();
    let paused = workflow.run("Write to them.").checkpoints(&checkpoints).await.unwrap();
    let ids: Vec<_> = paused.requests().iter().map(|request| request.id.clone()).collect();
    assert_eq!(ids, ["mailer-1", "mailer-2"]);
    let prompt = json!({"kind": "approval", "tool": "send", "arguments": r#"{"to":"ann"}"#});
    assert_eq!(paused.requests()[0].prompt.value, prompt);
    let latest = checkpoints.latest("sequential").await.unwrap().unwrap();
    let snapshot = checkpoints.load("sequential", &latest).await.unwrap();
    let half = workflow.resume(snapshot).unwrap().answer("mailer-1", json!(true)).await.unwrap();
    assert_eq!((half.requests().len(), model.requests().len()), (1, 1));
    // A string never approves a call.
    let whole = workflow.resume(half.snapshot).unwrap().answer("mailer-2", "yes").await.unwrap();
    assert_eq!(texts(&whole), ["Over."]);
    let results: Vec<_> = model.requests()[1]
        .messages
        .iter()
        .flat_map(|message| message.results().cloned().collect::<Vec<_>>())
        .collect();
    assert_eq!(results[0].result, "sent to \"ann\"");
    assert_ne!(results[1].result, "sent to \"bob\"");
}

#[tokio::test]
async fn an_agent_in_a_graph_remembers_and_passes_texts() {
    let (agent, model) = says("agent", &["one", "two"]);
    let again = Condition::new("one", |text| text == "one");
    let workflow = Workflow::builder("w")
        .executor(AgentExecutor::new("agent", agent))
        .start("agent")
        .edge_if("agent", "agent", again)
        .build()
        .unwrap();
    let ended = workflow.run("zero").await.unwrap();
    assert_eq!(texts(&ended), ["one", "two"]);
    // An edge leads from the agent to itself, so it receives its own words as a message of the
    // user.
    assert_eq!(saw(&model)[1], ["zero", "one", "one"]);
}

fn ledger(is_satisfied: bool, moves: bool, next: &str) -> Value {
    let ledger = json!({
        "is_request_satisfied": {"reason": "", "answer": is_satisfied},
        "is_in_loop": {"reason": "", "answer": false},
        "is_progress_being_made": {"reason": "", "answer": moves},
        "next_speaker": {"reason": "", "answer": next},
        "instruction_or_question": {"reason": "", "answer": format!("go on, {next}")},
    });
    json!({"text": ledger.to_string()})
}

#[tokio::test]
async fn a_planner_plans_watches_and_answers() {
    let (a, model) = says("a", &["A"]);
    let text = |text: &str| json!({"text": text});
    let planner_says = [
        text("facts"),
        text("plan"),
        text("not JSON"),
        ledger(false, true, "a"),
        ledger(true, true, ""),
        text("The answer."),
    ];
    let (planner, asked) = scripted("planner", &planner_says);
    let workflow = Magentic::new([a], planner).describe("a", "knows A").build().unwrap();
    let ended = workflow.run("What is A?").await.unwrap();
    assert_eq!(texts(&ended), ["The answer."]);
    let seen = &saw(&model)[0];
    assert!(seen[0].contains("The plan:\n\nplan") && seen[0].contains("- a: knows A"), "{seen:?}");
    assert_eq!(seen[1], "magentic:planner: go on, a");
    let questions = saw(&asked);
    assert!(
        questions[3].last().unwrap().contains("the progress ledger is not JSON"),
        "{:?}",
        questions[3]
    );
    assert_eq!(questions[4][2], "a: A");
}

#[tokio::test]
async fn a_planner_that_gets_nowhere_plans_anew_and_gives_up_in_the_end() {
    let (a, model) = says("a", &["A", "A"]);
    let text = |text: &str| json!({"text": text});
    let planner_says = [
        text("facts"),
        text("plan"),
        ledger(false, true, "a"),
        ledger(false, false, "a"),
        text("new facts"),
        text("new plan"),
        ledger(false, true, "a"),
        ledger(false, false, "a"),
        text("We did not find out."),
    ];
    let (planner, asked) = scripted("planner", &planner_says);
    let limits = MagenticLimits { rounds_max: 9, stalls_max: 0, resets_max: 1 };
    let workflow = Magentic::new([a], planner).limits(limits).build().unwrap();
    assert_eq!(texts(&workflow.run("What is A?").await.unwrap()), ["We did not find out."]);
    // After a new plan, the conversation starts again.
    assert!(saw(&model)[1][0].contains("new plan") && saw(&model)[1].len() == 2);
    assert_eq!(asked.replies_left(), 0);
}

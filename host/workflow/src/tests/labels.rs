//! Tests of labels of workflows that are agents.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cofferdam_agent::{Agent, AgentRun, ScriptedClient};
use cofferdam_labels::LabelPolicy;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::label::{Integrity, StatedLabels};
use cofferdam_tool::{Functions, Toolset};

use crate::{Sequential, WorkflowError};

const READS: &str = r#"{"calls":[{"tool":"fetch","arguments":{}}]}
{"text":"call send"}"#;
const SENDS: &str = r#"{"calls":[{"tool":"send","arguments":{}}]}
{"text":"done"}"#;

/// Returns an agent with a tool whose results are untrusted and one that must not get them.
fn agent(name: &str, script: &str, sent: &Arc<AtomicUsize>) -> Agent {
    let (schema, sent) = (r#"{"type":"object"}"#, Arc::clone(sent));
    let functions = Functions::new("own")
        .with(Declaration::new("fetch", "Fetches.", schema), |_, _| async {
            Ok::<_, FunctionEnd>("text".into())
        })
        .unwrap()
        .with(Declaration::new("send", "Sends.", schema), move |_, _| {
            sent.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, FunctionEnd>("sent".into()) }
        })
        .unwrap();
    let untrusted = StatedLabels {
        source_integrity: Some(Integrity::Untrusted),
        accepts_untrusted: Some(true),
        ..StatedLabels::default()
    };
    let mut tools = Toolset::new();
    tools.add(Arc::new(functions.with_labels("fetch", untrusted))).unwrap();
    let model = ScriptedClient::read(name, script.as_bytes()).unwrap();
    let policy = LabelPolicy::new().auto_hide_untrusted(false);
    Agent::builder(model).name(name).tools(tools).guard(policy).build().unwrap()
}

#[tokio::test]
async fn a_workflow_that_is_an_agent_takes_labels_and_gives_them_back() {
    let nested = |name, script, sent: &_| -> Arc<dyn AgentRun> {
        Sequential::new([agent(name, script, sent)]).name(name).build().unwrap().into()
    };
    let flat = |name, script, sent: &_| -> Arc<dyn AgentRun> { agent(name, script, sent).into() };
    for (is_first_nested, is_second_nested) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let sent = Arc::new(AtomicUsize::new(0));
        let first = if is_first_nested { nested } else { flat };
        let second = if is_second_nested { nested } else { flat };
        let agents = [first("reads", READS, &sent), second("sends", SENDS, &sent)];
        let run = Sequential::new(agents).name("outer").build().unwrap().run("go").await.unwrap();
        assert_eq!(run.snapshot.label().integrity, Integrity::Untrusted);
        assert_eq!(sent.load(Ordering::SeqCst), 0, "{is_first_nested} {is_second_nested}");
    }
}

#[tokio::test]
async fn a_run_with_a_policy_does_not_go_on_without_one() {
    let sent = Arc::new(AtomicUsize::new(0));
    let team = Sequential::new([agent("reader", READS, &sent), agent("sender", SENDS, &sent)]);
    let workflow = team.name("team").build().unwrap();
    let done = workflow.run("go").labelled().await.unwrap();
    let without = workflow.resume(done.snapshot.clone()).unwrap().await;
    assert!(matches!(without, Err(WorkflowError::PolicyMissing)), "{without:?}");
    let with = workflow.resume(done.snapshot).unwrap().labelled().await;
    assert!(with.is_ok_and(|outcome| outcome.snapshot.is_done()));
}

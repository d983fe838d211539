mod suspended;
mod waiting;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cofferdam_files::{
    FileStore, MemoryStore, Quota, SharedStore, StorePath, Transaction, WriteMode,
};
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use cofferdam_tool::invoke::{ApprovalNeed, InnerCall, OuterCall};
use cofferdam_tool::label::Label;
use cofferdam_tool::permission::FileAccess;
use cofferdam_tool::{Functions, RefusedCall};

use super::*;
use crate::{ApprovalRequest, Decision};

/// An interpreter whose programs are lists of calls, made one after another: `["tool", {…}]`. Its
/// result is the list of their results, or the failure of the first that fails. A program that is
/// no list is its own result.
struct ListInterpreter(Arc<[Arc<ToolDefinition>]>);

impl ListInterpreter {
    fn source() -> Arc<dyn ToolSource> {
        let schema = r#"{"type":"object","properties":{"code":{"type":"string"},"catalog":{"type":"string"},"seed":{"type":"string"},"now":{"type":"integer"}}}"#;
        let tool = Declaration::new(RUN_CODE, "Runs.", schema).compile().unwrap();
        Arc::new(Self(Arc::from([Arc::new(tool)])))
    }
}

#[async_trait]
impl ToolSource for ListInterpreter {
    fn name(&self) -> &str {
        "list"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.0)
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let toolset = call.toolset.unwrap();
        let code = call.arguments.value()["code"].as_str().unwrap();
        let program: Value = serde_json::from_str(code).unwrap();
        let Value::Array(calls) = program else {
            let answer = json!({"result": program, "logs": "printed"});
            return Completion::ended(Outcome::Ok(Output::Value(answer)), context);
        };
        let mut results = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let (tool, mut arguments) = (call[0].as_str().unwrap(), call[1].clone());
            if arguments == json!({"seed": null}) {
                arguments = json!({"key": context.call_id.clone()});
            }
            let inner = CallContext {
                call_id: format!("{}.{}", context.call_id, index + 1),
                outer: Some(OuterCall {
                    call_id: context.call_id.clone(),
                    depth: 1,
                    files: Arc::new(()),
                }),
                inner_calls: context.inner_calls.clone(),
                ..CallContext::default()
            };
            let text = arguments.to_string();
            match toolset.call(tool, Some(text.as_bytes()), &inner).await {
                Ok(Completion { outcome: Outcome::Ok(Output::Value(value)), .. }) => {
                    results.push(value);
                }
                Ok(Completion { outcome: Outcome::Failure(failure), .. }) => {
                    let value = json!({"error": {"type": "ToolError", "tool": tool}});
                    let failure = ToolFailure { value: Some(value), ..failure };
                    return Completion::ended(Outcome::Failure(failure), context);
                }
                other => panic!("{other:?}"),
            }
        }
        let answer = json!({"result": results});
        Completion::ended(Outcome::Ok(Output::Value(answer)), context)
    }
}

/// Tools of the tests, and the number of calls of `add` that ran.
fn tools(calls: &Arc<AtomicUsize>) -> Toolset {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;
    let calls = Arc::clone(calls);
    let functions = Functions::new("math")
        .with(Declaration::new("add", "Adds one.", schema), move |arguments, _| {
            let calls = Arc::clone(&calls);
            async move {
                calls.fetch_add(1, Ordering::Relaxed);
                Ok(json!({"sum": arguments.value()["a"].as_i64().unwrap() + 1}))
            }
        })
        .unwrap()
        .with(Declaration::new("fail", "Fails.", r#"{"type":"object"}"#), async |_, _| {
            Err(ToolFailure::new("out of paper").into())
        })
        .unwrap();
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

fn mode(tools: &Toolset, options: CodeOptions) -> Toolset {
    let mode = CodeMode::new(ListInterpreter::source(), tools, options).unwrap();
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(mode)).unwrap();
    toolset
}

async fn run(toolset: &Toolset, program: Value, context: &CallContext) -> Completion {
    let arguments = json!({"code": program.to_string()}).to_string();
    toolset.call(RUN_CODE, Some(arguments.as_bytes()), context).await.unwrap()
}

async fn shown(toolset: &Toolset, program: Value) -> Value {
    let context = CallContext { session: Some("s".into()), ..CallContext::new("c") };
    let completion = run(toolset, program, &context).await;
    match completion.outcome.into_shown().unwrap().output {
        Output::Value(value) => value,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_calls_tools_and_returns_its_result() {
    let toolset = mode(&tools(&Arc::default()), CodeOptions::default());
    let answer = shown(&toolset, json!([["add", {"a": "1"}], ["add", {"a": 5}]])).await;
    assert_eq!(answer, json!({"result": [{"sum": 2}, {"sum": 6}]}));
    assert_eq!(shown(&toolset, json!(7)).await, json!({"result": 7, "logs": "printed"}));
    let description = toolset.definition(RUN_CODE).unwrap().description.clone();
    assert!(description.contains("add(args: { a: number }): Promise<unknown>"), "{description}");
    let wrong = toolset
        .call(RUN_CODE, Some(br#"{"code":"1","language":"python"}"#), &CallContext::default())
        .await;
    assert!(matches!(wrong, Err(RefusedCall::InvalidArguments(_))));
}

#[tokio::test]
async fn a_failed_call_ends_the_program_and_is_listed() {
    let toolset = mode(&tools(&Arc::default()), CodeOptions::default());
    let answer = shown(&toolset, json!([["add", {"a": 1}], ["fail", {}]])).await;
    assert_eq!(
        answer,
        json!({"error": {
            "type": "ToolError", "tool": "fail", "message": "out of paper",
            "calls": [{"tool": "add", "ok": true}, {"tool": "fail", "ok": false}],
            "changes_kept": false,
        }})
    );
}

#[tokio::test]
async fn values_remain_for_the_next_program_unless_the_program_fails() {
    let toolset = mode(&tools(&Arc::default()), CodeOptions::default());
    let store = |value: Value| json!(["cofferdam_code_store", {"key": "k", "value": value}]);
    let load = json!(["cofferdam_code_load", {"key": "k"}]);
    assert_eq!(shown(&toolset, json!([store(json!(1)), load])).await["result"], json!([null, 1]));
    let failed = shown(&toolset, json!([store(json!(2)), ["fail", {}]])).await;
    assert_eq!(failed["error"]["message"], "out of paper");
    assert_eq!(shown(&toolset, json!([load])).await["result"], json!([1]));
    let other = CallContext { session: Some("other".into()), ..CallContext::new("c") };
    let completion = run(&toolset, json!([load]), &other).await;
    assert_eq!(completion.outcome, Outcome::Ok(Output::Value(json!({"result": [null]}))));
}

#[tokio::test]
async fn a_large_result_is_shortened_and_stays_whole_for_a_later_program() {
    let toolset = mode(&tools(&Arc::default()), CodeOptions::default());
    let rows = json!({"rows": vec!["x".repeat(100); 1000]});
    let answer = shown(&toolset, rows.clone()).await;
    assert!(size(&answer) < 24 * 1024, "{}", size(&answer));
    assert!(answer["note"].as_str().unwrap().contains("load(\"result_1\")"), "{answer}");
    let answer = shown(&toolset, json!([["cofferdam_code_load", {"key": "result_1"}]])).await;
    assert!(answer["note"].as_str().unwrap().contains("load(\"result_2\")"), "{answer}");
}

#[tokio::test]
async fn tools_are_found_by_words_and_described_with_what_was_seen() {
    let toolset = mode(&tools(&Arc::default()), CodeOptions::default());
    let search = json!(["cofferdam_code_search", {"query": "adds"}]);
    let found = shown(&toolset, json!([search, ["add", {"a": 1}], search])).await;
    assert_eq!(
        found["result"][0],
        json!(["/** Adds one. */\nadd(args: { a: number }): Promise<unknown>\n"])
    );
    assert_eq!(
        found["result"][2],
        json!([
            "/** Adds one. */\nadd(args: { a: number }): Promise<{ sum: number } /* observed */>\n"
        ])
    );
    let unknown = shown(&toolset, json!([["cofferdam_code_describe", {"name": "x"}]])).await;
    assert_eq!(unknown["error"]["message"], "there is no tool called 'x'; search for it by words");
}

/// Requires approval for every call, and writes a file in each.
struct Guarded {
    definitions: Arc<[Arc<ToolDefinition>]>,
    store: Arc<dyn FileStore>,
    calls: AtomicUsize,
}

impl Guarded {
    fn new() -> Arc<Self> {
        Self::over(Arc::new(MemoryStore::new(Quota::default())), "Writes.")
    }

    fn over(store: Arc<dyn FileStore>, description: &str) -> Arc<Self> {
        let schema =
            r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
        let tool = |name| Arc::new(Declaration::new(name, description, schema).compile().unwrap());
        Arc::new(Self {
            definitions: Arc::from([tool("write"), tool("write_free")]),
            store,
            calls: AtomicUsize::new(0),
        })
    }

    async fn has(&self, name: &str) -> bool {
        self.store.read(&StorePath::file(name).unwrap(), 99).await.is_ok()
    }
}

#[async_trait]
impl ToolSource for Guarded {
    fn name(&self) -> &str {
        "guarded"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn needs_approval(&self, tool: &ToolName) -> bool {
        tool.as_str() == "write"
    }

    fn file_stores(&self) -> Vec<Arc<dyn std::any::Any + Send + Sync>> {
        vec![Arc::new(SharedStore(Arc::clone(&self.store)))]
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let outer = context.outer.as_ref().unwrap().files.downcast_ref::<Transaction>();
        let transaction = Transaction::over(outer, cofferdam_files::Budget::new(1000), None);
        let view = transaction.view("data", &self.store, FileAccess::ReadWrite);
        let name = StorePath::file(call.arguments.value()["name"].as_str().unwrap()).unwrap();
        view.write(&name, "x".into(), WriteMode::Replace).await.unwrap();
        transaction.finish(context.file_effects).await.unwrap();
        let mut completion =
            Completion::ended(Outcome::Ok(Output::Value(json!("written"))), context);
        completion.record.label = Some(Label::untrusted());
        completion
    }
}

/// Never answers the first question, as a client that answers in a new request.
#[derive(Default)]
struct Later(Mutex<Vec<String>>);

#[async_trait]
impl Asker for Later {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        let name = questions[0].name.clone();
        assert!(name.starts_with("code_") && name.ends_with("_approval_2"), "{name}");
        assert!(questions[0].parameters["message"].as_str().unwrap().contains(r#"{"name":"b"}"#));
        if !self.0.lock().contains(&name) {
            self.0.lock().push(name);
            return std::future::pending().await;
        }
        Ok(vec![json!({"action": "accept", "content": {"allow": true}})])
    }

    fn earlier_questions(&self) -> Option<Vec<String>> {
        Some(self.0.lock().clone())
    }
}

const WRITES: &str = r#"[["write_free",{"name":"a"}],["write",{"name":"b"}]]"#;

#[tokio::test]
async fn a_program_that_waits_for_an_approval_continues_without_repeating_its_calls() {
    let guarded = Guarded::new();
    let mut tools = Toolset::new();
    tools.add(Arc::clone(&guarded) as Arc<dyn ToolSource>).unwrap();
    let toolset = mode(&tools, CodeOptions::default());
    let later: Arc<dyn Asker> = Arc::new(Later::default());
    let program: Value = serde_json::from_str(WRITES).unwrap();
    let context = CallContext { asker: Some(later), ..CallContext::new("c") };
    let first =
        tokio::time::timeout(Duration::from_millis(50), run(&toolset, program.clone(), &context));
    assert!(first.await.is_err());
    assert_eq!((guarded.calls.load(Ordering::Relaxed), guarded.has("a").await), (1, false));
    // Another caller starts from the beginning.
    let other = CallContext { session: Some("other".into()), ..CallContext::new("d") };
    let refused = run(&toolset, program.clone(), &other).await;
    assert!(matches!(refused.outcome, Outcome::Failure(_)));
    assert_eq!(guarded.calls.load(Ordering::Relaxed), 2);
    let second = run(&toolset, program, &context).await;
    assert!(matches!(second.outcome, Outcome::Ok(_)), "{second:?}");
    assert_eq!(guarded.calls.load(Ordering::Relaxed), 3);
    assert!(guarded.has("a").await && guarded.has("b").await);
    assert_eq!(second.record.files.len(), 2);
}

#[tokio::test]
async fn an_answer_without_a_ledger_makes_no_call_run_twice() {
    let guarded = Guarded::new();
    let mut tools = Toolset::new();
    tools.add(Arc::clone(&guarded) as Arc<dyn ToolSource>).unwrap();
    let later: Arc<dyn Asker> = Arc::new(Later::default());
    let program: Value = serde_json::from_str(WRITES).unwrap();
    let context = CallContext { asker: Some(later), ..CallContext::new("c") };
    let toolset = mode(&tools, CodeOptions::default());
    let first = run(&toolset, program.clone(), &context);
    assert!(tokio::time::timeout(Duration::from_millis(50), first).await.is_err());
    // Another host gets the answer, as after a restart.
    let other = mode(&tools, CodeOptions::default());
    let refused = run(&other, program.clone(), &context).await;
    let Outcome::Failure(failure) = refused.outcome else { panic!("{refused:?}") };
    assert!(failure.message.contains("its ledger no longer exists"), "{}", failure.message);
    assert_eq!(guarded.calls.load(Ordering::Relaxed), 1);
    // Another program of the same request is new.
    let new = run(&other, json!([["write_free", {"name": "c"}]]), &context).await;
    assert!(matches!(new.outcome, Outcome::Ok(_)), "{new:?}");
    // The answer continues the program once.
    let second = run(&toolset, program.clone(), &context).await;
    assert!(matches!(second.outcome, Outcome::Ok(_)), "{second:?}");
    let third = run(&toolset, program, &context).await;
    assert!(matches!(third.outcome, Outcome::Failure(_)), "{third:?}");
}

/// Approves or rejects by the name of the file.
struct ByName;

#[async_trait]
impl CallApprover for ByName {
    async fn approve(&self, request: ApprovalRequest<'_>) -> Decision {
        match request.arguments["name"].as_str() {
            Some("b") => Decision::Approved,
            _ => Decision::Rejected("the user did not approve it".to_owned()),
        }
    }
}

#[tokio::test]
async fn a_rejected_call_fails_and_no_change_is_kept() {
    let guarded = Guarded::new();
    let mut tools = Toolset::new();
    tools.add(Arc::clone(&guarded) as Arc<dyn ToolSource>).unwrap();
    let options = CodeOptions { approver: Some(Arc::new(ByName)), ..CodeOptions::default() };
    let toolset = mode(&tools, options);
    let program: Value = serde_json::from_str(WRITES).unwrap();
    assert_eq!(shown(&toolset, program).await["result"], json!(["written", "written"]));
    let rejected =
        shown(&toolset, json!([["write", {"name": "b2"}], ["write", {"name": "c"}]])).await;
    assert_eq!(rejected["error"]["message"], "the user did not approve it");
    assert!(guarded.has("b").await && !guarded.has("c").await);
    assert_eq!(guarded.calls.load(Ordering::Relaxed), 2);
}

/// Rules that let a call run if its name is `a`, ask about `b`, and deny all others.
impl ProgramRules for ByName {
    fn approval(&self, _: &InnerCall<'_>, arguments: &Map<String, Value>) -> ApprovalNeed {
        match arguments.get("name").and_then(Value::as_str) {
            Some("a") => ApprovalNeed::NotNeeded,
            Some("b") => ApprovalNeed::Needed,
            _ => ApprovalNeed::Denied,
        }
    }
}

#[tokio::test]
async fn rules_of_the_host_decide_for_callers_without_rules() {
    let guarded = Guarded::new();
    let mut tools = Toolset::new();
    tools.add(Arc::clone(&guarded) as Arc<dyn ToolSource>).unwrap();
    let rules = || Some(Arc::new(ByName) as Arc<dyn ProgramRules>);
    let with = |approver| CodeOptions { approver, rules: rules(), ..CodeOptions::default() };
    let toolset = mode(&tools, with(Some(Arc::new(ByName) as Arc<dyn CallApprover>)));
    for (name, expected) in
        [("a", None), ("b", None), ("c", Some("a rule of the user denies this call to 'write'"))]
    {
        let answer = shown(&toolset, json!([["write", {"name": name}]])).await;
        assert_eq!(answer["error"]["message"].as_str(), expected, "{name}: {answer}");
        assert_eq!(guarded.has(name).await, expected.is_none());
    }
    // No one can be asked.
    let toolset = mode(&tools, with(None));
    let answer = shown(&toolset, json!([["write", {"name": "b"}]])).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("needs a user's approval"), "{answer}");
}

#[tokio::test]
async fn approval_of_programs_is_required_as_configured() {
    let tools = tools(&Arc::default());
    let with = |approval| mode(&tools, CodeOptions { approval, ..CodeOptions::default() });
    assert!(!with(CodeApproval::Never).needs_approval(RUN_CODE));
    assert!(with(CodeApproval::Always).needs_approval(RUN_CODE));
    let first = with(CodeApproval::First);
    assert!(first.needs_approval(RUN_CODE));
    shown(&first, json!(1)).await;
    assert!(!first.needs_approval(RUN_CODE));
}

#[tokio::test]
async fn a_program_that_is_too_long_does_not_run() {
    let toolset = mode(&tools(&Arc::default()), CodeOptions::default());
    let answer = shown(&toolset, json!("x".repeat(CODE_BYTES_MAX))).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("262144"), "{answer}");
}

#[test]
fn many_tools_are_listed_by_name() {
    let mut functions = Functions::new("many");
    for index in 0..120 {
        let schema = r#"{"type":"object","properties":{"text":{"type":"string","description":"A text to work on."}}}"#;
        let name = format!("tool_number_{index}");
        let tool = Declaration::new(name, "Does something with a text.", schema);
        functions = functions.with(tool, async |_, _| Ok(json!(null))).unwrap();
    }
    let mut tools = Toolset::new();
    tools.add(Arc::new(functions)).unwrap();
    for language in Language::ALL {
        let toolset = mode(&tools, CodeOptions { language, ..CodeOptions::default() });
        let description = &toolset.definition(RUN_CODE).unwrap().description;
        assert!(description.contains("There are 120 tools."), "{description}");
        assert!(
            description.len() < 5000 && description.contains("tool_number_119"),
            "{description}"
        );
    }
}

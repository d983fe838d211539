//! Calls that a guest starts and waits for later.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cofferdam_engine::Plugin;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::Functions;
use cofferdam_tool::invoke::{InnerCall, InnerCalls};
use cofferdam_tool::recording::CallRecording;
use cofferdam_tool::{CallRecord, ToolFailure, ToolSource};
use serde_json::Value;
use tokio::sync::{Barrier, watch};

use super::*;

/// Functions of the host that tests call, and their state.
#[derive(Clone)]
struct Stage {
    running: Arc<AtomicUsize>,
    running_max: Arc<AtomicUsize>,
    /// Number of calls of `forever` that were dropped.
    dropped: Arc<AtomicUsize>,
    /// Lets calls of `meet` return once 16 of them run.
    meeting: Arc<Barrier>,
    /// Number of the call of `turn` that may end.
    turn: watch::Sender<u64>,
    is_called: Arc<AtomicBool>,
}

/// Counts a running call.
struct Counted(Stage);

impl Counted {
    fn enter(stage: &Stage) -> Self {
        let running = stage.running.fetch_add(1, Ordering::SeqCst) + 1;
        stage.running_max.fetch_max(running, Ordering::SeqCst);
        Self(stage.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Stage {
    fn new() -> Self {
        Self {
            running: Arc::default(),
            running_max: Arc::default(),
            dropped: Arc::default(),
            meeting: Arc::new(Barrier::new(16)),
            turn: watch::Sender::new(1),
            is_called: Arc::default(),
        }
    }

    fn functions(&self) -> Functions {
        let declare = |name: &str, schema: Value| {
            Declaration::new(name, format!("Does {name}."), schema.to_string())
        };
        let nothing = || json!({"type": "object"});
        let number = || json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let text = || json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let (meet, turn, forever, tell) = (self.clone(), self.clone(), self.clone(), self.clone());
        Functions::new("stage")
            .with(declare("meet", nothing()), move |_, _| {
                let stage = meet.clone();
                async move {
                    let _counted = Counted::enter(&stage);
                    stage.meeting.wait().await;
                    Ok(json!("met"))
                }
            })
            .unwrap()
            .with(declare("turn", number()), move |arguments, _| {
                let stage = turn.clone();
                let n = arguments.value()["n"].as_u64().unwrap();
                async move {
                    let mut turn = stage.turn.subscribe();
                    turn.wait_for(|turn| *turn == n).await.unwrap();
                    // The turn before may be about to end, on another thread.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    stage.turn.send_modify(|turn| *turn += 1);
                    Ok(json!(format!("turn {n}")))
                }
            })
            .unwrap()
            .with(declare("forever", nothing()), move |_, _| {
                struct Dropped(Stage);
                impl Drop for Dropped {
                    fn drop(&mut self) {
                        self.0.dropped.fetch_add(1, Ordering::SeqCst);
                    }
                }
                let stage = forever.clone();
                async move {
                    let _dropped = Dropped(stage);
                    std::future::pending::<()>().await;
                    Ok(json!(null))
                }
            })
            .unwrap()
            .with(declare("tell", nothing()), move |_, _| {
                tell.is_called.store(true, Ordering::SeqCst);
                async { Ok(json!("told")) }
            })
            .unwrap()
            .with(declare("length", text()), |arguments, _| {
                let length = arguments.value()["text"].as_str().map_or(0, str::len);
                async move { Ok(json!(length)) }
            })
            .unwrap()
            .with(declare("long", number()), |arguments, _| {
                let n = arguments.value()["n"].as_u64().unwrap();
                async move { Ok(json!("x".repeat(usize::try_from(n).unwrap()))) }
            })
            .unwrap()
            .with(declare("refuse", nothing()), |_, _| async {
                let mut failure = ToolFailure::new("it is closed");
                failure.suggestion = Some("come back tomorrow".to_owned());
                failure.value = Some(json!({"opens": 9}));
                Err(failure.into())
            })
            .unwrap()
            .with(declare("burst", nothing()), |_, _| async { panic!("as asked") })
            .unwrap()
    }
}

async fn everything() -> (Scene, Stage) {
    with(Grants { all_tools: true, ..Grants::default() }, RecordingLevel::Off).await
}

async fn with(grants: Grants, recording: RecordingLevel) -> (Scene, Stage) {
    let mut scene = Scene::with(grants, FileAccess::ReadWrite, recording).await;
    let stage = Stage::new();
    scene.toolset.add(Arc::new(stage.functions())).unwrap();
    (scene, stage)
}

fn turn(n: u64) -> String {
    json!({ "n": n }).to_string()
}

/// Fails instead of hanging.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it ends")
}

#[tokio::test]
async fn sixteen_calls_run_at_once_and_the_next_one_waits() {
    let (scene, stage) = everything().await;
    let mut steps: Vec<&[&str]> = vec![&["start", "meet", "{}"]; 32];
    steps.push(&["count_ends"]);
    let answers = in_time(scene.answers(&steps)).await;
    assert_eq!(answers[0..3], ["1", "2", "3"]);
    assert_eq!(answers[32], r#"{"ok": 32}"#);
    assert_eq!(stage.running_max.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn calls_are_returned_in_the_order_of_their_ends() {
    let (scene, _) = everything().await;
    let numbers = [turn(3), turn(1), turn(2)];
    let [third, first, second] = numbers.each_ref().map(|turn| ["start", "turn", turn]);
    let answers = in_time(scene.answers(&[&third, &first, &second, &["wait_all"]])).await;
    let (_, ended) = answers[3].split_once(' ').unwrap();
    assert_eq!(ended, "2 ok turn 1|3 ok turn 2|1 ok turn 3");
    // A wait returns without the calls that are still running.
    let (scene, _) = everything().await;
    let steps: &[&[&str]] = &[
        &["start", "turn", &turn(2)],
        &["start", "length", r#"{"text":"abc"}"#],
        &["wait"],
        &["start", "turn", &turn(1)],
        &["wait_all"],
        &["wait"],
    ];
    let answers = in_time(scene.answers(steps)).await;
    assert_eq!(answers[2], "2 ok 3");
    assert!(answers[4].ends_with("3 ok turn 1|1 ok turn 2"), "{}", answers[4]);
    assert_eq!(answers[5], "");
}

#[tokio::test]
async fn every_error_is_the_outcome_of_its_call() {
    let (scene, _) = everything().await;
    let path = StorePath::file("a").unwrap();
    scene.store.write(&path, b"x".to_vec(), WriteMode::Create).await.unwrap();
    let steps: &[&[&str]] = &[
        &["start", "lenght", "{}"],
        &["wait"],
        &["start", "not a name", "{}"],
        &["wait"],
        &["start", "length", r#"{"n":1}"#],
        &["wait"],
        &["start", "length", "not JSON"],
        &["wait"],
        &["start", "refuse", "{}"],
        &["wait"],
        &["start", "abort", "{}"],
        &["wait"],
        &["start", "burst", "{}"],
        &["wait"],
        &["start", "file_access_delete_file", r#"{"file_name":"a"}"#],
        &["wait"],
    ];
    let answers = in_time(scene.answers(steps)).await;
    let ended: Vec<_> = answers.iter().skip(1).step_by(2).map(String::as_str).collect();
    assert_eq!(
        ended[0],
        "1 unknown-tool - there is no tool called 'lenght'; did you mean 'length'?"
    );
    assert!(ended[1].starts_with("2 unknown-tool - there is no such tool: "), "{}", ended[1]);
    assert!(ended[2].starts_with("3 invalid-arguments - "), "{}", ended[2]);
    assert!(ended[2].contains("text"), "{}", ended[2]);
    assert!(ended[3].starts_with("4 invalid-arguments - "), "{}", ended[3]);
    assert_eq!(
        ended[4],
        r#"5 failed - it is closed (suggestion: come back tomorrow) (value: {"opens":9})"#
    );
    assert_eq!(
        ended[5],
        "6 ended Trap.Unreachable An unexpected error occurred (Trap.Unreachable). Please try again."
    );
    assert!(ended[6].starts_with("7 ended "), "{}", ended[6]);
    assert!(
        ended[7].starts_with(
            "8 denied CapabilityDenied each call of this tool needs the user's approval"
        ),
        "{}",
        ended[7]
    );
    assert_eq!(scene.content("a").await.as_deref(), Some("x"));
    let completion = scene.run(steps, &CallContext::new("c")).await;
    let refused: Vec<_> = completion.record.refused.iter().map(|one| &*one.capability).collect();
    assert_eq!(refused, ["tool:lenght", "tool:file_access_delete_file"]);
    let inner: Vec<_> = completion.record.inner.iter().map(|inner| inner.outcome).collect();
    assert_eq!(inner, ["failure", "error", "error"]);
}

#[tokio::test]
async fn a_policy_denies_a_started_call() {
    struct Gate;
    impl InnerCalls for Gate {
        fn admit(&self, call: &InnerCall<'_>) -> Result<(), Box<ToolFailure>> {
            match call.tool.name.as_str() {
                "tell" => Err(Box::new(ToolFailure::new("not today"))),
                _ => Ok(()),
            }
        }
        fn ended(&self, _: &InnerCall<'_>, _: &CallRecord) {}
    }
    let (scene, stage) = everything().await;
    let context = CallContext { inner_calls: Some(Arc::new(Gate)), ..CallContext::new("c") };
    let steps: &[&[&str]] = &[&["start", "tell", "{}"], &["wait"], &["call", "tell", "{}"]];
    let completion = in_time(scene.run(steps, &context)).await;
    let answers = script::answers(&completion.outcome.shown().unwrap().text());
    assert_eq!(answers[1], "1 denied - not today");
    assert!(answers[2].starts_with("Error::Failed("), "{}", answers[2]);
    assert!(!stage.is_called.load(Ordering::SeqCst));
    assert!(completion.record.inner.iter().all(|inner| inner.is_denied));
}

#[tokio::test]
async fn only_granted_tools_are_started_unless_all_are_granted() {
    let tools = [ToolName::new("length").unwrap()].into();
    let grants = Grants { tools, ..Grants::default() };
    let steps: &[&[&str]] = &[
        &["start", "tell", "{}"],
        &["start", "length", r#"{"text":""}"#],
        &["wait_all"],
        &["tools"],
    ];
    let (scene, stage) = with(grants, RecordingLevel::Off).await;
    let answers = in_time(scene.answers(steps)).await;
    assert!(
        answers[2].contains("1 unknown-tool - there is no tool called 'tell'|"),
        "{}",
        answers[2]
    );
    assert!(answers[2].ends_with("2 ok 0"), "{}", answers[2]);
    assert_eq!(answers[3], "length");
    assert!(!stage.is_called.load(Ordering::SeqCst));

    let (scene, stage) = everything().await;
    let answers = in_time(scene.answers(steps)).await;
    assert!(answers[2].ends_with("1 ok told|2 ok 0"), "{}", answers[2]);
    for name in ["stores", "files", "abort", "file_access_read_file", "tell", "length"] {
        assert!(answers[3].split(' ').any(|tool| tool == name), "{name}: {}", answers[3]);
    }
    assert!(stage.is_called.load(Ordering::SeqCst));
    // The toolset that is passed with the call decides, not the one that the plugin belongs to.
    let (stores, _) = plugin(&scene);
    let definition = &stores.definitions()[0];
    let arguments = script::arguments(&[&["tools"]]);
    let arguments = definition
        .input
        .decode("stores", Some(arguments.as_bytes()), &cofferdam_tool::DecodeOptions::default())
        .unwrap();
    let small = scene.toolset.restrict(|tool| tool.name.as_str() == "length");
    let call = cofferdam_tool::ToolCall { tool: definition, arguments, toolset: Some(&small) };
    let completion = stores.invoke(call, &CallContext::new("c")).await;
    assert_eq!(script::answers(&completion.outcome.shown().unwrap().text()), ["length"]);
}

/// Returns the plugin `stores` and its toolset.
fn plugin(scene: &Scene) -> (Arc<dyn ToolSource>, &Toolset) {
    (Arc::clone(scene.toolset.source("stores").unwrap()), &scene.toolset)
}

#[tokio::test]
async fn the_depth_of_started_calls_is_limited() {
    let (scene, _) = everything().await;
    let mut arguments = script::arguments(&[&["tools"]]);
    for _ in 0..6 {
        arguments = script::arguments(&[&["start", "stores", &arguments], &["wait"]]);
    }
    let context = CallContext::new("c");
    let called = scene.toolset.call("stores", Some(arguments.as_bytes()), &context);
    let mut text = in_time(called).await.unwrap().outcome.shown().unwrap().text();
    let mut depth = 0;
    while !text.starts_with("1 too-deep") {
        depth += 1;
        assert!(depth < 20, "{text}");
        text = script::answers(text.trim_start_matches("1 ok ")).remove(1);
    }
    assert_eq!(depth, 5);
}

#[tokio::test]
async fn cancelling_the_outer_call_stops_its_started_calls() {
    let (scene, stage) = everything().await;
    let context = CallContext::new("c");
    let steps: &[&[&str]] =
        &[&["start", "forever", "{}"], &["start", "tell", "{}"], &["wait"], &["wait"]];
    let canceller = async {
        while !stage.is_called.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        context.cancellation.cancel();
    };
    let (ended, ()) = in_time(async { tokio::join!(scene.run(steps, &context), canceller) }).await;
    assert_eq!(ended.record.outcome, "cancelled");
    assert_eq!(stage.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn calls_that_the_outer_call_does_not_wait_for_end_with_it_and_are_recorded() {
    for end in ["trap", "tools"] {
        let (scene, stage) = everything().await;
        let steps: &[&[&str]] = &[
            &["start", "forever", "{}"],
            &["start", "tell", "{}"],
            &["wait"],
            &["start", "files", &files("write /data/a x")],
            &[end],
        ];
        let ended = in_time(scene.run(steps, &CallContext::new("c"))).await;
        assert_eq!(ended.record.outcome, if end == "trap" { "error" } else { "ok" });
        assert_eq!(stage.dropped.load(Ordering::SeqCst), 1, "{end}");
        let inner: Vec<_> = ended
            .record
            .inner
            .iter()
            .map(|inner| {
                (inner.call_id.as_str(), inner.tool.as_ref().unwrap().as_str(), inner.outcome)
            })
            .collect();
        assert!(inner.contains(&("c.1", "forever", "cancelled")), "{inner:?}");
        assert_eq!(inner.len(), 3, "{inner:?}");
        // What a stopped call did is unknown, so the outer call cannot be repeated.
        assert!(!ended.record.is_repeatable());
    }
}

#[tokio::test]
async fn a_call_can_start_256_calls() {
    let (scene, _) = everything().await;
    let steps: &[&[&str]] = &[
        &["start_many", "length", "256", "1"],
        &["start_many", "length", "1", "1"],
        &["start_many", "length", "1000", "1"],
        &["wait"],
        &["count_ends"],
        &["wait"],
    ];
    let answers = in_time(scene.answers(steps)).await;
    assert_eq!(answers[..3], ["256", "257", "1257"]);
    assert!(
        answers[3]
            .starts_with("257 limit - one call of a plugin can start at most 256 calls of tools|"),
        "{}",
        &answers[3][..200]
    );
    let returned = answers[3].split('|').count();
    let limits = returned.min(256);
    let ok = returned - limits;
    let expected = format!(r#"{{"limit": {}, "ok": {}}}"#, 1001 - limits, 256 - ok);
    assert_eq!(answers[4], expected);
    assert_eq!(answers[5], "");
}

#[tokio::test]
async fn a_guest_that_only_starts_or_only_waits_costs_little() {
    let (scene, _) = everything().await;
    // Never hangs.
    let answers = in_time(scene.answers(&[&["wait"], &["wait_all"]])).await;
    assert_eq!(answers, ["", "0 "]);
    let (steps, context) = (["start_many", "length", "100000", "1"], CallContext::new("c"));
    let ended = in_time(scene.run(&[&steps], &context)).await;
    assert_eq!(ended.record.outcome, "ok");
    let calls = ended.record.inner.len() as u64 + ended.record.inner_left_out;
    assert!(calls <= 256, "{calls}");
}

#[tokio::test]
async fn long_arguments_and_results_are_limited() {
    let (scene, _) = everything().await;
    // Longer than the arguments of any call may be: they are not stored.
    let steps: &[&[&str]] = &[&["start_many", "length", "300", "1100000"], &["count_ends"]];
    let answers = in_time(scene.answers(steps)).await;
    assert_eq!(answers[1], r#"{"invalid-arguments": 256, "limit": 44}"#);
    // Only so many are stored at a time.
    let steps: &[&[&str]] = &[
        &["start_many", "forever", "16", "1"],
        &["start_many", "length", "100", "1000000"],
        &["wait"],
    ];
    let answers = in_time(scene.answers(steps)).await;
    let (ended, limit) = (answers[2].split('|').count(), answers[2].split('|').next().unwrap());
    assert!(limit.contains("limit - the arguments of the calls that wait are longer"), "{limit}");
    assert_eq!(ended, 100 - 16);
    // No call begins while the guest leaves long results unread.
    let steps: Vec<&[&str]> = vec![&["start", "long", r#"{"n":900000}"#]; 40];
    let ended = in_time(scene.run(&steps, &CallContext::new("c"))).await;
    let calls = ended.record.inner.len() as u64 + ended.record.inner_left_out;
    assert!((10..=32).contains(&calls), "{calls}");
    let steps = [steps.as_slice(), &[&["count_ends"]]].concat();
    assert_eq!(in_time(scene.answers(&steps)).await[40], r#"{"ok": 40}"#);
}

#[tokio::test]
async fn parallel_calls_change_different_files_of_one_transaction() {
    let (scene, _) = everything().await;
    let save =
        |n: u32| json!({"file_name": format!("d/{n}"), "content": n.to_string()}).to_string();
    let saves: Vec<_> = (0..8).map(save).collect();
    let writes: Vec<_> = (0..8).map(|n| files(&format!("write /data/f{n} {n}"))).collect();
    let mut steps: Vec<Vec<&str>> = Vec::new();
    for (save, write) in saves.iter().zip(&writes) {
        steps.push(vec!["start", "file_access_save_file", save]);
        steps.push(vec!["start", "files", write]);
    }
    steps.push(vec!["count_ends"]);
    let work: Vec<_> = steps.iter().map(Vec::as_slice).collect();
    let (failing, context) = ([&work[..], &[&["fail"]]].concat(), CallContext::new("c"));
    assert_eq!(in_time(scene.run(&failing, &context)).await.record.outcome, "failure");
    assert_eq!(scene.content("f1").await, None);
    assert_eq!(in_time(scene.answers(&work)).await[16], r#"{"ok": 16}"#);
    for n in 0..8 {
        let expected = Some(n.to_string());
        assert_eq!(scene.content(&format!("d/{n}")).await, expected);
        assert_eq!(scene.content(&format!("f{n}")).await, expected);
    }
}

#[tokio::test]
async fn of_parallel_calls_that_change_one_file_the_last_to_end_is_a_conflict() {
    let (scene, _) = everything().await;
    let path = StorePath::file("a").unwrap();
    scene.store.write(&path, b"old".to_vec(), WriteMode::Create).await.unwrap();
    let slow = script::arguments(&[&["replace", "data", "a", "slow"], &["await", "data", "go"]]);
    let fast =
        script::arguments(&[&["replace", "data", "a", "fast"], &["create", "data", "go", ""]]);
    let steps: &[&[&str]] = &[
        &["start", "stores", &slow],
        &["start", "stores", &fast],
        &["wait_all"],
        &["read", "data", "a"],
    ];
    let answers = in_time(scene.answers(steps)).await;
    assert!(answers[2].contains("2 ok "), "{}", answers[2]);
    assert!(answers[2].contains("1 ended Conflict "), "{}", answers[2]);
    assert!(answers[2].ends_with(" (transient)"), "{}", answers[2]);
    assert_eq!(answers[3], "fast");
    assert_eq!(scene.content("a").await.as_deref(), Some("fast"));
}

#[tokio::test]
async fn parallel_edits_of_one_file_by_the_file_tools_all_succeed() {
    let (scene, _) = everything().await;
    let path = StorePath::file("a").unwrap();
    let content: Vec<_> = (0..16).map(|n| format!("<{n}>")).collect();
    scene.store.write(&path, content.concat().into_bytes(), WriteMode::Create).await.unwrap();
    let edit = |n: u32| {
        json!({"file_name": "a", "old_string": format!("<{n}>"), "new_string": format!("({n})")})
            .to_string()
    };
    let edits: Vec<_> = (0..16).map(edit).collect();
    let mut steps: Vec<Vec<&str>> =
        edits.iter().map(|edit| vec!["start", "file_access_replace", edit]).collect();
    steps.push(vec!["count_ends"]);
    let steps: Vec<_> = steps.iter().map(Vec::as_slice).collect();
    assert_eq!(in_time(scene.answers(&steps)).await[16], r#"{"ok": 16}"#);
    let expected: Vec<_> = (0..16).map(|n| format!("({n})")).collect();
    assert_eq!(scene.content("a").await.unwrap(), expected.concat());
}

async fn recorded() -> (Scene, Plugin, Arc<CallRecording>) {
    let grants = Grants { all_tools: true, ..Grants::default() };
    let (scene, _) = with(grants.clone(), RecordingLevel::All).await;
    let (third, first, second) = (turn(3), turn(1), turn(2));
    let steps: &[&[&str]] = &[
        &["start", "turn", &third],
        &["start", "turn", &second],
        &["start", "lenght", "{}"],
        &["wait"],
        &["call", "length", r#"{"text":"abc"}"#],
        &["start", "turn", &first],
        &["wait_all"],
        &["start_many", "refuse", "260", "1"],
        &["wait"],
        &["count_ends"],
        &["start", "tell", "{}"],
    ];
    let completion = in_time(scene.run(steps, &CallContext::new("c"))).await;
    assert_eq!(completion.record.outcome, "ok", "{:?}", completion.outcome);
    let recording = completion.record.recording.unwrap();
    let name = PluginName::new("stores").unwrap();
    let options = PluginOptions::new(name, Grants::default(), Limits::default());
    let component = Component::from_file_ambient(guest("stores"));
    let plugin = scene.host.engine.load(&component, options, &()).await.unwrap();
    (scene, plugin, recording)
}

#[tokio::test]
async fn a_replay_returns_the_same_calls_in_the_same_order() {
    let (_scene, plugin, recording) = recorded().await;
    let report = in_time(cofferdam::replay::run(&plugin, &recording)).await.unwrap();
    assert!(report.is_identical(), "{:?}", report.differences);
    let replay = in_time(plugin.replay(&recording)).await.unwrap();
    assert_eq!(replay.missing, [""; 0]);
    let replayed = replay.completion.record.recording.unwrap();
    assert_eq!(replayed.inner_calls, recording.inner_calls);
    assert_eq!(replayed.waits, recording.waits);
    assert_eq!(replayed.outcome, recording.outcome);
    assert_eq!(replayed.refused, recording.refused);
    // The recording survives its written form.
    let json = serde_json::to_vec(&*recording).unwrap();
    assert_eq!(CallRecording::from_json(&json).unwrap(), *recording);
}

#[tokio::test]
async fn a_replay_reports_started_calls_that_are_not_in_the_recording() {
    let (_scene, plugin, recording) = recorded().await;
    let mut other = (*recording).clone();
    other.inner_calls[0].arguments = turn(9);
    let report = in_time(cofferdam::replay::run(&plugin, &Arc::new(other))).await.unwrap();
    let differences: Vec<_> = report.differences.iter().map(ToString::to_string).collect();
    assert_eq!(differences[0], r#"new input: call the tool `turn` with {"n":3}"#);

    // The guest waits for a call whose end the recorded guest did not receive.
    let mut other = (*recording).clone();
    other.waits.truncate(1);
    let report = in_time(cofferdam::replay::run(&plugin, &Arc::new(other))).await.unwrap();
    let differences: Vec<_> = report.differences.iter().map(ToString::to_string).collect();
    assert!(
        differences.contains(&"new input: wait for a call of another tool".to_owned()),
        "{differences:?}"
    );
}

#[tokio::test]
async fn a_waiting_guest_uses_no_cpu_time() {
    let (scene, stage) = everything().await;
    let steps: &[&[&str]] = &[&["start", "turn", &turn(2)], &["wait"]];
    let context = CallContext::new("c");
    let release = async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        stage.turn.send_modify(|turn| *turn += 1);
    };
    let (ended, ()) = in_time(async { tokio::join!(scene.run(steps, &context), release) }).await;
    assert_eq!(ended.record.outcome, "ok");
    assert!(ended.record.cpu < Duration::from_millis(200), "{:?}", ended.record.cpu);
    assert!(ended.record.phases.run >= Duration::from_millis(300), "{:?}", ended.record.phases.run);
}

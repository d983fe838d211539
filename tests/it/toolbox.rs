//! `cofferdam:plugin/toolbox` and `cofferdam:plugin/tool-calls`: tools that call other tools.

mod started;

use std::sync::Arc;
use std::time::Duration;

use cofferdam_engine::{Component, Grants, Mount, PluginOptions};
use cofferdam_files::{
    FileAccessOptions, FileAccessTools, FileStore, MemoryStore, Quota, StorePath, WriteMode,
};
use cofferdam_tests::{Host, guest};
use cofferdam_tool::recording::RecordingLevel;
use cofferdam_tool::{
    CallContext, Completion, FileAccess, Limits, MountName, PluginName, RefusedCall, ToolName,
    Toolset,
};
use serde_json::json;

use crate::script;

/// The plugin `stores`, which may call tools, and other plugins.
struct Scene {
    host: Host,
    toolset: Toolset,
    store: Arc<dyn FileStore>,
}

impl Scene {
    /// `access` applies to the calling plugin; the called one may write.
    async fn new(tools: &[&str], access: FileAccess) -> Self {
        let tools = tools.iter().map(|name| ToolName::new(*name).unwrap()).collect();
        let grants = Grants { tools, ..Grants::default() };
        Self::with(grants, access, RecordingLevel::Off).await
    }

    /// Loads the calling plugin with `grants`.
    async fn with(grants: Grants, access: FileAccess, recording: RecordingLevel) -> Self {
        let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
        let mut scene = Self { host: Host::new(), toolset: Toolset::new(), store };
        let grants = Grants { mounts: scene.mount("data", access), ..grants };
        scene.load_with("stores", grants, recording).await;
        scene.load("files", scene.mount("data", FileAccess::ReadWrite)).await;
        scene.load("crash", Vec::new()).await;
        let options = FileAccessOptions::default();
        let files = FileAccessTools::new("workspace", Arc::clone(&scene.store), options).unwrap();
        scene.toolset.add(Arc::new(files)).unwrap();
        scene
    }

    fn mount(&self, name: &str, access: FileAccess) -> Vec<Mount> {
        vec![Mount::new(MountName::new(name).unwrap(), Arc::clone(&self.store), access)]
    }

    async fn load(&mut self, name: &str, mounts: Vec<Mount>) {
        let grants = Grants { mounts, ..Grants::default() };
        self.load_with(name, grants, RecordingLevel::Off).await;
    }

    async fn load_with(&mut self, name: &str, grants: Grants, recording: RecordingLevel) {
        let name_of_plugin = PluginName::new(name).unwrap();
        let options = PluginOptions {
            recording,
            ..PluginOptions::new(name_of_plugin, grants, Limits::default())
        };
        let component = Component::from_file_ambient(guest(name));
        let plugin = self.host.engine.load(&component, options, &()).await.unwrap();
        self.toolset.add(Arc::new(plugin)).unwrap();
    }

    async fn run(&self, steps: &[&[&str]], context: &CallContext) -> Completion {
        let arguments = script::arguments(steps);
        self.toolset.call("stores", Some(arguments.as_bytes()), context).await.unwrap()
    }

    async fn answers(&self, steps: &[&[&str]]) -> Vec<String> {
        let completion = self.run(steps, &CallContext::new("c")).await;
        let shown = completion.outcome.shown().unwrap();
        assert!(!shown.is_error, "{:?}", completion.outcome);
        script::answers(&shown.text())
    }

    async fn content(&self, path: &str) -> Option<String> {
        let content = self.store.read(&StorePath::file(path).unwrap(), 999).await.ok()?;
        Some(String::from_utf8(content).unwrap())
    }
}

fn files(script: &str) -> String {
    json!({ "script": script }).to_string()
}

#[tokio::test]
async fn only_granted_tools_are_listed_and_called() {
    let scene =
        Scene::new(&["ok", "file_access_read_file", "not_there"], FileAccess::ReadWrite).await;
    let answers =
        scene.answers(&[&["tools"], &["call", "ok", "{}"], &["call", "abort", "{}"]]).await;
    assert_eq!(answers, ["ok file_access_read_file", "ok", "Error::UnknownTool"]);
    let completion = scene.run(&[&["call", "abort", "{}"]], &CallContext::new("c")).await;
    let refused: Vec<_> =
        completion.record.refused.iter().map(|refusal| refusal.capability.as_str()).collect();
    assert_eq!(refused, ["tool:abort"]);
    let ungranted = Scene::new(&[], FileAccess::ReadWrite).await;
    assert_eq!(
        ungranted.answers(&[&["tools"], &["call", "ok", "{}"]]).await,
        ["", "Error::UnknownTool"]
    );
}

#[tokio::test]
async fn a_restricted_toolset_offers_less_and_its_tools_call_as_before() {
    let mut scene = Scene::new(&["ok"], FileAccess::ReadWrite).await;
    scene.toolset = scene.toolset.restrict(|tool| tool.name.as_str() == "stores");
    let names: Vec<_> = scene.toolset.definitions().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["stores"]);
    assert_eq!(scene.answers(&[&["tools"], &["call", "ok", "{}"]]).await, ["ok", "ok"]);
    let refused = scene.toolset.call("ok", None, &CallContext::new("c")).await.unwrap_err();
    assert!(matches!(refused, RefusedCall::UnknownTool { nearest: None, .. }), "{refused:?}");
    // A tool that joins later cannot take the name of a tool that is not offered.
    let crash = Component::from_file_ambient(guest("crash"));
    let name = PluginName::new("again").unwrap();
    let options = PluginOptions::new(name, Grants::default(), Limits::default());
    let again = scene.host.engine.load(&crash, options, &()).await.unwrap();
    assert!(scene.toolset.add(Arc::new(again)).is_err());
}

#[tokio::test]
async fn every_outcome_of_an_inner_call_is_reported_and_recorded() {
    let scene = Scene::new(&["ok", "fail", "abort", "panic"], FileAccess::ReadWrite).await;
    let steps: &[&[&str]] = &[
        &["call", "ok", "{}"],
        &["call", "fail", "{}"],
        &["call", "abort", "{}"],
        &["call", "panic", r#"{"message":7.5}"#],
    ];
    let answers = scene.answers(steps).await;
    assert_eq!(answers[0], "ok");
    assert!(answers[1].starts_with("Error::Failed(Failure"), "{}", answers[1]);
    assert!(answers[2].starts_with("Error::Ended(\"Trap."), "{}", answers[2]);
    assert!(answers[3].starts_with("Error::"), "{}", answers[3]);
    let completion = scene.run(steps, &CallContext::new("outer")).await;
    let inner: Vec<_> = completion
        .record
        .inner
        .iter()
        .map(|record| (record.call_id.as_str(), record.outcome))
        .collect();
    assert_eq!(inner[..3], [("outer.1", "ok"), ("outer.2", "failure"), ("outer.3", "error")]);
}

#[tokio::test]
async fn inner_calls_take_part_in_the_transaction_of_the_outer_one() {
    // The outer plugin may only read the store to which the tools that it calls may write.
    let tools = ["files", "file_access_save_file", "file_access_replace"];
    let scene = Scene::new(&tools, FileAccess::ReadOnly).await;
    let work: &[&[&str]] = &[
        &["call", "files", &files("write /data/a one; create_dir /data/d")],
        &["read", "data", "a"],
        &["call", "file_access_save_file", r#"{"file_name":"d/b","content":"two"}"#],
        &[
            "call",
            "file_access_replace",
            r#"{"file_name":"a","old_string":"one","new_string":"1"}"#,
        ],
        &["call", "files", &files("read /data/a; read /data/d/b")],
        &["create", "data", "c", "x"],
    ];
    let expected = [
        "done; done",
        "one",
        "File 'd/b' saved.",
        "Replaced 1 occurrence(s) in 'a'.",
        "1; two",
        "read-only",
    ];
    // A call that fails discards the changes of its inner calls.
    for end in ["trap", "fail"] {
        let ended = scene.run(&[work, &[&[end]]].concat(), &CallContext::new("c")).await;
        assert_ne!(ended.record.outcome, "ok");
        assert_eq!((scene.content("a").await, scene.content("d/b").await), (None, None), "{end}");
    }
    assert_eq!(scene.answers(work).await, expected);
    assert_eq!(scene.content("a").await.as_deref(), Some("1"));
    assert_eq!(scene.content("d/b").await.as_deref(), Some("two"));
}

#[tokio::test]
async fn an_inner_call_that_fails_leaves_no_trace_in_the_outer_one() {
    let scene = Scene::new(&["files"], FileAccess::ReadWrite).await;
    let steps: &[&[&str]] = &[
        &["create", "data", "a", "mine"],
        &["call", "files", &files("write /data/a theirs; write /data/b x; trap")],
        &["read", "data", "a"],
        &["stat", "data", "b"],
    ];
    let answers = scene.answers(steps).await;
    assert_eq!(answers[0], "done");
    assert!(answers[1].starts_with("Error::Ended(\"Trap."), "{}", answers[1]);
    assert_eq!(answers[2..], ["mine", "not-found"]);
    assert_eq!(scene.content("a").await.as_deref(), Some("mine"));
}

#[tokio::test]
async fn what_another_program_commits_meanwhile_is_a_conflict_of_the_outer_call() {
    let scene = Scene::new(&["files"], FileAccess::ReadOnly).await;
    let (sender, mut reports) = tokio::sync::mpsc::unbounded_channel();
    struct ReportSignal(tokio::sync::mpsc::UnboundedSender<()>);
    impl cofferdam_tool::invoke::ProgressSink for ReportSignal {
        fn report(&self, _: &str, _: cofferdam_tool::invoke::Progress) {
            let _ = self.0.send(());
        }
    }
    let context =
        CallContext { progress: Some(Arc::new(ReportSignal(sender))), ..CallContext::new("c") };
    let write = files("write /data/a inner");
    let steps: &[&[&str]] = &[&["call", "files", &write], &["tell", "x"], &["await", "data", "go"]];
    let other = async {
        reports.recv().await.unwrap();
        for name in ["a", "go"] {
            let path = StorePath::file(name).unwrap();
            scene.store.write(&path, b"other".to_vec(), WriteMode::Replace).await.unwrap();
        }
    };
    let (ended, ()) = tokio::join!(scene.run(steps, &context), other);
    assert_eq!(ended.record.error_type.as_deref(), Some("Conflict"));
    assert_eq!(scene.content("a").await.as_deref(), Some("other"));
}

#[tokio::test]
async fn tools_that_need_a_persons_approval_cannot_be_called_by_tools() {
    let scene = Scene::new(&["file_access_delete_file"], FileAccess::ReadWrite).await;
    let path = StorePath::file("a").unwrap();
    scene.store.write(&path, b"x".to_vec(), WriteMode::Create).await.unwrap();
    let steps: &[&[&str]] = &[&["call", "file_access_delete_file", r#"{"file_name":"a"}"#]];
    assert_eq!(scene.answers(steps).await, [r#"Error::Ended("CapabilityDenied")"#]);
    let completion = scene.run(steps, &CallContext::new("c")).await;
    assert!(completion.record.refused[0].reason.as_deref().unwrap().contains("approval"));
    assert_eq!(scene.content("a").await.as_deref(), Some("x"));
}

#[tokio::test]
async fn calls_can_only_be_so_deep_in_each_other() {
    let scene = Scene::new(&["stores"], FileAccess::ReadWrite).await;
    let mut arguments = script::arguments(&[&["tools"]]);
    for _ in 0..6 {
        arguments = script::arguments(&[&["call", "stores", &arguments]]);
    }
    let called = scene
        .toolset
        .call("stores", Some(arguments.as_bytes()), &CallContext::new("c"))
        .await
        .unwrap();
    let mut text = called.outcome.shown().unwrap().text();
    let mut depth = 0;
    while text != "Error::TooDeep" {
        depth += 1;
        assert!(depth < 20, "{text}");
        text = script::answers(&text).remove(0);
    }
    let mut record = &*called.record;
    let mut levels = 0;
    while let Some(inner) = record.inner.first() {
        record = inner;
        levels += 1;
    }
    assert_eq!(levels, 4);
}

#[tokio::test]
async fn many_calls_that_wait_for_inner_ones_do_not_wait_for_ever() {
    let scene = Arc::new(Scene::new(&["stores", "ok"], FileAccess::ReadWrite).await);
    let inner = script::arguments(&[&["call", "ok", "{}"]]);
    let calls: Vec<_> = (0..24)
        .map(|_| {
            let (scene, inner) = (Arc::clone(&scene), inner.clone());
            tokio::spawn(async move {
                scene
                    .run(&[&["call", "stores", &inner]], &CallContext::new("c"))
                    .await
                    .record
                    .outcome
            })
        })
        .collect();
    for call in calls {
        let ended = tokio::time::timeout(Duration::from_secs(60), call).await;
        assert_eq!(ended.expect("it ends").unwrap(), "ok");
    }
}

#[tokio::test]
async fn an_inner_call_ends_with_the_outer_one() {
    let scene = Scene::new(&["files"], FileAccess::ReadWrite).await;
    let context = CallContext::new("c");
    let cancellation = context.cancellation.clone();
    let canceller = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancellation.cancel();
    };
    let spin = files("write /data/a x; spin");
    let steps: &[&[&str]] = &[&["call", "files", &spin]];
    let ended = tokio::time::timeout(Duration::from_secs(20), async {
        tokio::join!(scene.run(steps, &context), canceller).0
    });
    let record = ended.await.expect("it ends").record;
    assert_eq!(record.outcome, "cancelled");
    let inner: Vec<_> = record
        .inner
        .iter()
        .map(|inner| (inner.call_id.as_str(), inner.tool.as_ref().unwrap().as_str(), inner.outcome))
        .collect();
    assert_eq!(inner, [("c.1", "files", "cancelled")]);
    assert_eq!(scene.content("a").await, None);
}

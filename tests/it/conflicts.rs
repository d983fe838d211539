//! Calls that race for one file: each call takes effect completely or not at all, however its guest
//! handles a refused write.

use std::path::Path;
use std::sync::Arc;

use cofferdam_engine::{Component, Grants, Mount, PluginOptions};
use cofferdam_files::{
    DirectoryOptions, DirectoryStore, FileStore, MemoryStore, Quota, StorePath, WriteMode,
};
use cofferdam_tests::{Host, guest};
use cofferdam_tool::{
    CallContext, Completion, FileAccess, Limits, MountName, PluginName, ToolName, Toolset,
};
use serde_json::json;

use crate::script;
use crate::wire::{Pipe, call};

/// The plugin `files`, which writes, and the plugin `stores`, which may call it, over one store.
struct Scene {
    toolset: Arc<Toolset>,
    store: Arc<dyn FileStore>,
}

impl Scene {
    async fn new(store: Arc<dyn FileStore>, retries_max: u32) -> Self {
        let (host, mut toolset) = (Host::new(), Toolset::new());
        for (name, tools) in [("files", vec![]), ("stores", vec!["files"])] {
            let mount = Mount::new(
                MountName::new("data").unwrap(),
                Arc::clone(&store),
                FileAccess::ReadWrite,
            );
            let tools = tools.into_iter().map(|tool| ToolName::new(tool).unwrap()).collect();
            let limits = Limits::default();
            let grants = Grants { mounts: vec![mount], tools, ..Grants::default() };
            let options = PluginOptions {
                retries_max,
                ..PluginOptions::new(PluginName::new(name).unwrap(), grants, limits)
            };
            let component = Component::from_file_ambient(guest(name));
            let plugin = host.engine.load(&component, options, &()).await.unwrap();
            toolset.add(Arc::new(plugin)).unwrap();
        }
        store.write(&path("log"), Vec::new(), WriteMode::Replace).await.unwrap();
        store.write(&path("flag"), Vec::new(), WriteMode::Replace).await.unwrap();
        Self { toolset: Arc::new(toolset), store }
    }

    async fn call(&self, tool: &str, arguments: &str) -> Completion {
        let context = CallContext::new("c");
        self.toolset.call(tool, Some(arguments.as_bytes()), &context).await.unwrap()
    }

    async fn run(&self, script: &str) -> Completion {
        self.call("files", &files(script)).await
    }

    /// Makes a call that waits for a change of `flag`. Until it ends, commits a longer `log`
    /// together with a change of `flag`, again and again.
    async fn beaten(&self, tool: &'static str, arguments: String) -> Completion {
        let toolset = Arc::clone(&self.toolset);
        let call = tokio::spawn(async move {
            toolset.call(tool, Some(arguments.as_bytes()), &CallContext::new("c")).await.unwrap()
        });
        for number in 0.. {
            if call.is_finished() {
                break;
            }
            let winner =
                self.run(&format!("append /data/log winner; write /data/flag {number}")).await;
            assert_eq!(winner.record.outcome, "ok", "{:?}", winner.outcome);
        }
        call.await.unwrap()
    }

    async fn content(&self, name: &str) -> Option<String> {
        Some(String::from_utf8(self.store.read(&path(name), 1 << 20).await.ok()?).unwrap())
    }
}

fn files(script: &str) -> String {
    json!({ "script": script }).to_string()
}

fn path(name: &str) -> StorePath {
    StorePath::file(name).unwrap()
}

fn memory() -> Arc<dyn FileStore> {
    Arc::new(MemoryStore::new(Quota::default()))
}

fn directory(folder: &Path) -> Arc<dyn FileStore> {
    let options = DirectoryOptions { is_durable: false, ..DirectoryOptions::default() };
    Arc::new(DirectoryStore::open_ambient(folder, options).unwrap())
}

/// Opens `log`, works until another call has changed it, and goes on after the refused append.
const LOSER: &str = "write /data/before x; open ra /data/log; await_change /data/flag; put 0 \
    loser; write /data/after x";

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_write_decides_how_a_call_ends_whatever_its_guest_makes_of_it() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), directory(folder.path())] {
        let scene = Scene::new(store, 0).await;
        // The guest ends normally, reports a failure, or traps.
        for (end, guest_end) in [("", "ok"), ("; fail", "failure"), ("; trap", "Trap.Unreachable")]
        {
            let ended = scene.beaten("files", files(&format!("{LOSER}{end}"))).await;
            assert_eq!(
                ended.record.error_type.as_deref(),
                Some("Conflict"),
                "{end}: {:?}",
                ended.outcome
            );
            let detail = ended.record.detail.unwrap();
            assert!(detail.ends_with(&format!("its guest ended as `{guest_end}`")), "{detail}");
            assert_eq!((ended.record.files.len(), ended.record.attempts), (0, 1));
            assert_eq!((scene.content("before").await, scene.content("after").await), (None, None));
        }
        assert!(!scene.content("log").await.unwrap().contains("loser"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inner_call_that_loses_is_undone_and_reported_to_the_outer_one() {
    let scene = Scene::new(memory(), 0).await;
    let inner = files(LOSER);
    let steps: &[&[&str]] = &[&["call", "files", &inner], &["create", "data", "outer", "x"]];
    let ended = scene.beaten("stores", script::arguments(steps)).await;
    assert_eq!(ended.record.outcome, "ok", "{:?}", ended.outcome);
    let answers = script::answers(&ended.outcome.shown().unwrap().text());
    assert_eq!(answers[0], "Error::Ended(\"Conflict\")");
    assert_eq!(ended.record.inner[0].error_type.as_deref(), Some("Conflict"));
    assert_eq!((scene.content("before").await, scene.content("after").await), (None, None));
    assert_eq!(scene.content("outer").await.as_deref(), Some("x"));
}

/// Races `count` calls that read, work, append to one file and write another one. Returns their
/// completions.
async fn race(scene: &Scene, count: usize) -> Vec<Completion> {
    let calls = (0..count).map(|number| {
        let toolset = Arc::clone(&scene.toolset);
        let script = format!(
            "read /data/log; open ra /data/log; write /data/own-{number} x; list /data; put 0 \
             <{number}>"
        );
        tokio::spawn(async move {
            let context = CallContext::new("c");
            toolset.call("files", Some(files(&script).as_bytes()), &context).await.unwrap()
        })
    });
    let mut ends = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        ends.push(call.await.unwrap());
    }
    ends
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_many_racing_calls_is_made_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), directory(folder.path())] {
        let scene = Scene::new(store, 0).await;
        let ends = race(&scene, 60).await;
        let log = scene.content("log").await.unwrap();
        for (number, ended) in ends.iter().enumerate() {
            let is_ok = ended.record.outcome == "ok";
            if !is_ok {
                assert_eq!(
                    ended.record.error_type.as_deref(),
                    Some("Conflict"),
                    "{:?}",
                    ended.outcome
                );
            }
            let has_file = scene.content(&format!("own-{number}")).await.is_some();
            assert_eq!(
                (has_file, log.contains(&format!("<{number}>"))),
                (is_ok, is_ok),
                "{number}"
            );
        }
        let conflicts = ends.iter().filter(|ended| ended.record.outcome != "ok").count();
        assert!((1..60).contains(&conflicts), "{conflicts}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_lose_are_made_again_as_often_as_the_plugin_is_configured() {
    let scene = Scene::new(memory(), 50).await;
    let ends = race(&scene, 32).await;
    let log = scene.content("log").await.unwrap();
    for (number, ended) in ends.iter().enumerate() {
        assert_eq!(ended.record.outcome, "ok", "{:?}", ended.outcome);
        assert_eq!(log.matches(&format!("<{number}>")).count(), 1);
    }
    assert!(ends.iter().any(|ended| ended.record.attempts > 1));
}

/// Makes a call in one process while another process changes the same file. The configuration has
/// `retries`. Returns the answer and the content of the file.
fn raced_by_a_process(retries: u32) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for name in ["log", "flag"] {
        std::fs::write(data.join(name), "").unwrap();
    }
    let config = folder.path().join("cofferdam.toml");
    let text = format!(
        "[stores.data]\ndirectory = \"data\"\n[plugins.files]\ncomponent = \"{}\"\nretries = {retries}\n\
         [plugins.files.grants]\nfiles = {{ data = \"read-write\" }}\n",
        guest("files").display()
    );
    std::fs::write(&config, text).unwrap();
    let (mut loser, mut winner) = (Pipe::of_config(&config, &[]), Pipe::of_config(&config, &[]));
    for pipe in [&mut loser, &mut winner] {
        pipe.call("files", json!({ "script": "read /data/log" }));
    }
    let script = "open ra /data/log; await_change /data/flag; put 0 loser";
    loser.send(call("loser", "files", &json!({ "script": script })).to_string().as_bytes());
    let answered = std::thread::spawn(move || loser.until(&json!("loser")).1.to_string());
    for number in 0..10_000 {
        if answered.is_finished() {
            break;
        }
        // The first attempts lose. A later one, if it is made, waits for the flag and finds the log
        // unchanged.
        let log = if number < 40 { "append /data/log winner; " } else { "" };
        winner.call("files", json!({ "script": format!("{log}write /data/flag {number}") }));
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    (answered.join().unwrap(), std::fs::read_to_string(data.join("log")).unwrap())
}

#[test]
fn the_configuration_says_how_often_a_call_that_lost_is_made_again() {
    let (answer, log) = raced_by_a_process(0);
    assert!(answer.contains("Conflict") && !log.contains("loser"), "{answer}: {log}");
    let (answer, log) = raced_by_a_process(100);
    assert!(!answer.contains("Conflict"), "{answer}: {log}");
    assert_eq!(log.matches("loser").count(), 1, "{answer}: {log}");
}

/// Makes a call that appends to a file in the store `one` and replaces one in `two`. Until it ends,
/// changes the file in `two`, but at most `wins_max` times.
async fn beaten_in_one_of_two_stores(
    [one, two]: [&Arc<dyn FileStore>; 2],
    retries_max: u32,
    wins_max: u32,
) -> Completion {
    let (host, mut toolset) = (Host::new(), Toolset::new());
    let mount = |name: &str, store: &Arc<dyn FileStore>| {
        Mount::new(MountName::new(name).unwrap(), Arc::clone(store), FileAccess::ReadWrite)
    };
    let grants = Grants { mounts: vec![mount("one", one), mount("two", two)], ..Grants::default() };
    let name = PluginName::new("files").unwrap();
    let options =
        PluginOptions { retries_max, ..PluginOptions::new(name, grants, Limits::default()) };
    let component = Component::from_file_ambient(guest("files"));
    toolset.add(Arc::new(host.engine.load(&component, options, &()).await.unwrap())).unwrap();
    let write = async |name: &str, content: String| {
        two.write(&path(name), content.into_bytes(), WriteMode::Replace).await.unwrap();
    };
    write("log", String::new()).await;
    write("flag", String::new()).await;
    let script = "append /one/log line; read /two/log; await_change /two/flag; write /two/log mine";
    let call = tokio::spawn(async move {
        let context = CallContext::new("c");
        toolset.call("files", Some(files(script).as_bytes()), &context).await.unwrap()
    });
    for number in 0.. {
        if call.is_finished() {
            break;
        }
        if number < wins_max {
            write("log", format!("winner {number}")).await;
        }
        write("flag", number.to_string()).await;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    call.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_loses_in_one_store_changes_no_other_and_can_be_made_again() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let directories = folders.each_ref().map(|folder| directory(folder.path()));
    for stores in [[memory(), memory()], directories] {
        let (log, [one, two]) = (path("log"), stores.each_ref());
        let ended = beaten_in_one_of_two_stores([one, two], 0, u32::MAX).await;
        assert_eq!(ended.record.error_type.as_deref(), Some("Conflict"), "{:?}", ended.outcome);
        assert_eq!(ended.record.files, []);
        assert!(one.stat(&log).await.is_err(), "the other store is unchanged");
        let ended = beaten_in_one_of_two_stores([one, two], 100, 20).await;
        assert_eq!(ended.record.outcome, "ok", "{:?}", ended.outcome);
        assert!(ended.record.attempts > 1);
        assert_eq!(ended.record.files.len(), 2);
        assert_eq!(one.read(&log, 99).await.unwrap(), b"line");
        assert_eq!(two.read(&log, 99).await.unwrap(), b"mine");
    }
}

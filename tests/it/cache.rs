//! Compiled code on disk: a second start compiles nothing, and a file that another user wrote is
//! never run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_engine::{
    Component, Confinement, EngineConfig, Grants, LoadEvent, LoadObserver, LoadRequest,
    PluginOptions,
};
use cofferdam_tests::{Host, config, guest};
use cofferdam_tool::{CallContext, Limits, PluginName, RefusedCall, ToolSource, Toolset};

#[derive(Default)]
struct Events(Mutex<Vec<LoadEvent>>);

impl LoadObserver for Events {
    fn on_event(&self, event: LoadEvent) {
        self.0.lock().unwrap().push(event);
    }
}

/// Loads a guest in a new engine, as a new process would. Returns the load events.
async fn load(cache: &Path) -> Vec<LoadEvent> {
    load_with(config(), cache).await
}

async fn load_with(mut config: EngineConfig, cache: &Path) -> Vec<LoadEvent> {
    config.cache_directory = Some(cache.to_owned());
    let host = Host::with(config);
    let events = Events::default();
    let name = PluginName::new("guest").unwrap();
    let options = PluginOptions::new(name, Grants::default(), Limits::default());
    let component = Component::from_file_ambient(guest("remember"));
    host.engine.load(&component, options, &events).await.expect("the guest loads");
    events.0.into_inner().unwrap()
}

fn compiled(events: &[LoadEvent]) -> bool {
    events.iter().any(|event| matches!(event, LoadEvent::Compiling { .. }))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(entries(&path));
        } else if path.metadata().unwrap().len() > 64 {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn a_second_start_compiles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    assert!(compiled(&load(&cache).await));
    assert_eq!(load(&cache).await, []);
}

#[tokio::test]
async fn code_is_compiled_again_when_more_confinement_is_required() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let requiring = |level| EngineConfig { confinement_min: level, ..config() };
    assert!(compiled(&load_with(requiring(Some(Confinement::None)), &cache).await));
    assert_eq!(load_with(requiring(None), &cache).await, []);
    assert!(compiled(&load_with(requiring(Some(Confinement::Full)), &cache).await));
    assert_eq!(load_with(requiring(Some(Confinement::Full)), &cache).await, []);
}

#[tokio::test]
async fn an_entry_that_was_changed_is_compiled_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    load(&cache).await;
    for path in entries(&cache) {
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let events = load(&cache).await;
    assert!(events.contains(&LoadEvent::CacheRejected), "{events:?}");
    assert!(compiled(&events));
    assert_eq!(load(&cache).await, [], "the entries are good again");
}

#[tokio::test]
async fn entries_of_another_installation_are_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    load(&ours).await;
    load(&theirs).await;
    for path in entries(&theirs) {
        let name = path.strip_prefix(&theirs).unwrap();
        std::fs::copy(&path, ours.join(name)).unwrap();
    }
    let events = load(&ours).await;
    assert!(events.contains(&LoadEvent::CacheRejected), "{events:?}");
    assert!(compiled(&events));
}

fn options() -> PluginOptions {
    let name = PluginName::new("guest").unwrap();
    PluginOptions::new(name, Grants::default(), Limits::default())
}

/// Loads a guest in a new engine with the index of the last start. Returns the load events and
/// whether the plugin came from the index.
async fn load_indexed(cache: &Path, component: &Path) -> (Vec<LoadEvent>, bool) {
    let mut config = config();
    config.cache_directory = Some(cache.to_owned());
    let host = Host::with(config);
    let events = Arc::new(Events::default());
    let request = LoadRequest::new(Component::from_file_ambient(component), options());
    let request = request.with_observer(Arc::clone(&events) as Arc<dyn LoadObserver>);
    let mut batch = host.engine.load_all(Path::new("/"), vec![request]);
    let cached = batch.next_cached();
    let was_cached = cached.is_some();
    let (_, plugin) = match cached {
        Some(cached) => cached,
        None => batch.next().await.expect("one plugin was asked for"),
    };
    let plugin = Arc::new(plugin.expect("the guest loads"));
    batch.save();
    let toolset = Toolset::join([Arc::clone(&plugin) as Arc<dyn ToolSource>]).unwrap();
    let names: Vec<_> = toolset.definitions().map(|tool| tool.name.to_string()).collect();
    assert!(!names.is_empty());
    for name in names {
        let called = toolset.call(&name, None, &CallContext::new("test")).await;
        assert!(!matches!(called, Err(RefusedCall::UnknownTool { .. })), "{called:?}");
    }
    let events = std::mem::take(&mut *events.0.lock().unwrap());
    (events, was_cached)
}

#[tokio::test]
async fn an_unchanged_component_comes_from_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, component) = (folder.path().join("cache"), folder.path().join("guest.wasm"));
    std::fs::copy(guest("remember"), &component).unwrap();
    let (events, was_cached) = load_indexed(&cache, &component).await;
    assert!(compiled(&events) && !was_cached);
    assert!(
        !load_indexed(&cache, &component).await.1,
        "what has just been written may still change unseen"
    );
    tokio::time::sleep(Duration::from_millis(3100)).await;
    assert!(!load_indexed(&cache, &component).await.1);
    assert_eq!(load_indexed(&cache, &component).await, (vec![], true));

    // Same length and modification time, other content.
    let modified = component.metadata().unwrap().modified().unwrap();
    let bytes = std::fs::read(&component).unwrap();
    std::fs::write(&component, &bytes).unwrap();
    std::fs::File::options().write(true).open(&component).unwrap().set_modified(modified).unwrap();
    assert!(!load_indexed(&cache, &component).await.1);

    // Add a manifest.
    std::fs::copy(guest("remember"), &component).unwrap();
    tokio::time::sleep(Duration::from_millis(3100)).await;
    load_indexed(&cache, &component).await;
    assert!(load_indexed(&cache, &component).await.1);
    std::fs::write(component.with_extension("toml"), "[limits]\nwall-ms-max = 5000\n").unwrap();
    assert!(!load_indexed(&cache, &component).await.1);
}

#[tokio::test]
async fn a_component_of_the_index_that_has_changed_is_not_called() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, component) = (folder.path().join("cache"), folder.path().join("guest.wasm"));
    std::fs::copy(guest("remember"), &component).unwrap();
    tokio::time::sleep(Duration::from_millis(3100)).await;
    load_indexed(&cache, &component).await;
    let mut config = config();
    config.cache_directory = Some(cache);
    let host = Host::with(config);
    let cached = |path: &Path| {
        let request = LoadRequest::new(Component::from_file_ambient(path), options());
        host.engine.load_all(Path::new("/"), vec![request]).next_cached()
    };
    let (_, plugin) = cached(&component).expect("the index has it");
    let plugin = plugin.unwrap();
    let copy = folder.path().join("copy.wasm");
    std::fs::copy(&component, &copy).unwrap();
    assert!(cached(&copy).is_none(), "another file has no record");

    let mut bytes = std::fs::read(&component).unwrap();
    bytes.extend_from_slice(b"\0\x02\x01x");
    std::fs::write(&component, bytes).unwrap();
    let toolset = Toolset::join([Arc::new(plugin) as Arc<dyn ToolSource>]).unwrap();
    let tool = toolset.definitions().next().unwrap().name.to_string();
    let completion = toolset.call(&tool, Some(b"{}"), &CallContext::new("test")).await.unwrap();
    assert_eq!(completion.outcome.word(), "error", "{completion:?}");
}

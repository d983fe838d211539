//! Compiled code on disk: a second start compiles nothing, and a file that someone else wrote is not run.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cofferdam_engine::{Component, Grants, LoadEvent, LoadObserver, PluginOptions};
use cofferdam_tests::{Host, config, guest};
use cofferdam_tool::{Limits, PluginName};

#[derive(Default)]
struct Events(Mutex<Vec<LoadEvent>>);

impl LoadObserver for Events {
    fn on_event(&self, event: LoadEvent) {
        self.0.lock().unwrap().push(event);
    }
}

/// Loads a guest in a new engine, as a new process would, and says what that took.
async fn load(cache: &Path) -> Vec<LoadEvent> {
    let mut config = config();
    config.cache_directory = Some(cache.to_owned());
    let host = Host::with(config);
    let events = Events::default();
    let name = PluginName::new("guest").unwrap();
    let options = PluginOptions { name, grants: Grants::default(), limits: Limits::default() };
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

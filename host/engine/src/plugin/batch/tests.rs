//! Plugins of the index, loaded plugins, and plugins that fail.

#![cfg(unix)]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cofferdam_tool::{CallContext, Limits, ToolSource as _, Toolset};
use tempfile::TempDir;

use super::*;
use crate::{Compiler, EngineConfig, Grants, LoadEvent, PoolSize};

/// Time after which a file counts as unchanged.
const QUIESCENT: Duration = Duration::from_millis(3100);

struct Fixture {
    root: TempDir,
}

impl Fixture {
    /// Creates two components, `one.wasm` and `two.wasm`, each with a tool of that name.
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            fs::write(root.path().join(name).with_extension("wasm"), component(name)).unwrap();
        }
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name).with_extension("wasm")
    }

    /// Creates a new engine, as at a new start.
    fn engine(&self) -> Engine {
        let pool = PoolSize { concurrent_calls_max: 2, ..PoolSize::default() };
        let cache_directory = Some(self.root.path().join("cache"));
        Engine::new(EngineConfig {
            cache_directory,
            pool,
            ..EngineConfig::new(Compiler::InProcess)
        })
        .unwrap()
    }

    fn request(&self, name: &str) -> LoadRequest {
        LoadRequest::new(Component::from_file_ambient(self.path(name)), options(name))
    }

    fn start(&self) -> PluginBatch {
        let requests = ["one", "two"].map(|name| self.request(name));
        self.engine().load_all(self.root.path(), requests.into())
    }
}

fn component(name: &str) -> Vec<u8> {
    wat::parse_str(format!(
        r#"(component
            (core module $m (func (export "f") (param i32) (result i32) local.get 0 i32.const 1 i32.add))
            (core instance $i (instantiate $m))
            (func (export "{name}") (param "n" u32) (result u32) (canon lift (core func $i "f"))))"#
    ))
    .unwrap()
}

fn options(name: &str) -> PluginOptions {
    PluginOptions::new(name.parse().unwrap(), Grants::default(), Limits::default())
}

fn tool(plugin: &Plugin) -> String {
    plugin.definitions().first().unwrap().name.to_string()
}

fn cached(batch: &mut PluginBatch) -> Vec<(usize, String)> {
    let next = || batch.next_cached().map(|(position, plugin)| (position, tool(&plugin.unwrap())));
    std::iter::from_fn(next).collect()
}

async fn answer(plugin: Plugin) -> String {
    let (name, toolset) = (tool(&plugin), Toolset::join([Arc::new(plugin) as Arc<_>]).unwrap());
    let completion =
        toolset.call(&name, Some(br#"{"n":41}"#), &CallContext::new("test")).await.unwrap();
    completion.outcome.shown().unwrap().text().to_string()
}

#[tokio::test]
async fn unchanged_plugins_are_ready_at_the_next_start_and_the_others_are_loaded() {
    let fixture = Fixture::new();
    tokio::time::sleep(QUIESCENT).await;
    let mut first = fixture.start();
    assert_eq!(cached(&mut first), []);
    first.keep_order();
    let (position, plugin) = first.next().await.unwrap();
    assert_eq!((position, tool(&plugin.unwrap())), (0, "one".to_owned()));
    let (position, plugin) = first.next().await.unwrap();
    assert_eq!((position, tool(&plugin.unwrap())), (1, "two".to_owned()));
    assert!(first.next().await.is_none());
    first.save();

    let mut second = fixture.start();
    assert_eq!(cached(&mut second), [(0, "one".to_owned()), (1, "two".to_owned())]);
    assert!(second.next().await.is_none());
    assert_eq!(answer(fixture.start().next().await.unwrap().1.unwrap()).await, "42");

    let before = Component::from_file_ambient(fixture.path("two"));
    assert_eq!(before.has_changed(), Some(false));
    fs::write(fixture.path("two"), component("changed")).unwrap();
    assert_eq!(before.has_changed(), Some(true));
    let mut third = fixture.start();
    assert_eq!(cached(&mut third), [(0, "one".to_owned())]);
    assert_eq!(
        third.cached_tools(1).unwrap().first().unwrap().name.as_str(),
        "two",
        "from the last time"
    );
    let (position, plugin) = third.next().await.unwrap();
    assert_eq!((position, tool(&plugin.unwrap())), (1, "changed".to_owned()));

    // The index keeps the previous record of a plugin that does not load.
    fs::write(fixture.path("two"), "no component").unwrap();
    let mut fourth = fixture.start();
    assert_eq!(cached(&mut fourth), [(0, "one".to_owned())]);
    assert!(matches!(fourth.next().await, Some((1, Err(LoadError::Screen(_))))));
    assert_eq!(fourth.cached_tools(1).unwrap().len(), 1);

    // An older build exists, but the new one must be used.
    fs::write(fixture.path("two"), component("two")).unwrap();
    let built = Component::from_file_ambient(fixture.path("one"));
    let requests =
        vec![fixture.request("one").after_build(async { Ok(built) }), fixture.request("two")];
    let mut building = fixture.engine().load_all(fixture.root.path(), requests);
    assert_eq!(cached(&mut building), []);
    building.keep_order();
    assert_eq!(tool(&building.next().await.unwrap().1.unwrap()), "one");

    let turned = ["two", "one"].map(|name| fixture.request(name));
    let mut turned = fixture.engine().load_all(fixture.root.path(), turned.into());
    assert_eq!(cached(&mut turned), [], "an index belongs to one list of components");
}

#[tokio::test]
async fn a_failure_concerns_one_plugin() {
    let fixture = Fixture::new();
    let failing = async { Err("no compiler".into()) };
    let missing =
        LoadRequest::new(Component::from_file_ambient("/no/such.wasm"), options("missing"));
    let requests =
        vec![missing, fixture.request("one").after_build(failing), fixture.request("two")];
    let plugins = fixture.engine().load_all(fixture.root.path(), requests).finish().await;
    let [Err(LoadError::Read(_)), Err(LoadError::Build(error)), Ok(two)] = plugins.as_slice()
    else {
        panic!("one of three loads: {:?}", plugins.iter().map(Result::is_ok).collect::<Vec<_>>());
    };
    assert_eq!((error.to_string().as_str(), tool(two).as_str()), ("no compiler", "two"));
}

#[tokio::test]
async fn an_approval_is_saved_with_the_index() {
    let fixture = Fixture::new();
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let approval = Approval::of_file_ambient(&file, &[b"one", b"two"]);
    assert!(approval.is_some());
    assert_ne!(approval, Approval::of_file_ambient(&file, &[b"one"]));
    assert_eq!(Approval::of_file_ambient(&fixture.path("one"), &[]), None, "it was just written");
    let batch = fixture.start();
    assert_eq!(batch.approval(), None);
    batch.set_approval(approval);
    batch.save();
    let batch = fixture.start();
    assert_eq!(batch.approval(), approval);
    batch.set_approval(None);
    batch.save();
    assert_eq!(fixture.start().approval(), None);
}

#[tokio::test]
async fn other_options_do_not_change_the_component() {
    let fixture = Fixture::new();
    let plugin =
        fixture.engine().load(&Component::from_bytes(component("one")), options("one"), &()).await;
    let plugin = plugin.unwrap();
    let limits = Limits { fuel_max: Some(1_000_000), wall_ms_max: 1234, ..Limits::default() };
    let wider = plugin.with_options(PluginOptions { limits, ..options("other") }).unwrap();
    assert_eq!((wider.name(), wider.granted().policy.limits.wall_ms_max), ("other", 1234));
    assert_eq!(wider.identity().digest, plugin.identity().digest);
    assert_eq!(answer(wider).await, "42");
    assert_eq!(answer(plugin.with_options(options("one")).unwrap()).await, "42");
}

#[tokio::test]
async fn without_a_cache_all_is_loaded() {
    let fixture = Fixture::new();
    let config = EngineConfig {
        pool: PoolSize { concurrent_calls_max: 2, ..PoolSize::default() },
        ..EngineConfig::new(Compiler::InProcess)
    };
    let engine = Engine::new(config).unwrap();
    let mut batch = engine.load_all(fixture.root.path(), vec![fixture.request("one")]);
    assert_eq!((cached(&mut batch), batch.approval()), (vec![], None));
    assert_eq!(tool(&batch.next().await.unwrap().1.unwrap()), "one");
    assert!(batch.cached_tools(0).is_none());
    batch.save();
}

#[derive(Default)]
struct Compilations(AtomicU32);

impl LoadObserver for Compilations {
    fn on_event(&self, event: LoadEvent) {
        if matches!(event, LoadEvent::Compiling { .. }) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn a_plugin_that_asks_for_a_budget_is_compiled_once() {
    let fixture = Fixture::new();
    let component = Component::from_bytes(component("one"));
    let component = component.with_manifest("[limits]\nfuel-max = 1000000\n");
    let compilations = Compilations::default();
    let plugin = fixture.engine().load(&component, options("one"), &compilations).await.unwrap();
    assert_eq!(plugin.granted().policy.limits.fuel_max, Some(1_000_000));
    assert_eq!(answer(plugin).await, "42");
    assert_eq!(compilations.0.load(Ordering::Relaxed), 1);
}

/// The test occupies the only thread for work that blocks.
#[test]
fn a_digest_is_computed_on_no_thread_that_serves_calls() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let engine = Fixture::new().engine();
        let component = Component::from_bytes(component("one"));
        let (release, occupied) = std::sync::mpsc::channel::<()>();
        let occupant = tokio::task::spawn_blocking(move || occupied.recv());
        let mut loading = Box::pin(engine.load(&component, options("one"), &()));
        assert!(futures_util::poll!(&mut loading).is_pending());
        drop(release);
        assert!(loading.await.is_ok() && occupant.await.unwrap().is_err());
    });
}

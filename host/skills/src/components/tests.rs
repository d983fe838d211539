use std::sync::atomic::{AtomicUsize, Ordering};

use cofferdam_files::{MemoryStore, Quota, StorePath, WriteMode};
use cofferdam_tool::Functions;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use serde_json::json;

use super::*;

/// Loads a file as tools: each line is a name and a schema. The tools return their arguments.
#[derive(Default)]
struct Loader {
    loads: AtomicUsize,
}

#[async_trait]
impl LoadComponent for Loader {
    async fn load(
        &self,
        _: &ScriptFile,
        component: Arc<[u8]>,
    ) -> Result<Arc<dyn ToolSource>, BoxError> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        let mut functions = Functions::new("script");
        for line in std::str::from_utf8(&component)?.lines() {
            let (name, schema) = line.split_once(' ').ok_or("a line is a name and a schema")?;
            functions = functions
                .with(Declaration::new(name, "A tool.", schema), async |arguments, _| {
                    Ok::<_, FunctionEnd>(Value::Object(arguments.value().clone()))
                })?;
        }
        Ok(Arc::new(functions))
    }
}

struct Scene {
    store: Arc<MemoryStore>,
    loader: Arc<Loader>,
    scripts: ComponentScripts,
    script: ScriptFile,
}

impl Scene {
    async fn new(component: &str) -> Self {
        let (store, loader) =
            (Arc::new(MemoryStore::new(Quota::default())), Arc::new(Loader::default()));
        let scripts = ComponentScripts::new(Arc::clone(&loader) as Arc<dyn LoadComponent>);
        let path = StorePath::file("a.wasm").unwrap();
        let (skill, name) = ("s".to_owned(), "a.wasm".to_owned());
        let folder = Arc::clone(&store) as Arc<dyn FileStore>;
        let scene =
            Self { store, loader, scripts, script: ScriptFile { skill, name, path, folder } };
        scene.write(component).await;
        scene
    }

    async fn write(&self, component: &str) {
        self.store.write(&self.script.path, component.into(), WriteMode::Replace).await.unwrap();
    }

    async fn run(&self, args: Value) -> Value {
        let ran = self.scripts.run(&self.script, args, &CallContext::new("1")).await;
        let text = ran.outcome.shown().unwrap().text();
        serde_json::from_str(&text).unwrap()
    }
}

const ANY: &str = r#"{"type":"object","properties":{"args":{}}}"#;
const TEXT: &str =
    r#"{"type":"object","properties":{"args":{"type":"string"}},"required":["args"]}"#;
const OWN: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

#[tokio::test]
async fn a_tool_that_takes_args_alone_gets_them_unchanged() {
    let scene = Scene::new(&format!("anything {ANY}")).await;
    for args in [json!(null), json!(["x", "y"]), json!({"a": {"b": [1, 2.5, null]}})] {
        assert_eq!(scene.run(args.clone()).await, json!({"args": args}));
    }
    assert_eq!(scene.scripts.parameters(&scene.script).await, None);
}

#[tokio::test]
async fn a_tool_that_takes_a_text_gets_them_as_json_text() {
    let scene = Scene::new(&format!("run {TEXT}")).await;
    assert_eq!(scene.run(json!({"a": [1]})).await, json!({"args": r#"{"a":[1]}"#}));
    assert_eq!(scene.run(json!(null)).await, json!({"args": "null"}));
}

#[tokio::test]
async fn a_tool_with_arguments_of_its_own_gets_those() {
    let scene = Scene::new(&format!("other {ANY}\nrun {OWN}")).await;
    assert_eq!(scene.run(json!({"n": "5", "x": 1})).await, json!({"n": 5}));
    let missing = json!({"error": {"message": "Required argument 'n' was not supplied to 'run'."}});
    assert_eq!(scene.run(json!(null)).await, missing);
    assert!(scene.run(json!(["5"])).await["error"]["message"].is_string());
    let parameters = scene.scripts.parameters(&scene.script).await.unwrap();
    assert_eq!(parameters["properties"]["n"]["type"], "integer");
}

#[tokio::test]
async fn which_tool_is_meant_has_to_be_clear() {
    let unavailable = json!({"error": {"message": "An unexpected error occurred \
        (PluginUnavailable). Please try again."}});
    for component in [format!("a {ANY}\nb {ANY}"), String::new(), "broken".to_owned()] {
        let scene = Scene::new(&component).await;
        assert_eq!(scene.run(json!(null)).await, unavailable, "{component}");
        assert_eq!(scene.scripts.parameters(&scene.script).await, None);
    }
}

#[tokio::test]
async fn the_content_is_looked_at_each_time_and_loaded_once() {
    let scene = Scene::new(&format!("run {ANY}")).await;
    scene.run(json!(null)).await;
    scene.run(json!(null)).await;
    assert_eq!(scene.loader.loads.load(Ordering::Relaxed), 1);
    scene.write(&format!("run {OWN}")).await;
    assert_eq!(scene.run(json!({"n": 1})).await, json!({"n": 1}));
    assert_eq!(scene.loader.loads.load(Ordering::Relaxed), 2);
    // The same content in another directory is another script.
    let folder: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
    folder.write(&scene.script.path, format!("run {OWN}").into(), WriteMode::Create).await.unwrap();
    let elsewhere = ScriptFile { folder, ..scene.script.clone() };
    scene.scripts.interface(&elsewhere).await.unwrap();
    assert_eq!(scene.loader.loads.load(Ordering::Relaxed), 3);
    for number in 0..CACHED_MAX {
        scene
            .scripts
            .interface(&ScriptFile { name: number.to_string(), ..scene.script.clone() })
            .await
            .unwrap();
    }
    assert_eq!(scene.scripts.cached.lock().len(), CACHED_MAX);
}

#[tokio::test]
async fn a_call_that_is_given_up_does_not_wait() {
    let scene = Scene::new(&format!("run {ANY}")).await;
    let context = CallContext::new("1");
    context.cancellation.cancel();
    let ran = scene.scripts.run(&scene.script, json!(null), &context).await;
    assert_eq!((ran.outcome, scene.loader.loads.load(Ordering::Relaxed)), (Outcome::Cancelled, 0));
}

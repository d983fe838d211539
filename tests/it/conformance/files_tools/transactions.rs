//! Calls as transactions (`FILE-21` to `FILE-23`): a plugin that changes files and ends as a row
//! says.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use cofferdam_engine::{Engine, Grants, Mount, Plugin, PluginOptions};
use cofferdam_files::{
    EntryKind, FileAccessOptions, FileAccessTools, FileStore, MemoryStore, Quota, Scope, StorePath,
    WriteMode,
};
use cofferdam_tests::{config, guest, shared_cache};
use cofferdam_tool::invoke::{Progress, ProgressSink};
use cofferdam_tool::permission::RequestedLimits;
use cofferdam_tool::retry::{RetryPolicy, RetryingSource};
use cofferdam_tool::{
    CallContext, Completion, FileAccess, Limits, MountName, PluginName, ToolCall, ToolDefinition,
    ToolSource, Toolset,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{OnceCell, mpsc};
use tokio::task::JoinHandle;

use super::super::{Row, expect_same};
use super::{object, stores};
use crate::script;

/// Kinds of stores that plugins get in these rows.
const KINDS: &[&str] = &["memory", "directory", "object"];
/// Limit of wall-clock or CPU time for a call that must reach it, in milliseconds.
const SHORT_MS: u64 = 400;

/// Runs one row on every kind of store.
pub(super) async fn run(row: &Row) -> Result<(), String> {
    for kind in KINDS {
        run_on(kind, row).await.map_err(|error| format!("{kind}: {error}"))?;
    }
    Ok(())
}

async fn run_on(kind: &str, row: &Row) -> Result<(), String> {
    let steps = row.required("steps")?.as_array().ok_or("`steps` is not a list")?;
    let quota = stores::quota(steps.iter().find_map(|step| step.get("quota")))?;
    let mut world = World::new(kind, quota).await?;
    for (index, step) in steps.iter().enumerate() {
        let mut step = step.clone();
        // The steps of an open call after it is resumed are part of its script from the beginning.
        let resumes = |later: &&Value| {
            later.get("resume").is_some() && later.get("resume") == step.get("call")
        };
        if let Some(resumed) = steps[index + 1..].iter().find(resumes).cloned() {
            for (here, there) in [("later_writes", "writes"), ("ends", "ends")] {
                if let Some(value) = resumed.get(there) {
                    step[here] = value.clone();
                }
            }
        }
        world.step(&step).await?;
    }
    world.compare(&row.expect).await
}

/// A store, a plugin that works on it, and the open calls.
struct World {
    store: Arc<dyn FileStore>,
    /// Store in which an open call finds the signal to go on.
    control: Arc<dyn FileStore>,
    toolset: Arc<Toolset>,
    open: HashMap<String, OpenCall>,
    readers_saw_only_whole_contents: Option<bool>,
    /// Attempts after the first one.
    retries: u32,
    /// Numbers of concurrent creators that saved their file, and that were refused because it
    /// exists.
    created: (u64, u64),
    _folder: Option<TempDir>,
}

struct OpenCall {
    running: JoinHandle<Completion>,
    context: CallContext,
}

impl World {
    async fn new(kind: &str, quota: Quota) -> Result<Self, String> {
        let (store, folder) = stores::store(kind, quota)?;
        let control: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
        let mount = |name: &str, store: &Arc<dyn FileStore>, access| {
            Mount::new(MountName::new(name).expect("a constant name"), Arc::clone(store), access)
        };
        let mounts = vec![
            mount("data", &store, FileAccess::ReadWrite),
            mount("control", &control, FileAccess::ReadOnly),
        ];
        let mut toolset = Toolset::new();
        toolset.add(Arc::new(plugin(mounts).await?)).map_err(|error| error.to_string())?;
        Ok(Self {
            store,
            control,
            toolset: Arc::new(toolset),
            open: HashMap::new(),
            readers_saw_only_whole_contents: None,
            retries: 0,
            created: (0, 0),
            _folder: folder,
        })
    }

    async fn step(&mut self, step: &Value) -> Result<(), String> {
        let step = object(step)?;
        if let Some(retries) = step.get("retries").and_then(Value::as_u64) {
            self.retries = u32::try_from(retries).map_err(|error| error.to_string())?;
        } else if let Some(attempts) = step.get("attempts").and_then(Value::as_array) {
            self.attempts(attempts).await?;
        } else if let Some(creators) = step.get("concurrent_creates").and_then(Value::as_u64) {
            let path = step.get("path").and_then(Value::as_str).ok_or("no `path`")?;
            self.creators(creators, path).await?;
        } else if let Some(setup) = step.get("setup") {
            for (name, content) in object(setup)? {
                let content = content.as_str().unwrap_or_default().as_bytes().to_vec();
                let path = StorePath::file(name).map_err(|error| error.to_string())?;
                let written = self.store.write(&path, content, WriteMode::Replace).await;
                written.map_err(|error| error.to_string())?;
            }
        } else if let Some(id) = step.get("call").and_then(Value::as_str) {
            self.call(id, step).await?;
        } else if let Some(id) = step.get("resume").and_then(Value::as_str) {
            let open = self.open.remove(id).ok_or_else(|| format!("no open call `{id}`"))?;
            let go_on = StorePath::file(id).map_err(|error| error.to_string())?;
            self.control
                .write(&go_on, Vec::new(), WriteMode::Create)
                .await
                .map_err(|e| e.to_string())?;
            ended(step, open).await?;
        } else if let Some(what) = step.get("concurrent").and_then(Value::as_str) {
            match what {
                "one writer overwrites a with new contents 100 times, readers read all the while" =>
                {
                    self.readers_saw_only_whole_contents = Some(self.readers_and_a_writer().await?);
                }
                other => return Err(format!("unknown situation `{other}`")),
            }
        } else if step.get("quota").is_none() {
            return Err(format!("unknown step {}", Value::Object(step.clone())));
        }
        Ok(())
    }

    async fn call(
        &mut self,
        id: &str,
        step: &serde_json::Map<String, Value>,
    ) -> Result<(), String> {
        let mut script = Script::default();
        let list =
            |name: &str| step.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        script.writes(&list("writes"));
        for path in list("deletes") {
            script.add(
                &["delete", "data", path.as_str().unwrap_or_default()],
                Some("done".to_owned()),
            );
        }
        if let Some(path) = step.get("reads").and_then(Value::as_str) {
            let seen = step.get("sees").map(|sees| sees.as_str().unwrap_or("not-found").to_owned());
            script.add(&["read", "data", path], seen);
        }
        let is_paused = step.get("pause") == Some(&Value::Bool(true));
        script.add(&["tell", id], None);
        if is_paused {
            script.add(&["await", "control", id], None);
        }
        script.writes(&list("later_writes"));
        let (tool, limits) =
            script.end(step.get("ends").and_then(Value::as_str).unwrap_or("success"))?;
        let (sender, mut reports) = mpsc::unbounded_channel();
        let mut context = CallContext::new(id);
        context.progress = Some(Arc::new(ReportSignal(sender)));
        context.limits = limits.map(Arc::new);
        let running = tokio::spawn({
            let (toolset, arguments) =
                (Arc::clone(&self.toolset), json!({"script": script.text()}).to_string());
            let context = context.clone();
            async move {
                let completion = toolset.call(tool, Some(arguments.as_bytes()), &context).await;
                let completion = completion.expect("the call starts");
                script.check(&completion);
                completion
            }
        });
        let open = OpenCall { running, context };
        let has_come_so_far = tokio::time::timeout(Duration::from_secs(60), reports.recv()).await;
        has_come_so_far.map_err(|_| "the call did not come so far")?;
        if is_paused {
            self.open.insert(id.to_owned(), open);
            return Ok(());
        }
        ended(step, open).await
    }

    /// Makes a call that is retried: each attempt is a run of the plugin with the row's steps for
    /// that attempt.
    async fn attempts(&self, attempts: &[Value]) -> Result<(), String> {
        let mut runs = Vec::new();
        for attempt in attempts {
            let mut script = Script::default();
            script
                .writes(attempt.get("writes").and_then(Value::as_array).map_or(&[], Vec::as_slice));
            let (tool, limits) =
                script.end(attempt.get("ends").and_then(Value::as_str).unwrap_or("success"))?;
            if tool != "stores" {
                return Err("an attempt that ends by another tool".to_owned());
            }
            runs.push((json!({"script": script.text()}).to_string(), limits.map(Arc::new)));
        }
        let count = runs.len();
        let source = Arc::clone(self.toolset.source("stores").ok_or("no plugin")?);
        let definition =
            Arc::clone(self.toolset.definition("stores").map_err(|error| error.to_string())?);
        let attempts = Attempts { source, definition, runs: Mutex::new(runs.into()) };
        let mut policy = RetryPolicy::on_transient(self.retries);
        policy.backoff.pause = Duration::from_millis(1);
        let mut toolset = Toolset::new();
        toolset
            .add(Arc::new(RetryingSource::new(Arc::new(attempts), policy)))
            .map_err(|error| error.to_string())?;
        let called =
            toolset.call("stores", Some(br#"{"script":""}"#), &CallContext::new("row")).await;
        let completion = called.map_err(|error| error.to_string())?;
        expect_same("attempts", &json!(count), &json!(completion.record.attempts))?;
        let last = attempts_end(completion.record.error_type.as_deref(), completion.record.outcome);
        expect_same("the end of the call", &json!("ok"), &json!(last))
    }

    /// Runs concurrent calls of the file tools that create one file.
    async fn creators(&mut self, count: u64, path: &str) -> Result<(), String> {
        let tools = FileAccessTools::new(
            "workspace",
            Arc::clone(&self.store),
            FileAccessOptions::default(),
        );
        let mut toolset = Toolset::new();
        toolset
            .add(Arc::new(tools.map_err(|error| error.to_string())?))
            .map_err(|error| error.to_string())?;
        let creators = (0..count).map(|number| {
            let (toolset, path) = (toolset.clone(), path.to_owned());
            tokio::spawn(async move {
                let arguments =
                    json!({"file_name": path, "content": number.to_string()}).to_string();
                let context = CallContext::new(number.to_string());
                let called = toolset
                    .call("file_access_save_file", Some(arguments.as_bytes()), &context)
                    .await;
                called.map(|completion| completion.outcome.shown().map(|shown| shown.text()))
            })
        });
        for creator in creators.collect::<Vec<_>>() {
            let text = creator
                .await
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())?;
            let text = text.unwrap_or_default();
            self.created.0 += u64::from(text == format!("File '{path}' saved."));
            self.created.1 +=
                u64::from(text.starts_with(&format!("File '{path}' already exists.")));
        }
        Ok(())
    }

    async fn readers_and_a_writer(&self) -> Result<bool, String> {
        let path = StorePath::file("a").map_err(|error| error.to_string())?;
        let whole = self.store.read(&path, u64::MAX).await.map_err(|error| error.to_string())?;
        let length = whole.len();
        let reader = |store: Arc<dyn FileStore>, path: StorePath| async move {
            let mut saw_only_whole = true;
            for _ in 0..200 {
                let content = store.read(&path, u64::MAX).await.unwrap_or_default();
                let first = content.get(..3).unwrap_or_default();
                saw_only_whole &= content.len() >= length.min(3)
                    && content.chunks(3).all(|part| first.starts_with(part));
            }
            saw_only_whole
        };
        let readers: Vec<_> =
            (0..3).map(|_| tokio::spawn(reader(Arc::clone(&self.store), path.clone()))).collect();
        for number in 100..200_usize {
            let content = number.to_string().repeat(length / 3 + number);
            let written = self.store.write(&path, content.into_bytes(), WriteMode::Replace).await;
            written.map_err(|error| error.to_string())?;
        }
        let mut all = true;
        for reader in readers {
            all &= reader.await.map_err(|error| error.to_string())?;
        }
        Ok(all)
    }

    async fn compare(&self, expect: &Value) -> Result<(), String> {
        let listing =
            self.store.list(&StorePath::ROOT, Scope::Recursive).await.map_err(|e| e.to_string())?;
        let mut files = BTreeMap::new();
        for entry in listing.entries.iter().filter(|entry| entry.kind == EntryKind::File) {
            let path = StorePath::file(&entry.name).map_err(|error| error.to_string())?;
            let content =
                self.store.read(&path, u64::MAX).await.map_err(|error| error.to_string())?;
            files.insert(entry.name.clone(), String::from_utf8_lossy(&content).into_owned());
        }
        let directories = listing.entries.iter().filter(|entry| entry.kind == EntryKind::Directory);
        for (key, expected) in object(expect)? {
            let got = match key.as_str() {
                "files" => json!(files),
                "directories" => {
                    json!(directories.clone().map(|entry| &entry.name).collect::<Vec<_>>())
                }
                "saved" => json!(self.created.0),
                "already_exists" => json!(self.created.1),
                "readers_see_only_whole_contents" => json!(self.readers_saw_only_whole_contents),
                other => return Err(format!("unknown key `{other}` in `expect`")),
            };
            expect_same(key, expected, &got)?;
        }
        Ok(())
    }
}

/// Waits for the end of a call and compares it with the step.
async fn ended(step: &serde_json::Map<String, Value>, open: OpenCall) -> Result<(), String> {
    let ends = step.get("ends").and_then(Value::as_str).unwrap_or("success");
    if ends == "cancelled" {
        open.context.cancellation.cancel();
    }
    let completion = open.running.await.map_err(|error| error.to_string())?;
    let record = &completion.record;
    let result_type = step.get("result_type").cloned();
    let got = json!(record.error_type.as_deref().unwrap_or(record.outcome));
    let expected = result_type.unwrap_or_else(|| {
        json!(match ends {
            "success" => "ok",
            "trap" => "Trap.Unreachable",
            "timeout" => "Timeout",
            "invalid_result" => "InvalidResult",
            "cancelled" => "cancelled",
            "guest_exit" => "GuestExit",
            "cpu_limit" => "CpuLimit",
            "memory_limit" => "MemoryLimit",
            other => other,
        })
    });
    expect_same("the end of the call", &expected, &got)
        .map_err(|error| format!("{error} {:?}", record.detail))?;
    match step.get("transient") {
        Some(expected) => {
            expect_same("transient", expected, &json!(completion.outcome.transient()))
        }
        None => Ok(()),
    }
}

/// Steps of a plugin, and their expected answers.
#[derive(Default)]
struct Script {
    steps: Vec<String>,
    expected: Vec<Option<String>>,
}

impl Script {
    fn add(&mut self, words: &[&str], expected: Option<String>) {
        self.steps.push(script::step(words));
        self.expected.push(expected);
    }

    /// Adds the writes of a row.
    fn writes(&mut self, writes: &[Value]) {
        for write in writes {
            let text =
                |name: &str| write.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let replaces = write.get("overwrite") == Some(&Value::Bool(true));
            let operation = if replaces { "replace" } else { "create" };
            let expected = write.get("result").and_then(Value::as_str).unwrap_or("done").to_owned();
            self.add(&[operation, "data", &text("path"), &text("content")], Some(expected));
        }
    }

    /// Adds the end of a call. Returns the tool and the limits that cause it.
    fn end(&mut self, word: &str) -> Result<(&'static str, Option<RequestedLimits>), String> {
        match word {
            "success" => {}
            "trap" => self.add(&["trap"], None),
            "guest_exit" => self.add(&["exit"], None),
            "failure" => self.add(&["fail"], None),
            "cancelled" => self.add(&["spin"], None),
            "timeout" => {
                self.add(&["spin"], None);
                let limits =
                    RequestedLimits { wall_ms_max: Some(SHORT_MS), ..RequestedLimits::default() };
                return Ok(("stores", Some(limits)));
            }
            "cpu_limit" => {
                self.add(&["compute"], None);
                let limits =
                    RequestedLimits { cpu_ms_max: Some(SHORT_MS), ..RequestedLimits::default() };
                return Ok(("stores", Some(limits)));
            }
            "memory_limit" => self.add(&["allocate"], None),
            "invalid_result" => return Ok(("lies_about_stores", None)),
            other => return Err(format!("unknown end `{other}`")),
        }
        Ok(("stores", None))
    }

    fn text(&self) -> String {
        self.steps.join(";")
    }

    /// Compares the answers of a call that succeeded.
    fn check(&self, completion: &Completion) {
        if completion.record.outcome != "ok" {
            return;
        }
        let shown = completion.outcome.shown().map(|shown| shown.text()).unwrap_or_default();
        for (answer, expected) in script::answers(&shown).iter().zip(&self.expected) {
            // The kind of error precedes its message.
            let text = answer.split_once(": ").map_or(answer.as_str(), |(_, text)| text);
            if let Some(expected) = expected {
                assert!(
                    answer == expected || text == expected,
                    "expected {expected:?}, got {answer:?}"
                );
            }
        }
    }
}

/// Returns the end of a call as steps write it.
fn attempts_end<'a>(error_type: Option<&'a str>, outcome: &'a str) -> &'a str {
    error_type.unwrap_or(outcome)
}

/// Plugin that receives another script with each attempt.
struct Attempts {
    source: Arc<dyn ToolSource>,
    definition: Arc<ToolDefinition>,
    runs: Mutex<VecDeque<(String, Option<Arc<RequestedLimits>>)>>,
}

#[async_trait]
impl ToolSource for Attempts {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        [Arc::clone(&self.definition)].into()
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let (arguments, limits) =
            self.runs.lock().unwrap().pop_front().expect("an attempt of the row");
        let decoded =
            self.definition.input.decode("stores", Some(arguments.as_bytes()), &Default::default());
        let call = ToolCall { arguments: decoded.expect("the arguments decode"), ..call };
        self.source.invoke(call, &CallContext { limits, ..context.clone() }).await
    }
}

/// Progress sink that signals each report.
struct ReportSignal(mpsc::UnboundedSender<()>);

impl ProgressSink for ReportSignal {
    fn report(&self, _call_id: &str, _progress: Progress) {
        let _result = self.0.send(());
    }
}

/// Returns the plugin that runs scripts, with `mounts`.
async fn plugin(mounts: Vec<Mount>) -> Result<Plugin, String> {
    static ENGINE: OnceCell<Engine> = OnceCell::const_new();
    let engine = ENGINE.get_or_init(|| async {
        let mut config = config();
        config.cache_directory = Some(shared_cache());
        config.pool.concurrent_calls_max = 4;
        Engine::new(config).expect("the engine starts")
    });
    let options = PluginOptions::new(
        PluginName::new("stores").expect("a constant name"),
        Grants { mounts, ..Grants::default() },
        Limits::default(),
    );
    let component = cofferdam_engine::Component::from_file_ambient(guest("stores"));
    engine.await.load(&component, options, &()).await.map_err(|error| error.to_string())
}

//! Folders with skills, scripts that are components, and results of tool calls.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use cofferdam_agent::BoxError;
use cofferdam_engine::{Component, Engine, Grants, Mount, PluginOptions};
use cofferdam_files::{DirectoryOptions, DirectoryStore};
use cofferdam_skills::{
    ComponentScripts, LoadComponent, ProgramSkill, SCRIPT_FOLDER, ScriptFile, ScriptRunner,
    SkillRoot, SkillsBuilder,
};
use cofferdam_tests::{config, shared_cache};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, FileAccess, InvalidArguments, Limits, MountName, Outcome,
    Output, PluginName, ToolError, ToolSource, Toolset,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::module::{Answer, Definition, Item, Module};

/// Tree of the row that the tools run on.
const TREE: &[&str] = &[
    "alpha/.hidden.md",
    "alpha/SKILL.md",
    "alpha/assets/ldir -> outside",
    "alpha/assets/pic.png",
    "alpha/assets/x.csv",
    "alpha/nested/SKILL.md",
    "alpha/other/o.md",
    "alpha/references/.hid.md",
    "alpha/references/UP.MD",
    "alpha/references/data.json",
    "alpha/references/deep/more.md",
    "alpha/references/guide.md",
    "alpha/references/latin1.txt",
    "alpha/references/link.md -> secret.md",
    "alpha/root.txt",
    "alpha/scripts/run.wasm",
    "alpha/scripts/sub/two.wasm",
    "alpha/tool.wasm",
    "g1/g2/gamma/SKILL.md",
    "group/beta/SKILL.md",
    "linkdir -> group",
    "lower/skill.md",
    "outside/o.md",
    "secret.md",
    "wrong/SKILL.md",
    "alpha/scripts/old.py",
    "alpha/scripts/notes.sh",
];

/// Engine and runtime of all rows.
struct World {
    runtime: tokio::runtime::Runtime,
    engine: Engine,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let mut config = config();
        config.cache_directory = Some(shared_cache());
        config.pool.concurrent_calls_max = 4;
        let engine = Engine::new(config).expect("the engine starts");
        World { runtime: runtime.expect("the runtime starts"), engine }
    })
}

/// Runs a future on the runtime of all rows.
pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    world().runtime.block_on(future)
}

/// Returns the runner of component scripts, like that of the binary.
pub(super) fn components() -> ComponentScripts {
    components_within(Limits::default())
}

pub(super) fn components_within(limits: Limits) -> ComponentScripts {
    ComponentScripts::new(Arc::new(OnEngine { limits }))
}

struct OnEngine {
    limits: Limits,
}

#[async_trait]
impl LoadComponent for OnEngine {
    async fn load(
        &self,
        script: &ScriptFile,
        bytes: Arc<[u8]>,
    ) -> Result<Arc<dyn ToolSource>, BoxError> {
        let mount = Mount::new(
            MountName::new(SCRIPT_FOLDER)?,
            Arc::clone(&script.folder),
            FileAccess::ReadOnly,
        );
        let options = PluginOptions::new(
            PluginName::new(&script.skill)?,
            Grants { mounts: vec![mount], ..Grants::default() },
            self.limits.clone(),
        );
        let plugin = world().engine.load(&Component::from_bytes(bytes), options, &()).await?;
        Ok(Arc::new(plugin))
    }
}

/// Runner for file name extensions that a row names. It runs nothing.
pub(super) struct Added(Vec<&'static str>);

impl Added {
    pub(super) fn of(endings: &Value) -> Result<Self, String> {
        let endings = endings.as_array().ok_or("the runners are not a list")?.iter();
        let ending = |ending: &Value| {
            let ending = ending.as_str()?.trim_start_matches('.').to_owned();
            Some(&*Box::leak(ending.into_boxed_str()))
        };
        Ok(Self(endings.map(ending).collect::<Option<_>>().ok_or("an ending is not text")?))
    }
}

#[async_trait]
impl ScriptRunner for Added {
    fn extensions(&self) -> &[&str] {
        &self.0
    }

    async fn run(&self, _: &ScriptFile, _: Value, _: &CallContext) -> Completion {
        let outcome = Outcome::Error(ToolError::host("NotForRunning"));
        Completion::new(outcome, CallRecord::default())
    }
}

/// Directory of the host with skills, with the name that a row needs.
pub(super) struct Folder {
    _holder: TempDir,
    path: PathBuf,
}

impl Default for Folder {
    fn default() -> Self {
        Self::named("root")
    }
}

impl Folder {
    fn named(name: &str) -> Self {
        let holder = tempfile::tempdir().expect("a folder");
        let path = holder.path().join(name);
        std::fs::create_dir(&path).expect("a folder in it");
        Self { _holder: holder, path }
    }

    /// Creates a folder with the files and links of a row, or with files and descriptions of their
    /// skills.
    pub(super) fn of_tree(tree: &Value, expect: &Value) -> Result<Self, String> {
        let lines: Vec<(String, Option<&str>)> = match tree {
            Value::Array(lines) => {
                let line = |line: &Value| Some((line.as_str()?.to_owned(), None));
                lines
                    .iter()
                    .map(line)
                    .collect::<Option<_>>()
                    .ok_or("a line of `tree` is not text")?
            }
            Value::Object(files) => files
                .iter()
                .map(|(path, description)| (path.clone(), description.as_str()))
                .collect(),
            other => return Err(format!("not a tree: {other}")),
        };
        let folder = Self::named(&root_name(&lines, expect));
        for (line, description) in &lines {
            match line.split_once(" -> ") {
                Some((link, target)) => folder.link(link, target),
                None => folder.write(line, &folder.content(line, *description)),
            }
        }
        Ok(folder)
    }

    /// Returns the content of a file of a row's tree.
    fn content(&self, file: &str, description: Option<&str>) -> Vec<u8> {
        let own = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
        let name = directory.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(&own);
        let (name, described, body) = match (file, name) {
            ("alpha/SKILL.md", _) => (name, r#"A <b> & "q""#, "# alpha body\n"),
            ("group/beta/SKILL.md", _) => (name, "desc of it", "# beta body\n"),
            ("wrong/SKILL.md", _) => ("another", "has another name inside", ""),
            _ => (name, file, ""),
        };
        match file.rsplit('/').next().unwrap_or_default() {
            "SKILL.md" | "skill.md" => {
                let description = description.unwrap_or(described);
                format!("---\nname: {name}\ndescription: {description}\n---\n{body}").into_bytes()
            }
            "guide.md" => "GUIDE é".into(),
            "root.txt" => "ROOT".into(),
            "latin1.txt" => b"caf\xe9".to_vec(),
            name if name.ends_with(".wasm") => echo().component(),
            _ => file.into(),
        }
    }

    /// Returns the name of the directory.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn write(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a directory");
        std::fs::write(path, content).expect("a file");
    }

    /// Makes a link; `target` is relative to the root.
    pub(super) fn link(&self, name: &str, target: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a directory");
        std::os::unix::fs::symlink(self.path(target), path).expect("a link");
    }

    pub(super) fn store(&self) -> Arc<DirectoryStore> {
        let store = DirectoryStore::open_ambient(&self.path, DirectoryOptions::default());
        Arc::new(store.expect("the folder opens"))
    }

    pub(super) fn root(&self) -> SkillRoot {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        SkillRoot::new(self.store()).named(name)
    }
}

/// Returns the row's name for the root, which matters if the root is itself a skill: the expected
/// name that no directory has.
fn root_name(lines: &[(String, Option<&str>)], expect: &Value) -> String {
    let is_skill = lines.iter().any(|(line, _)| line == "SKILL.md");
    let directories: BTreeSet<_> = lines.iter().flat_map(|(line, _)| line.split('/')).collect();
    let expected = expect.as_array().into_iter().flatten();
    let mut names =
        expected.filter_map(|item| item.as_str().or(item.get("name").and_then(Value::as_str)));
    let name = names.find(|name| is_skill && *name != "<root>" && !directories.contains(name));
    name.unwrap_or("root").to_owned()
}

/// The three skills that tools run on.
pub(super) struct Fixture {
    pub(super) folder: Folder,
    got: Arc<Mutex<Option<Value>>>,
}

pub(super) fn fixture() -> Fixture {
    let folder = Folder::of_tree(&json!(TREE), &Value::Null).expect("a tree of texts");
    Fixture { folder, got: Arc::default() }
}

impl Fixture {
    /// Returns the tools over the three skills, with the settings of `builder`.
    pub(super) async fn tools(&self, builder: SkillsBuilder) -> Result<Toolset, String> {
        let skills =
            builder.root(self.folder.root()).skill(self.inline()?).runner(components()).build();
        let tools = skills.map_err(|error| error.to_string())?.tools().await;
        let mut toolset = Toolset::new();
        toolset.add(Arc::new(tools)).map_err(|error| error.to_string())?;
        Ok(toolset)
    }

    /// Returns the arguments of the last call of the program's function.
    pub(super) fn script_got(&self) -> Option<Value> {
        self.got.lock().expect("no holder panics").clone()
    }

    fn inline(&self) -> Result<ProgramSkill, String> {
        let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer","default":2}},"required":["a"]}"#;
        let got = Arc::clone(&self.got);
        let skill = ProgramSkill::new("inline", "inline skill", "Do <it>.")
            .and_then(|skill| skill.resource("conf", "CONF"))
            .and_then(|skill| skill.made_resource("boom-res", async || Err("secret detail".into())))
            .and_then(|skill| {
                skill.script(Declaration::new("addup", "Adds.", schema), move |arguments, _| {
                    *got.lock().expect("no holder panics") = Some(json!(arguments.value()));
                    let number = |name: &str| arguments.value()[name].as_i64().unwrap_or_default();
                    let sum = number("a") + number("b");
                    async move { Ok(json!(sum)) }
                })
            })
            .and_then(|skill| {
                let fails = Declaration::new("fails", "Fails.", r#"{"type":"object"}"#);
                skill.script(fails, async |_, _| Err(FunctionEnd::Error(Box::new(unforeseen()))))
            });
        skill.map_err(|error| error.to_string())
    }
}

/// Returns an error of the type `Error`, without details for the model.
fn unforeseen() -> ToolError {
    ToolError::host("Error").with_detail("secret detail")
}

/// Result of a tool's call as the model sees it.
pub(super) struct Ran {
    pub(super) text: String,
    pub(super) is_error: bool,
    value: Option<Value>,
    pub(super) detail: Option<String>,
    pub(super) refused: Vec<String>,
}

impl Ran {
    pub(super) fn of(completion: &Completion) -> Result<Self, String> {
        let shown = completion.outcome.shown().ok_or("nothing is shown")?;
        let value = match &shown.output {
            Output::Value(value) => Some(value.clone()),
            Output::Contents(_) => None,
        };
        let refused =
            completion.record.refused.iter().map(|refusal| refusal.capability.to_string());
        Ok(Self {
            text: shown.text(),
            is_error: shown.is_error,
            value,
            detail: completion.record.detail.clone(),
            refused: refused.collect(),
        })
    }

    /// Returns the result for arguments of the tool itself that do not decode.
    pub(super) fn refused(invalid: &InvalidArguments) -> Self {
        let value = json!({"error": {"message": invalid.to_string()}});
        let text = format!("Error: Argument parsing failed. {invalid}");
        Self { text, is_error: true, value: Some(value), detail: None, refused: Vec::new() }
    }

    /// Returns the value, or the text parsed as JSON.
    pub(super) fn json(&self) -> Result<Value, String> {
        match &self.value {
            Some(Value::String(_)) | None => serde_json::from_str(&self.text)
                .map_err(|error| format!("{error} in {:?}", self.text)),
            Some(value) => Ok(value.clone()),
        }
    }

    /// Returns the value of `error`.
    pub(super) fn error(&self) -> Result<Value, String> {
        self.json()?.get("error").cloned().ok_or_else(|| format!("no error: {}", self.text))
    }
}

/// Returns a script that takes `args` and runs `body`.
pub(super) fn script<'a>(module: Module<'a>) -> Module<'a> {
    let input_schema = br#"{"type":"object","properties":{"args":{}}}"#.to_vec();
    Module { definitions: vec![Definition { input_schema, ..Definition::new("run") }], ..module }
}

/// Returns a script that returns `{"ok":true,"args":<args>}`: it replaces the beginning of its
/// arguments.
fn echo() -> Module<'static> {
    script(Module {
        fields: r#"(data (i32.const 300) "{\22ok\22:true,") (data (i32.const 320) "[\22boom\22]")"#,
        // The arguments are `{"args":["boom"…`: the script traps if the first one is `boom`.
        body: r#"
            (local $out i32)
            (if (i32.and (i32.gt_u (local.get 3) (i32.const 15))
                  (i64.eq (i64.load align=1 (i32.add (local.get 2) (i32.const 8)))
                          (i64.load align=1 (i32.const 320))))
              (then (unreachable)))
            (local.set $out (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -8)))
            (memory.copy (local.get $out) (i32.const 300) (i32.const 11))
            (memory.copy (i32.add (local.get $out) (i32.const 11)) (i32.add (local.get 2) (i32.const 1))
              (i32.sub (local.get 3) (i32.const 1)))
            (i32.store (i32.const 512) (i32.const 0))
            (i32.store (i32.const 516) (i32.const 560))
            (i32.store (i32.const 520) (i32.const 1))
            (i32.store (i32.const 560) (i32.const 1))
            (i32.store (i32.const 564) (local.get $out))
            (i32.store (i32.const 568) (i32.add (local.get 3) (i32.const 10)))
            (return (i32.const 512))"#,
        answer: Answer::Contents(vec![Item::Json("null")]),
        ..Module::default()
    })
}

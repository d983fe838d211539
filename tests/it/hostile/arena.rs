//! An engine under attack, with an honest plugin and a granted folder, and the checks after every
//! attack.

use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_engine::{Component, LoadError, Mount, Plugin};
use cofferdam_files::{DirectoryOptions, DirectoryStore};
use cofferdam_tests::{Host, guest};
use cofferdam_tool::invoke::{Progress, ProgressSink};
use cofferdam_tool::{CallContext, Completion, FileAccess, MountName, Outcome, Toolset};
use tempfile::TempDir;

use crate::module::Module;

/// Wall-clock limits in milliseconds: the short one for attacks that must reach it, the long one
/// for all others.
const SHORT_WALL_MS: u64 = 100;
const LONG_WALL_MS: u64 = 30_000;
/// Maximum time of an attack on a machine that also runs other tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// An attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// Goal of the attacker.
    pub(crate) goal: &'static str,
    pub(crate) launch: Launch,
    pub(crate) end: End,
}

/// Way to launch an attack.
#[derive(Clone, Copy)]
pub(crate) enum Launch {
    /// Calls the tool `attack` of the guest `hostile` with the attack's name.
    Named,
    /// Calls a tool of a guest with JSON: guest, tool, arguments.
    Tool(&'static str, &'static str, &'static str),
    /// Loads a guest made of a module and calls its tool.
    Module(fn() -> Module<'static>),
    /// Loads a component in the text format and, if that succeeds, calls its tool.
    Text(fn() -> String),
    /// Loads bytes and, if that succeeds, calls a tool.
    Bytes(fn() -> Vec<u8>),
    /// Runs several steps.
    Steps(fn(&mut Arena) -> Steps<'_>),
}

/// Steps of [`Launch::Steps`].
pub(crate) type Steps<'a> = Pin<Box<dyn Future<Output = Ended> + 'a>>;

/// Actual end of an attack.
pub(crate) enum Ended {
    /// The call ended.
    Called(Box<Completion>),
    /// The component was refused, with this message.
    Refused(String),
    /// The steps have checked the result themselves.
    AsExpected,
}

/// Required end of an attack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// An error of this type.
    Error(&'static str),
    /// A failure that the tool reports.
    Failure,
    /// A success with this text.
    Says(&'static str),
    /// A success with any text.
    Succeeds,
    /// The component is refused with a message that contains these words.
    Refused(&'static str),
    /// The steps check the result themselves.
    AsExpected,
}

/// An engine under attack.
pub(crate) struct Arena {
    pub(crate) host: Host,
    /// Progress that the sink received.
    pub(crate) progress: Arc<Reports>,
    /// Folder that is mounted at `/data`, with a file.
    folder: TempDir,
}

/// Recorded progress.
#[derive(Default)]
pub(crate) struct Reports(pub(crate) Mutex<Vec<Progress>>);

impl ProgressSink for Reports {
    fn report(&self, _call_id: &str, progress: Progress) {
        self.0.lock().unwrap().push(progress);
    }
}

/// Launches the attack of that name, and checks its end and what it leaves.
pub(crate) async fn check(attacks: &[Attack], name: &str) {
    let attack =
        attacks.iter().find(|attack| attack.name == name).expect("the row that made this test");
    let mut arena = Arena::new().await;
    arena.expect(attack.end);
    let ended = tokio::time::timeout(PATIENCE, arena.launch(attack)).await;
    let ended = ended.unwrap_or_else(|_| panic!("{name} did not end"));
    assert_end(attack, &ended);
    assert_modest(&ended);
    arena.assert_honest().await;
}

impl Arena {
    pub(crate) async fn new() -> Self {
        Self::with(Host::new()).await
    }

    /// Creates an arena around a host without plugins.
    pub(crate) async fn with(mut host: Host) -> Self {
        host.load("remember").await;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file.txt"), "content").unwrap();
        host.grants.mounts.push(mount(folder.path()));
        host.limits.wall_ms_max = LONG_WALL_MS;
        Self { host, progress: Arc::default(), folder }
    }

    /// Sets a short wall-clock limit if the attack must reach it.
    pub(crate) fn expect(&mut self, end: End) {
        let is_timeout = matches!(end, End::Error("Timeout"));
        self.host.limits.wall_ms_max = if is_timeout { SHORT_WALL_MS } else { LONG_WALL_MS };
    }

    /// Returns the folder behind `/data`.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn launch(&mut self, attack: &Attack) -> Ended {
        match attack.launch {
            Launch::Named => self.call("hostile", "attack", &named(attack.name)).await,
            Launch::Tool(guest, tool, arguments) => self.call(guest, tool, arguments).await,
            Launch::Module(module) => self.run(module().component()).await,
            Launch::Text(text) => {
                self.run(wat::parse_str(text()).expect("the text is well-formed")).await
            }
            Launch::Bytes(bytes) => self.run(bytes()).await,
            Launch::Steps(steps) => steps(self).await,
        }
    }

    /// Loads a built guest and calls one of its tools.
    pub(crate) async fn call(&self, name: &str, tool: &str, arguments: &str) -> Ended {
        self.call_component(&Component::from_file_ambient(guest(name)), tool, arguments).await
    }

    /// Loads a component and calls one of its tools.
    pub(crate) async fn call_component(
        &self,
        component: &Component,
        tool: &str,
        arguments: &str,
    ) -> Ended {
        match self.load(component).await {
            Ok(plugin) => self.call_plugin(plugin, tool, arguments).await,
            Err(error) => refused(&error),
        }
    }

    /// Loads bytes and calls their first tool.
    pub(crate) async fn run(&self, bytes: Vec<u8>) -> Ended {
        match self.load(&Component::from_bytes(bytes)).await {
            Ok(plugin) => {
                let tool = cofferdam_tool::ToolSource::definitions(&plugin)[0].name.to_string();
                self.call_plugin(plugin, &tool, "{}").await
            }
            Err(error) => refused(&error),
        }
    }

    /// Like [`Arena::run`] for arbitrary bytes: tools that need arguments are not called.
    pub(crate) async fn run_any(&self, bytes: Vec<u8>) -> Ended {
        let Ok(plugin) = self.load(&Component::from_bytes(bytes.clone())).await else {
            return Ended::Refused(String::new());
        };
        let has_tools = !cofferdam_tool::ToolSource::definitions(&plugin).is_empty();
        if has_tools { self.run(bytes).await } else { Ended::AsExpected }
    }

    pub(crate) async fn load(&self, component: &Component) -> Result<Plugin, LoadError> {
        self.host.try_load(component).await
    }

    async fn call_plugin(&self, plugin: Plugin, tool: &str, arguments: &str) -> Ended {
        let mut toolset = Toolset::new();
        toolset.add(Arc::new(plugin)).expect("one plugin has unique names");
        let progress: Arc<Reports> = Arc::clone(&self.progress);
        let context = CallContext { progress: Some(progress), ..CallContext::new("attack") };
        match toolset.call(tool, Some(arguments.as_bytes()), &context).await {
            Ok(completion) => Ended::Called(Box::new(completion)),
            Err(refused) => panic!("the call does not start: {refused}"),
        }
    }

    /// Checks that an honest call on this engine returns the right value.
    pub(crate) async fn assert_honest(&self) {
        let completion = self.host.call("remember", "{}").await;
        let shown = completion.outcome.shown().map(|shown| shown.text());
        assert_eq!(
            shown.as_deref(),
            Some("1"),
            "an honest call afterwards: {:?}",
            completion.outcome
        );
    }
}

/// Returns the arguments of the tool `attack`.
pub(crate) fn named(name: &str) -> String {
    serde_json::json!({ "name": name }).to_string()
}

fn mount(directory: &Path) -> Mount {
    let store = DirectoryStore::open_ambient(directory, DirectoryOptions::default());
    let store = Arc::new(store.expect("the directory can be mounted"));
    Mount::new(MountName::new("data").unwrap(), store, FileAccess::ReadWrite)
}

/// Checks the message of a refusal: one line that fits a terminal and cannot drive it.
fn refused(error: &LoadError) -> Ended {
    let text = error.to_string();
    assert!(!text.is_empty() && text.len() <= 2_000, "{} bytes of reason", text.len());
    assert!(!text.contains(char::is_control), "control characters in {text:?}");
    Ended::Refused(text)
}

pub(crate) fn assert_end(attack: &Attack, ended: &Ended) {
    let name = attack.name;
    match (attack.end, ended) {
        (End::Refused(words), Ended::Refused(text)) => {
            assert!(text.contains(words), "{name}: {text}")
        }
        (End::AsExpected, Ended::AsExpected) => {}
        (end, Ended::Called(completion)) => assert_outcome(name, end, completion),
        (end, Ended::Refused(text)) => {
            panic!("{name}: {end:?} expected, but it is refused: {text}")
        }
        (end, Ended::AsExpected) => panic!("{name}: {end:?} expected, and nothing was checked"),
    }
}

fn assert_outcome(name: &str, end: End, completion: &Completion) {
    let Completion { outcome, record } = completion;
    let short: String = format!("{outcome:?}").chars().take(300).collect();
    match (end, outcome) {
        (End::Error(expected), Outcome::Error(_)) => {
            assert_eq!(record.error_type.as_deref(), Some(expected), "{name}: {:?}", record.detail);
        }
        (End::Failure, Outcome::Failure(_)) | (End::Succeeds, Outcome::Ok(_)) => {}
        (End::Says(expected), Outcome::Ok(output)) => assert_eq!(output.text(), expected, "{name}"),
        (end, _) => {
            panic!("{name}: {end:?} expected, and it ended as {short} ({:?})", record.detail)
        }
    }
}

/// Checks that the host keeps little of an attack.
pub(crate) fn assert_modest(ended: &Ended) {
    let Ended::Called(completion) = ended else { return };
    let record = &completion.record;
    for tail in [&record.stdout_tail, &record.stderr_tail] {
        assert!(tail.len() <= 3 * 8192, "{} bytes of log", tail.len());
    }
    let detail = record.detail.as_ref().map_or(0, String::len);
    let backtrace = record.backtrace.as_ref().map_or(0, String::len);
    assert!(detail <= 4_096, "{detail} bytes of detail");
    assert!(backtrace <= 65_536, "{backtrace} bytes of call stack");
    let shown = completion.outcome.shown().map_or(0, |shown| shown.text().len());
    assert!(shown <= 2 << 20, "{shown} bytes for the model");
}

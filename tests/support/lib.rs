//! Shared code of the end-to-end tests and the benchmarks: paths of built guests and of the binary,
//! and a host that runs them.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "everything here serves tests, where a panic is the message"
)]

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use cofferdam_engine::{
    Compiler, Component, Engine, EngineConfig, Grants, LoadError, Plugin, PluginOptions, PoolSize,
};
use cofferdam_tool::recording::RecordingLevel;
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{CallContext, Completion, Limits, PluginName, RefusedCall, Toolset};

/// Returns the root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies below the root")
        .to_owned()
}

/// Returns a component that `cargo xtask guests` has built.
///
/// # Panics
/// If it has not been built.
#[must_use]
pub fn guest(name: &str) -> PathBuf {
    let path = root().join("target/plugins").join(format!("{name}.wasm"));
    assert!(path.is_file(), "{} is missing: run `cargo xtask guests` first", path.display());
    path
}

/// Returns the `cofferdam` binary that was built beside the running test or benchmark.
///
/// # Panics
/// If it has not been built.
#[must_use]
pub fn binary() -> PathBuf {
    let this = std::env::current_exe().expect("a running program has a path");
    let beside =
        this.ancestors().skip(1).map(|folder| folder.join("cofferdam")).find(|path| path.is_file());
    beside.expect("the binary is missing: run `cargo build -p cofferdam-cli` first")
}

/// Returns an engine configuration like the binary's: a child process compiles.
#[must_use]
pub fn config() -> EngineConfig {
    let mut config = EngineConfig::new(Compiler::Child {
        program: binary(),
        arguments: vec!["cofferdam-compile-child".into()],
    });
    config.idle_hook = Some(give_back_freed_memory);
    config
}

/// Returns memory that the allocator of the tests has freed to the system, as an embedding program
/// can.
fn give_back_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "the allocator has no other interface")]
    // SAFETY: takes the allocator's own locks and touches only free memory. Any thread may call it
    // at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Engine with a cache of its own and plugins.
pub struct Host {
    /// The engine.
    pub engine: Engine,
    /// Limits of plugins that are loaded afterwards.
    pub limits: Limits,
    /// Grants of plugins that are loaded afterwards.
    pub grants: Grants,
    /// Calls that plugins record that are loaded afterwards.
    pub recording: RecordingLevel,
    toolset: Toolset,
    plugins: Vec<Arc<Plugin>>,
}

impl Host {
    /// Creates a host without plugins. All hosts of one test run share a cache, so that each guest
    /// is compiled once.
    ///
    /// # Panics
    /// If the engine does not start.
    #[must_use]
    pub fn new() -> Self {
        let mut config = config();
        config.cache_directory = Some(shared_cache());
        config.pool = PoolSize { concurrent_calls_max: 8, ..PoolSize::default() };
        Self::with(config)
    }

    /// Creates a host with this configuration.
    ///
    /// # Panics
    /// If the engine does not start.
    #[must_use]
    pub fn with(config: EngineConfig) -> Self {
        let engine = Engine::new(config).expect("the engine starts");
        Self {
            engine,
            limits: Limits::default(),
            grants: Grants::default(),
            recording: RecordingLevel::default(),
            toolset: Toolset::new(),
            plugins: Vec::new(),
        }
    }

    /// Loads a built guest as a plugin of the same name.
    ///
    /// # Panics
    /// If it does not load.
    pub async fn load(&mut self, name: &str) -> &mut Self {
        let component = Component::from_file_ambient(guest(name));
        let plugin = self.try_load_as(name, &component).await;
        let plugin = plugin.unwrap_or_else(|error| panic!("{name} does not load: {error}"));
        self.add(plugin)
    }

    /// Adds a plugin.
    ///
    /// # Panics
    /// If a tool's name is taken.
    pub fn add(&mut self, plugin: Plugin) -> &mut Self {
        let plugin = Arc::new(plugin);
        self.plugins.push(Arc::clone(&plugin));
        self.toolset.add(plugin).expect("tool names are unique");
        self
    }

    /// Sets the receiver of all calls.
    pub fn set_sink(&mut self, sink: Arc<dyn CallSink>) {
        self.toolset.set_sink(sink);
    }

    /// Returns the plugin that was loaded last.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn plugin(&self) -> &Arc<Plugin> {
        self.plugins.last().expect("a plugin was loaded")
    }

    /// Loads any component.
    ///
    /// # Errors
    /// The error of the engine.
    pub async fn try_load(&self, component: &Component) -> Result<Plugin, LoadError> {
        self.try_load_as("guest", component).await
    }

    /// Loads any component under a name.
    ///
    /// # Errors
    /// The error of the engine.
    ///
    /// # Panics
    /// If the name is invalid.
    pub async fn try_load_as(
        &self,
        name: &str,
        component: &Component,
    ) -> Result<Plugin, LoadError> {
        let name = PluginName::new(name).expect("a name for a plugin");
        let options = PluginOptions {
            recording: self.recording,
            ..PluginOptions::new(name, self.grants.clone(), self.limits.clone())
        };
        self.engine.load(component, options, &()).await
    }

    /// Calls a tool with arguments in JSON.
    ///
    /// # Panics
    /// If the call does not start.
    pub async fn call(&self, tool: &str, arguments: &str) -> Completion {
        self.try_call(tool, arguments, &CallContext::new("test")).await.expect("the call starts")
    }

    /// Calls a tool in a context.
    ///
    /// # Errors
    /// [`RefusedCall`] if the call does not start.
    pub async fn try_call(
        &self,
        tool: &str,
        arguments: &str,
        context: &CallContext,
    ) -> Result<Completion, RefusedCall> {
        self.toolset.call(tool, Some(arguments.as_bytes()), context).await
    }

    /// Returns the tools of the loaded plugins.
    #[must_use]
    pub fn toolset(&self) -> &Toolset {
        &self.toolset
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns a port on which nothing listens. Systems do not choose ports below 32768 for connections
/// and listeners of other processes and tests, and each call returns another one.
#[must_use]
pub fn unused_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        // Not by listening: a process that another test is starting would have the listener, too.
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return port;
        }
    }
}

/// Returns a cache below `target`, private to this user like every cache.
///
/// # Panics
/// If it cannot be created.
#[must_use]
pub fn shared_cache() -> PathBuf {
    let path = root().join("target/test-cache");
    std::fs::create_dir_all(path.parent().expect("the path has a parent"))
        .expect("target can be created");
    path
}

/// Writes a program that can be run at once, by another process. Linux runs no file that is open for
/// writing, and a process that a test starts beside this one holds this test's open files until it
/// runs its own program.
///
/// # Panics
/// If it cannot be written.
pub fn write_program(path: &Path, script: &str) {
    let mut shell = Command::new("sh")
        .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let mut input = shell.stdin.take().expect("the input is a pipe");
    input.write_all(script.as_bytes()).expect("the shell reads its input");
    drop(input);
    assert!(shell.wait().expect("the shell ends").success(), "{} is not written", path.display());
}

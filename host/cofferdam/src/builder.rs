//! Builds a host from plugins, grants and a configuration.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_engine::{Compiler, Grants, PoolSize};
use cofferdam_tool::recording::RecordingLevel;
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{FileAccess, Limits, ToolSource};

use crate::code_mode::CodeSelection;
use crate::host::HostParts;
use crate::records::RecordMode;
use crate::{
    CacheDirectory, EngineOptions, Host, Observer, Operator, PluginFile, Prompter, Purpose, Result,
    Selection, StoreLocation, StoreMount,
};

/// Builds a [`Host`].
#[must_use]
pub struct HostBuilder {
    selection: Selection,
    engine: EngineOptions,
    operator: Operator,
    purpose: Purpose,
    protected: Vec<PathBuf>,
}

impl Default for HostBuilder {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            engine: EngineOptions::default(),
            operator: Operator::default(),
            purpose: Purpose::Converse,
            protected: Vec::new(),
        }
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder")
            .field("selection", &self.selection)
            .field("engine", &self.engine)
            .field("purpose", &self.purpose)
            .finish_non_exhaustive()
    }
}

impl HostBuilder {
    /// Adds everything that a configuration names: plugins with their grants and limits, MCP
    /// servers, stores, skills. Plugins that cannot be loaded and servers that cannot be reached
    /// are left out with a note.
    pub fn config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.selection.config = Some(path.into());
        self
    }

    /// Sets code mode: `run_code`, a tool that runs programs, which call the other tools.
    pub fn code(mut self, code: CodeSelection) -> Self {
        self.selection.code = code;
        self
    }

    /// Sets the whole selection. Call it first: it discards plugins, mounts, sources and other
    /// parts that were added before.
    pub fn selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Adds a plugin from a component file, named after the file.
    pub fn plugin(mut self, component: impl Into<PathBuf>) -> Self {
        self.selection.plugins.push(PluginFile { name: None, component: component.into() });
        self
    }

    /// Adds a plugin with the given name.
    pub fn named_plugin(mut self, name: impl Into<String>, component: impl Into<PathBuf>) -> Self {
        let plugin = PluginFile { name: Some(name.into()), component: component.into() };
        self.selection.plugins.push(plugin);
        self
    }

    /// Grants a directory, as `/NAME`, to the plugins that were added by file. They can create at
    /// most 64 MiB and 10 000 entries in it.
    pub fn mount(
        mut self,
        name: impl Into<String>,
        directory: impl Into<PathBuf>,
        access: FileAccess,
    ) -> Self {
        let location = StoreLocation::Directory(directory.into());
        self.selection.mounts.push(StoreMount { name: name.into(), location, access });
        self
    }

    /// Sets the grants of the plugins that were added by file, beside the directories of
    /// [`mount`](Self::mount). Without them they have no network, no environment and no secrets.
    pub fn grants(mut self, grants: Grants) -> Self {
        self.selection.grants = grants;
        self
    }

    /// Sets the limits of each call of the plugins that were added by file.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.selection.limits = limits;
        self
    }

    /// Sets the maximum wall-clock time of each call, for all plugins and servers. For plugins that
    /// were added by file, a time longer than the default CPU limit raises that limit too, unless
    /// [`limits`](Self::limits) sets another one.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.selection.timeout = Some(timeout);
        self
    }

    /// Adds tools that are not plugins, such as functions of the program.
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.selection.sources.push(source);
        self
    }

    /// Sets the directory for compiled code. Only the user may have access to it. The default is
    /// `cofferdam` in the user's cache directory.
    pub fn cache_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.engine.cache = CacheDirectory::At(directory.into());
        self
    }

    /// Disables the cache: plugins are compiled in every process.
    pub fn no_cache(mut self) -> Self {
        self.engine.cache = CacheDirectory::None;
        self
    }

    /// Sets the compiler of plugins. The default is this program, started again as a child process.
    pub fn compiler(mut self, compiler: Compiler) -> Self {
        self.engine.compiler = Some(compiler);
        self
    }

    /// Sets the number of concurrent calls, at least 1, and their shares of the pool.
    pub fn pool(mut self, pool: PoolSize) -> Self {
        self.engine.pool = pool;
        self
    }

    /// Sets all options of the engine.
    pub fn engine(mut self, options: EngineOptions) -> Self {
        self.engine = options;
        self
    }

    /// Sets the prompter that asks the operator about changes and missing grants. Without one,
    /// changed plugins are left out and nothing is granted beyond the configuration.
    pub fn prompter(mut self, prompter: Arc<dyn Prompter>) -> Self {
        self.operator = self.operator.with_prompter(prompter);
        self
    }

    /// Sets the observer that receives notes. Without one, notes go to the log.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.operator = self.operator.with_observer(observer);
        self
    }

    /// Sets the prompter and the observer.
    pub fn operator(mut self, operator: Operator) -> Self {
        self.operator = operator;
        self
    }

    /// Records calls of plugins so that they can run again ([`replay`](crate::replay)), whatever
    /// the configuration says. A recording contains what the tool has read. It is in the record of
    /// the call, which the call log and a [`CallSink`] receive.
    pub fn recording(mut self, level: RecordingLevel) -> Self {
        self.selection.recording = Some(level);
        self
    }

    /// Sets the recording of calls in the call log. By default, a host records nothing unless its
    /// configuration has `[records]` with `enabled = true`.
    pub fn records(mut self, mode: RecordMode) -> Self {
        self.selection.records = mode;
        self
    }

    /// Sends all calls to a sink of the program instead of the call log.
    pub fn call_sink(mut self, sink: Arc<dyn CallSink>) -> Self {
        self.selection.call_sink = Some(sink);
        self
    }

    /// Sets the purpose of the host. The default is [`Purpose::Converse`].
    pub fn purpose(mut self, purpose: Purpose) -> Self {
        self.purpose = purpose;
        self
    }

    /// Adds paths that no tool may write to.
    pub fn protect(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected.extend(paths);
        self
    }

    /// Reads the configuration, opens the stores, loads the plugins, connects to the servers and
    /// builds the host. Compiling a plugin for the first time takes about a second for each
    /// megabyte.
    ///
    /// # Errors
    /// Returns an error, before any tool is called, if
    ///
    /// * the selection or its configuration is invalid,
    /// * a plugin could write a file that controls its grants,
    /// * every plugin is unavailable and there are no other tools.
    pub async fn build(self) -> Result<Host> {
        let Self { selection, engine, operator, purpose, protected } = &self;
        let parts = HostParts { selection, purpose: *purpose, protected, operator };
        Box::pin(Host::build(parts, || engine.start())).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, ErrorKind};

    async fn refused(builder: HostBuilder) -> Error {
        builder.build().await.unwrap_err()
    }

    /// Returns a directory with a file that has the name of a component.
    fn directory() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let component = directory.path().join("tool.wasm");
        std::fs::write(&component, b"not a component").unwrap();
        (directory, component)
    }

    #[tokio::test]
    async fn the_error_of_a_program_without_the_hook_says_to_add_it() {
        let (_directory, component) = directory();
        let error = refused(Host::builder().plugin(component)).await;
        assert!(
            error.to_string().contains("call `cofferdam::init()` first thing in `main`"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn no_plugin_can_write_what_decides_about_its_grants() {
        let (directory, component) = directory();
        let host =
            |access| Host::builder().plugin(&component).mount("here", directory.path(), access);
        let error = refused(host(FileAccess::ReadWrite)).await;
        let file = component.display().to_string();
        assert!(error.to_string().contains(&format!("holds {file}, which decides")), "{error}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let error = refused(host(FileAccess::ReadOnly)).await;
        assert!(matches!(error, Error::NotInitialized), "{error}");
    }

    #[tokio::test]
    async fn an_error_of_a_plugin_names_its_file_and_the_reason_once() {
        let (_directory, component) = directory();
        let host = Host::builder().plugin(&component).no_cache().compiler(Compiler::InProcess);
        let error = refused(host).await;
        let reason = error.to_string();
        assert!(
            reason.starts_with(&format!("{}: not a WebAssembly file", component.display())),
            "{reason}"
        );
        assert_eq!(format!("{error:#}"), reason);
    }

    #[tokio::test]
    async fn a_pool_without_room_is_refused() {
        let (_directory, component) = directory();
        let pool = PoolSize { concurrent_calls_max: 0, ..PoolSize::default() };
        let host = Host::builder().plugin(component).no_cache().compiler(Compiler::InProcess);
        let error = refused(host.pool(pool)).await;
        assert!(error.to_string().contains("must be at least 1"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }

    #[tokio::test]
    async fn names_are_checked() {
        let (directory, component) = directory();
        let host = || Host::builder().plugin(&component);
        let error = refused(host().mount("no/name", directory.path(), FileAccess::ReadOnly)).await;
        assert!(
            error.to_string().starts_with("`no/name` cannot be the name of a mount"),
            "{error}"
        );
        let twice = host().mount("a", directory.path(), FileAccess::ReadOnly).mount(
            "a",
            directory.path(),
            FileAccess::ReadOnly,
        );
        assert_eq!(refused(twice).await.to_string(), "two mounts are called `a`");
        let error =
            refused(host().mount("a", directory.path().join("none"), FileAccess::ReadOnly)).await;
        assert!(error.to_string().contains("cannot be mounted"), "{error}");
        let host = Host::builder()
            .named_plugin("a b", &component)
            .no_cache()
            .compiler(Compiler::InProcess);
        assert!(refused(host).await.to_string().starts_with("plugin name `a b`: "));
    }
}

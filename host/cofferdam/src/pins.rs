//! `cofferdam.lock`: the state of each plugin and server when the operator accepted it.
//!
//! A plugin, or the descriptions of its tools that a model reads, can turn malicious in an update.
//! So the first load of a plugin records the digest of its component, the permissions it requests
//! and its tools. Later differences are shown to the operator and need consent: at a terminal, or
//! with `cofferdam approve`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Context as _;
use cofferdam_engine::Plugin;
#[cfg(feature = "mcp")]
use cofferdam_mcp::client::{IgnoredStatements, Statements};
use cofferdam_registry::Digest;
use cofferdam_tool::declaration::{Declaration, check_declarations};
use cofferdam_tool::permission::RequestedPermissions;
use cofferdam_tool::{PluginName, ToolDefinition, ToolSource};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::artifacts::Origin;
use crate::config::ComponentLocation;
use crate::config::edit::replace_file;
use crate::difference::{DefinitionDiff, Definitions};
use crate::folder_lock::FolderLock;
use crate::json;
#[cfg(feature = "mcp")]
use crate::servers::ServerChange;

/// Extension of the lock file, which replaces the configuration's.
const EXTENSION: &str = "lock";
/// Maximum size of the file in bytes: enough for a hundred plugins with the longest definitions.
const PINS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Accepted plugins and servers of one configuration.
#[derive(Debug, Default)]
pub struct Pins {
    path: PathBuf,
    file: PinsFile,
    /// Plugins whose entries were changed or removed.
    changed_plugins: BTreeSet<String>,
    accepted_servers: BTreeSet<String>,
    /// True if the interpreter was accepted.
    has_new_interpreter: bool,
}

/// Serializes writes in this process, because a file system may not support locks.
static SAVING: Mutex<()> = Mutex::new(());

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinsFile {
    plugins: BTreeMap<String, Pin>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    servers: BTreeMap<String, ServerPin>,
    /// Origin of the interpreter of code mode, if it was fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interpreter: Option<Origin>,
}

/// Accepted state of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServerPin {
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    tools: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    prompts: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resources: BTreeMap<String, Value>,
}

#[cfg(feature = "mcp")]
/// Result of comparing a server with its accepted state.
#[derive(Debug, PartialEq)]
pub(crate) enum ComparedServer {
    /// The server makes no statement that was not accepted.
    Same,
    /// The server was never used with this configuration.
    New,
    /// The server's statements have changed.
    Changed(Box<ServerChange>),
}

/// Accepted state of a plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pin {
    component: String,
    asks: Vec<String>,
    tools: BTreeMap<String, Value>,
    /// Origin of a plugin that was fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
}

/// Result of comparing a plugin with its accepted state.
#[derive(Debug, PartialEq)]
pub enum PinComparison {
    /// The plugin is unchanged.
    Same,
    /// The plugin was never loaded with this configuration.
    New,
    /// The plugin has changed.
    Changed(Box<DefinitionDiff>),
}

impl Pins {
    /// Reads the pins of a configuration.
    pub fn of_config_ambient(config: &Path) -> crate::Result<Self> {
        let path = Self::path_of(config);
        let file = read(&path)?;
        Ok(Self { path, file, ..Self::default() })
    }

    /// Creates empty pins for a configuration.
    pub fn none(config: &Path) -> Self {
        Self { path: Self::path_of(config), ..Self::default() }
    }

    /// Returns the path of a configuration's lock file.
    pub(crate) fn path_of(config: &Path) -> PathBuf {
        config.with_extension(EXTENSION)
    }

    /// Returns the accepted tools of a plugin, if they can be read.
    pub(crate) fn accepted_tools(
        config: &Path,
        plugin: &PluginName,
    ) -> Option<Vec<Arc<ToolDefinition>>> {
        let pins = Self::of_config_ambient(config).ok()?;
        let pin = pins.file.plugins.get(plugin.as_str())?;
        let declarations = pin.tools.values().map(declaration).collect::<Option<Vec<_>>>()?;
        Some(check_declarations(&declarations).ok()?.into_iter().map(Arc::new).collect())
    }

    /// Compares a plugin with its accepted state.
    pub fn compare(&self, plugin: &Plugin) -> PinComparison {
        let now = Pin::of(plugin);
        match self.file.plugins.get(plugin.identity().name.as_str()) {
            None => PinComparison::New,
            Some(before) if before.is_same(&now) => PinComparison::Same,
            Some(before) => PinComparison::Changed(Box::new(DefinitionDiff::of(
                before.definitions(),
                now.definitions(),
            ))),
        }
    }

    /// Accepts the current state of a plugin. Its origin stays if it has the same component.
    pub fn accept(&mut self, plugin: &Plugin) {
        let mut pin = Pin::of(plugin);
        let name = plugin.identity().name.to_string();
        if let Some(before) = self.file.plugins.get(&name) {
            pin.origin = before.origin.clone().filter(|_| before.component == pin.component);
        }
        self.set(name, Some(pin));
    }

    /// Accepts the current state of a plugin that was fetched.
    pub(crate) fn accept_fetched(&mut self, plugin: &Plugin, origin: Origin) {
        let pin = Pin { origin: Some(origin), ..Pin::of(plugin) };
        self.set(plugin.identity().name.to_string(), Some(pin));
    }

    /// Removes the accepted state of a plugin.
    pub fn remove(&mut self, plugin: &str) {
        self.set(plugin.to_owned(), None);
    }

    fn set(&mut self, name: String, pin: Option<Pin>) {
        match pin {
            Some(pin) => drop(self.file.plugins.insert(name.clone(), pin)),
            None => drop(self.file.plugins.remove(&name)),
        }
        self.changed_plugins.insert(name);
    }

    /// Returns the origin of a plugin that was fetched from `location`. One from elsewhere is not
    /// what the configuration names.
    #[must_use]
    pub fn origin_at(&self, plugin: &str, location: &ComponentLocation) -> Option<&Origin> {
        let source = location.to_string();
        self.origin(plugin).filter(|origin| origin.source == source)
    }

    /// Returns the origins of everything that was fetched.
    pub(crate) fn origins(&self) -> impl Iterator<Item = &Origin> {
        let plugins = self.file.plugins.values().filter_map(|pin| pin.origin.as_ref());
        plugins.chain(&self.file.interpreter)
    }

    /// Returns the origin of the interpreter of code mode, if it was fetched from `location`.
    #[must_use]
    pub fn interpreter_at(&self, location: &ComponentLocation) -> Option<&Origin> {
        let source = location.to_string();
        self.file.interpreter.as_ref().filter(|origin| origin.source == source)
    }

    /// Accepts an interpreter of code mode that was fetched.
    pub fn accept_interpreter(&mut self, origin: Origin) {
        self.file.interpreter = Some(origin);
        self.has_new_interpreter = true;
    }

    /// Returns the origin of a plugin that was fetched.
    #[must_use]
    pub fn origin(&self, plugin: &str) -> Option<&Origin> {
        self.file.plugins.get(plugin)?.origin.as_ref()
    }

    /// Returns the digest of the accepted component of a plugin.
    pub(crate) fn component(&self, plugin: &str) -> Option<Digest> {
        self.file.plugins.get(plugin)?.component.parse().ok()
    }

    #[cfg(feature = "mcp")]
    /// Compares the statements of a server with the accepted ones. A missing tool or prompt is not
    /// a change.
    pub(crate) fn compare_server(&self, name: &str, now: &Statements) -> ComparedServer {
        let Some(before) = self.file.servers.get(name) else { return ComparedServer::New };
        let differing = |before: &BTreeMap<String, Value>, now: &BTreeMap<String, Value>| {
            let differing = now.iter().filter(|(name, value)| before.get(*name) != Some(*value));
            differing.map(|(name, _)| name.clone()).collect()
        };
        let left_out = IgnoredStatements {
            instructions: now.instructions.is_some() && now.instructions != before.instructions,
            tools: differing(&before.tools, &now.tools),
            prompts: differing(&before.prompts, &now.prompts),
            resources: differing(&before.resources, &now.resources),
        };
        if left_out.is_empty() {
            return ComparedServer::Same;
        }
        let difference = DefinitionDiff::of(before.definitions(), ServerPin::of(now).definitions());
        ComparedServer::Changed(Box::new(ServerChange {
            left_out,
            difference,
            statements: now.clone(),
        }))
    }

    #[cfg(feature = "mcp")]
    /// Accepts the statements of a server.
    pub(crate) fn accept_server(&mut self, name: &str, statements: &Statements) {
        self.file.servers.insert(name.to_owned(), ServerPin::of(statements));
        self.accepted_servers.insert(name.to_owned());
    }

    /// Returns the content of the file.
    pub fn text(&self) -> crate::Result<Vec<u8>> {
        text_of(&self.file)
    }

    /// Merges the accepted pins into the file. Keeps entries that other processes have added.
    pub fn save(&self) -> crate::Result<()> {
        self.save_locked(&FolderLock::take(&self.path)?)
    }

    /// Like [`save`](Self::save), for a caller that holds the lock on the folder.
    pub(crate) fn save_locked(&self, _: &FolderLock) -> crate::Result<()> {
        let _saving = SAVING.lock();
        // Read again: servers are accepted while they connect, concurrently with each other and
        // with plugins.
        let mut file = read(&self.path)?;
        for name in &self.changed_plugins {
            match self.file.plugins.get(name) {
                Some(pin) => drop(file.plugins.insert(name.clone(), pin.clone())),
                None => drop(file.plugins.remove(name)),
            }
        }
        if self.has_new_interpreter {
            file.interpreter.clone_from(&self.file.interpreter);
        }
        for name in &self.accepted_servers {
            if let Some(pin) = self.file.servers.get(name) {
                file.servers.insert(name.clone(), pin.clone());
            }
        }
        replace_file(&self.path, &text_of(&file)?)
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }

    /// Returns the path of the lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Pin {
    fn of(plugin: &Plugin) -> Self {
        let definitions = plugin.definitions();
        let tools = definitions.iter().map(|d| (d.name.to_string(), json::definition(d))).collect();
        Self {
            component: plugin.identity().digest.to_string(),
            asks: permission_strings(plugin.requested()),
            tools,
            origin: None,
        }
    }

    /// Returns whether component and definitions are the same.
    fn is_same(&self, other: &Self) -> bool {
        let Self { component, asks, tools, origin: _ } = self;
        (component, asks, tools) == (&other.component, &other.asks, &other.tools)
    }

    fn definitions(&self) -> Definitions<'_> {
        let Self { asks, tools, .. } = self;
        Definitions { identity: &self.component, asks, tools, ..Definitions::NONE }
    }
}

#[cfg(feature = "mcp")]
impl ServerPin {
    fn of(statements: &Statements) -> Self {
        let Statements { instructions, tools, prompts, resources } = statements.clone();
        Self { instructions, tools, prompts, resources }
    }

    fn definitions(&self) -> Definitions<'_> {
        let Self { instructions, tools, prompts, resources } = self;
        let instructions = instructions.as_deref().unwrap_or_default();
        Definitions { tools, prompts, resources, instructions, ..Definitions::NONE }
    }
}

/// Reads the pins of a file. Returns none if the file does not exist.
fn read(path: &Path) -> crate::Result<PinsFile> {
    match cofferdam_files::read_named_text_ambient(path, PINS_BYTES_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(PinsFile::default()),
        read => {
            let text = read.with_context(|| format!("{} cannot be read", path.display()))?;
            serde_json::from_str(&text).map_err(|error| {
                let path = path.display();
                crate::Error::invalid(format!(
                    "{path} is not a lock file: {error}; restore it, or remove it and accept the \
                     plugins anew"
                ))
            })
        }
    }
}

fn text_of(file: &PinsFile) -> crate::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(file).context("the lock file cannot be written")?;
    text.push(b'\n');
    Ok(text)
}

/// Parses a tool declaration that [`json::definition`] has written.
fn declaration(tool: &Value) -> Option<Declaration> {
    let string = |key: &str| Some(tool.get(key)?.as_str()?.to_owned());
    let schema =
        |key: &str| tool.get(key).filter(|schema| !schema.is_null()).map(ToString::to_string);
    Some(Declaration {
        name: string("name")?,
        title: string("title"),
        description: string("description")?,
        input_schema: schema("input_schema")?,
        output_schema: schema("output_schema"),
        annotations: serde_json::from_value(tool.get("annotations")?.clone()).ok()?,
        group: None,
    })
}

/// Returns the requested permissions of a plugin, one per line.
pub fn permission_strings(asked: &RequestedPermissions) -> Vec<String> {
    match asked {
        RequestedPermissions::Unstated => {
            vec!["whatever it is offered (it has no manifest)".to_owned()]
        }
        RequestedPermissions::UnstatedWithin(limits) => {
            let limits =
                limits.entries().into_iter().map(|(key, value)| format!("limit:{key}={value}"));
            std::iter::once("whatever it is offered".to_owned()).chain(limits).collect()
        }
        RequestedPermissions::Stated(permissions) => {
            permissions.all().iter().map(ToString::to_string).collect()
        }
    }
}

//! `cofferdam.lock`: what each plugin was when the operator accepted it.
//!
//! A plugin that behaves for fifteen versions can change in the sixteenth, and so can the words
//! that a model reads about its tools. So the first load of a plugin is remembered, by the digest
//! of its component, by what it asks for and by its tools, and whatever differs later is shown and
//! needs consent: at a terminal, or with `cofferdam approve`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Context as _;
use cofferdam_engine::Plugin;
#[cfg(feature = "mcp")]
use cofferdam_mcp::client::{LeftOut, Statements};
use cofferdam_tool::declaration::{Declaration, check_declarations};
use cofferdam_tool::permission::RequestedPermissions;
use cofferdam_tool::{PluginName, ToolDefinition, ToolSource};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::edit::replace_file;
use crate::difference::{DefinitionDiff, Definitions};
use crate::folder_lock::FolderLock;
use crate::json;
#[cfg(feature = "mcp")]
use crate::servers::ServerChange;

/// The ending of the file, in place of the configuration's.
const EXTENSION: &str = "lock";
/// Largest file that is read, in bytes: a hundred plugins with everything that they may say.
const PINS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The accepted plugins of one configuration.
#[derive(Debug, Default)]
pub struct Pins {
    path: PathBuf,
    file: PinsFile,
    accepted_plugins: BTreeSet<String>,
    accepted_servers: BTreeSet<String>,
}

/// Held while a thread of this process writes a file; a file system may have no locks.
static SAVING: Mutex<()> = Mutex::new(());

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinsFile {
    plugins: BTreeMap<String, Pin>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    servers: BTreeMap<String, ServerPin>,
}

/// A server as it was accepted.
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
/// Comparison of a server with what was accepted.
#[derive(Debug, PartialEq)]
pub(crate) enum ComparedServer {
    /// It says nothing that was not accepted.
    Same,
    /// It was never used with this configuration.
    New,
    /// It says something else.
    Changed(Box<ServerChange>),
}

/// A plugin as it was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pin {
    component: String,
    asks: Vec<String>,
    tools: BTreeMap<String, Value>,
}

/// Comparison of a plugin with its accepted state.
#[derive(Debug, PartialEq)]
pub enum PinComparison {
    /// It is the same.
    Same,
    /// It was never loaded with this configuration.
    New,
    /// It has changed.
    Changed(Box<DefinitionDiff>),
}

impl Pins {
    /// The pins of a configuration.
    pub fn of_config_ambient(config: &Path) -> crate::Result<Self> {
        let path = Self::path_of(config);
        let file = read(&path)?;
        Ok(Self { path, file, ..Self::default() })
    }

    /// Pins for a configuration without any.
    pub fn none(config: &Path) -> Self {
        Self { path: Self::path_of(config), ..Self::default() }
    }

    /// Returns the path of a configuration's pins.
    pub(crate) fn path_of(config: &Path) -> PathBuf {
        config.with_extension(EXTENSION)
    }

    /// Tools of a plugin as they were accepted, if they can be read.
    pub(crate) fn accepted_tools(
        config: &Path,
        plugin: &PluginName,
    ) -> Option<Vec<Arc<ToolDefinition>>> {
        let pins = Self::of_config_ambient(config).ok()?;
        let pin = pins.file.plugins.get(plugin.as_str())?;
        let declarations = pin.tools.values().map(declaration).collect::<Option<Vec<_>>>()?;
        Some(check_declarations(&declarations).ok()?.into_iter().map(Arc::new).collect())
    }

    /// Compares a plugin with what was accepted.
    pub fn compare(&self, plugin: &Plugin) -> PinComparison {
        let now = Pin::of(plugin);
        match self.file.plugins.get(plugin.identity().name.as_str()) {
            None => PinComparison::New,
            Some(before) if *before == now => PinComparison::Same,
            Some(before) => PinComparison::Changed(Box::new(DefinitionDiff::of(
                before.definitions(),
                now.definitions(),
            ))),
        }
    }

    /// Accepts a plugin as it is.
    pub fn accept(&mut self, plugin: &Plugin) {
        let name = plugin.identity().name.to_string();
        self.file.plugins.insert(name.clone(), Pin::of(plugin));
        self.accepted_plugins.insert(name);
    }

    #[cfg(feature = "mcp")]
    /// Compares what a server says with what was accepted. A tool or prompt that is gone is no
    /// change by itself.
    pub(crate) fn compare_server(&self, name: &str, now: &Statements) -> ComparedServer {
        let Some(before) = self.file.servers.get(name) else { return ComparedServer::New };
        let differing = |before: &BTreeMap<String, Value>, now: &BTreeMap<String, Value>| {
            let differing = now.iter().filter(|(name, value)| before.get(*name) != Some(*value));
            differing.map(|(name, _)| name.clone()).collect()
        };
        let left_out = LeftOut {
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
    /// Accepts what a server says.
    pub(crate) fn accept_server(&mut self, name: &str, statements: &Statements) {
        self.file.servers.insert(name.to_owned(), ServerPin::of(statements));
        self.accepted_servers.insert(name.to_owned());
    }

    /// Returns the content of the file.
    pub fn text(&self) -> crate::Result<Vec<u8>> {
        text_of(&self.file)
    }

    /// Adds what was accepted to the file. Entries that other processes have added meanwhile stay.
    pub fn save(&self) -> crate::Result<()> {
        let _saving = SAVING.lock().unwrap_or_else(PoisonError::into_inner);
        let _lock = FolderLock::take(&self.path)?;
        // Servers are accepted while they are connected to, several at a time and beside plugins.
        let mut file = read(&self.path)?;
        for name in &self.accepted_plugins {
            if let Some(pin) = self.file.plugins.get(name) {
                file.plugins.insert(name.clone(), pin.clone());
            }
        }
        for name in &self.accepted_servers {
            if let Some(pin) = self.file.servers.get(name) {
                file.servers.insert(name.clone(), pin.clone());
            }
        }
        replace_file(&self.path, &text_of(&file)?)
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Pin {
    fn of(plugin: &Plugin) -> Self {
        let definitions = plugin.definitions();
        let tools = definitions.iter().map(|d| (d.name.to_string(), json::definition(d))).collect();
        Self { component: plugin.identity().digest.to_string(), asks: asks(plugin.asked()), tools }
    }

    fn definitions(&self) -> Definitions<'_> {
        let (asks, tools) = (&self.asks, &self.tools);
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

/// The pins of a file; none if there is no such file.
fn read(path: &Path) -> crate::Result<PinsFile> {
    match cofferdam_files::read_named_ambient(path, PINS_BYTES_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(PinsFile::default()),
        read => {
            let text = read.with_context(|| format!("{} cannot be read", path.display()))?;
            serde_json::from_slice(&text).with_context(|| {
                let path = path.display();
                format!(
                    "{path} is not a lock file; if nobody needs it, remove it and accept the \
                     plugins anew"
                )
            })
        }
    }
}

fn text_of(file: &PinsFile) -> crate::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(file).context("the lock file cannot be written")?;
    text.push(b'\n');
    Ok(text)
}

/// The declaration of a tool that is written as [`json::definition`] writes it.
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
    })
}

/// Returns the requested permissions of a plugin, one per line.
pub fn asks(asked: &RequestedPermissions) -> Vec<String> {
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

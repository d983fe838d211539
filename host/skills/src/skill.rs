//! Skills of both kinds, as the tools see them.

use std::sync::Arc;

use cofferdam_tool::{CallContext, Completion};
use serde_json::Value;

use super::xml::{escaped, escaped_in_element, list};
use super::{FileSkill, ProgramSkill, ScriptRunner};

/// Maximum number of scripts of a skill whose schemas `load_skill` shows. A script may have to be
/// compiled to get its schema.
const DESCRIBED_MAX: usize = 16;
/// Maximum bytes of all schemas of a skill together.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// Skill in a directory of a file store, or in the embedding program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Skill {
    /// Directory with a `SKILL.md`.
    File(Arc<FileSkill>),
    /// Part of the embedding program.
    Program(Arc<ProgramSkill>),
}

/// Runners in the order in which they were added. The first one with the extension of a script runs
/// it.
#[derive(Clone, Default)]
pub(super) struct Runners(Vec<Arc<dyn ScriptRunner>>);

/// Result of looking up a script.
pub(super) enum ScriptLookup {
    Nothing,
    WithoutRunner,
    /// Name of the script.
    Script(String),
}

impl Runners {
    pub(super) fn push(&mut self, runner: Arc<dyn ScriptRunner>) {
        self.0.push(runner);
    }

    pub(super) fn extensions(&self) -> Vec<String> {
        self.0
            .iter()
            .flat_map(|runner| runner.extensions())
            .map(|&extension| extension.to_owned())
            .collect()
    }

    fn of(&self, script: &str) -> Option<&Arc<dyn ScriptRunner>> {
        let (_, extension) = script.rsplit_once('.')?;
        let extension = extension.to_ascii_lowercase();
        self.0.iter().find(|runner| runner.extensions().contains(&extension.as_str()))
    }
}

impl Skill {
    /// Returns the name (`SKILL-2`).
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::File(skill) => &skill.front_matter().name,
            Self::Program(skill) => skill.name(),
        }
    }

    /// Returns the description (`SKILL-3`).
    #[must_use]
    pub fn description(&self) -> &str {
        match self {
            Self::File(skill) => &skill.front_matter().description,
            Self::Program(skill) => skill.description(),
        }
    }

    /// Returns the tools that the author expects to be allowed. They grant nothing (`SKILL-22`).
    #[must_use]
    pub fn allowed_tools(&self) -> Option<&str> {
        match self {
            Self::File(skill) => skill.front_matter().allowed_tools.as_deref(),
            Self::Program(_) => None,
        }
    }

    /// Returns the names of the resources: sorted bytewise for a directory, and in the order in
    /// which they were added for an in-program skill.
    #[must_use]
    pub fn resources(&self) -> Vec<&str> {
        match self {
            Self::File(skill) => skill.resources().collect(),
            Self::Program(skill) => skill.resources().collect(),
        }
    }

    /// Returns the names of the scripts that can be run, in the order of
    /// [`resources`](Self::resources).
    #[must_use]
    pub fn scripts(&self) -> Vec<&str> {
        match self {
            Self::File(skill) => skill.scripts().collect(),
            Self::Program(skill) => skill.scripts().collect(),
        }
    }

    /// Returns the result of `load_skill` (`SKILL-16`, `SKILL-17`); `None` if the skill no longer
    /// exists.
    pub(super) async fn loaded(&self, runners: &Runners) -> Option<String> {
        let head = match self {
            Self::File(skill) => skill.text().await?,
            Self::Program(skill) => skill.text(),
        };
        let resource = |name: &&str| format!("  <resource name=\"{}\"/>", escaped(name));
        let resources: Vec<_> = self.resources().iter().map(resource).collect();
        let (mut scripts, mut room) = (Vec::new(), SCHEMA_BYTES_MAX);
        for (number, name) in self.scripts().into_iter().enumerate() {
            let parameters =
                if number < DESCRIBED_MAX { self.parameters(name, runners).await } else { None };
            // Leave out schemas that are too long. The model sees the errors of its calls instead.
            let schema =
                parameters.map(|schema| schema.to_string()).filter(|schema| schema.len() <= room);
            room = room.saturating_sub(schema.as_ref().map_or(0, String::len));
            scripts.push(script_entry(name, schema.as_deref()));
        }
        let (resources, scripts) =
            (list("available_resources", &resources), list("available_scripts", &scripts));
        Some(format!("{head}\n\n{resources}\n\n{scripts}"))
    }

    /// Returns the schema of a script's parameters, if it declares any.
    async fn parameters(&self, script: &str, runners: &Runners) -> Option<Value> {
        match self {
            Self::File(skill) => runners.of(script)?.parameters(&skill.script(script)?).await,
            Self::Program(skill) => skill.parameters(script).cloned(),
        }
    }

    /// Returns the name of the resource that the model refers to as `given`, ignoring case
    /// (`SKILL-14`).
    pub(super) fn resource_named(&self, given: &str) -> Option<String> {
        named(given, self.resources().into_iter()).map(str::to_owned)
    }

    /// Reads a resource by its exact name; returns `None` if it cannot be read (`SKILL-18`).
    pub(super) async fn read(&self, resource: &str) -> Option<String> {
        match self {
            Self::File(skill) => match skill.read_resource(resource).await {
                Ok(text) => Some(text),
                Err(error) => {
                    tracing::warn!(skill = self.name(), resource, %error, "a resource cannot be \
                        read");
                    None
                }
            },
            Self::Program(skill) => skill.read(resource).await,
        }
    }

    /// Looks up a script by the name that the model has used, ignoring case.
    pub(super) fn script_named(&self, given: &str) -> ScriptLookup {
        if let Some(name) = named(given, self.scripts().into_iter()) {
            return ScriptLookup::Script(name.to_owned());
        }
        match self {
            Self::File(skill) if named(given, skill.scripts_without_runner()).is_some() => {
                ScriptLookup::WithoutRunner
            }
            _ => ScriptLookup::Nothing,
        }
    }

    /// Runs a script by its exact name. `given` is the name that the model has used, for messages.
    /// Returns `None` if there is no runner.
    pub(super) async fn run(
        &self,
        script: &str,
        given: &str,
        args: Value,
        runners: &Runners,
        context: &CallContext,
    ) -> Option<Completion> {
        match self {
            Self::File(skill) => {
                Some(runners.of(script)?.run(&skill.script(script)?, args, context).await)
            }
            Self::Program(skill) => Some(skill.run(script, given, args, context).await),
        }
    }
}

/// Returns the name that equals `given`, or else the first one that differs only in case.
pub(super) fn named<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let folded = given.to_lowercase();
    let mut found = None;
    for name in names {
        if name == given {
            return Some(name);
        }
        if found.is_none() && name.to_lowercase() == folded {
            found = Some(name);
        }
    }
    found
}

fn script_entry(name: &str, schema: Option<&str>) -> String {
    let name = escaped(name);
    match schema {
        None => format!("  <script name=\"{name}\"/>"),
        Some(schema) => {
            let schema = escaped_in_element(schema);
            format!(
                "  <script name=\"{name}\">\n    \
                 <parameters_schema>{schema}</parameters_schema>\n  </script>"
            )
        }
    }
}

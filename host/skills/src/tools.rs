//! Tools for a list of skills (`SKILL-11` to `SKILL-19`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use cofferdam_tool::declaration::{Declaration, DeclarationError, check_declarations};
use cofferdam_tool::{
    Annotations, CallContext, Completion, Outcome, Output, ToolCall, ToolDefinition, ToolError,
    ToolFailure, ToolName, ToolSource,
};
use serde_json::{Map, Value, json};

use super::SkillList;
use super::skill::{Runners, ScriptLookup, Skill};

/// Tool for skills. The variants have the order in which the tools are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SkillTool {
    /// `load_skill`
    Load,
    /// `read_skill_resource`
    ReadResource,
    /// `run_skill_script`
    RunScript,
}

impl SkillTool {
    /// All tools.
    pub const ALL: [Self; 3] = [Self::Load, Self::ReadResource, Self::RunScript];
    /// Tools that run no code.
    pub const READING: [Self; 2] = [Self::Load, Self::ReadResource];

    /// Returns the name of the tool for a model.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load_skill",
            Self::ReadResource => "read_skill_resource",
            Self::RunScript => "run_skill_script",
        }
    }

    /// Returns the tool with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn declaration(self) -> Declaration {
        let skill = json!({"type": "string", "description": "The name of the skill."});
        let (description, properties, required) = match self {
            Self::Load => (
                "Gives the instructions of a skill and lists its resources and scripts.",
                json!({"skill_name": skill}),
                json!(["skill_name"]),
            ),
            Self::ReadResource => (
                "Reads a file that belongs to a skill, such as a reference or a template.",
                json!({
                    "skill_name": skill,
                    "resource_name": {
                        "type": "string",
                        "description": "The name of the resource as the skill lists it.",
                    },
                }),
                json!(["skill_name", "resource_name"]),
            ),
            Self::RunScript => (
                "Runs a script that belongs to a skill and gives its result.",
                json!({
                    "skill_name": skill,
                    "script_name": {
                        "type": "string",
                        "description": "The name of the script as the skill lists it.",
                    },
                    "args": {
                        "type": ["object", "array", "null"],
                        "items": {"type": "string"},
                        "description": "What the script takes: an object of named arguments, or a \
                         list of texts.",
                    },
                }),
                json!(["skill_name", "script_name"]),
            ),
        };
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        let mut declaration = Declaration::new(self.name(), description, schema.to_string());
        if self != Self::RunScript {
            declaration.annotations = Annotations {
                read_only: Some(true),
                idempotent: Some(true),
                open_world: Some(false),
                ..Annotations::default()
            };
        }
        declaration
    }
}

/// Source of the three tools for a list of skills. If the list is empty, the source has no tools
/// (`SKILL-11`).
pub struct SkillTools {
    skills: Arc<SkillList>,
    runners: Runners,
    freed: BTreeSet<SkillTool>,
    definitions: Arc<[Arc<ToolDefinition>]>,
    instructions: Option<String>,
}

impl SkillTools {
    pub(super) fn new(
        skills: Arc<SkillList>,
        runners: Runners,
        freed: BTreeSet<SkillTool>,
        definitions: Arc<[Arc<ToolDefinition>]>,
    ) -> Self {
        let (definitions, instructions) = if skills.is_empty() {
            (Arc::from([]), None)
        } else {
            (definitions, Some(skills.instructions()))
        };
        Self { skills, runners, freed, definitions, instructions }
    }

    /// Returns the tools for only these skills; their case is ignored.
    ///
    /// # Errors
    /// Returns the first name that belongs to no skill.
    pub fn restrict<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Self, &'n str> {
        let find = |name: &'n str| self.skills.find(name).cloned().ok_or(name);
        let skills = names.into_iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let (skills, runners) = (Arc::new(SkillList::new(skills)), self.runners.clone());
        Ok(Self::new(skills, runners, self.freed.clone(), Arc::clone(&self.definitions)))
    }

    /// Returns the list of skills.
    #[must_use]
    pub fn skills(&self) -> &SkillList {
        &self.skills
    }

    /// Returns the result of `load_skill`, for users and clients that choose the skill themselves;
    /// `None` if the skill does not exist.
    pub async fn loaded(&self, skill_name: &str) -> Option<String> {
        self.skills.find(skill_name)?.loaded(&self.runners).await
    }

    /// Returns the result of `read_skill_resource`, for users and clients that choose the resource
    /// themselves; `None` if it does not exist or cannot be read.
    pub async fn resource(&self, skill_name: &str, resource_name: &str) -> Option<String> {
        let skill = self.skills.find(skill_name)?;
        skill.read(&skill.resource_named(resource_name)?).await
    }

    async fn answer(
        &self,
        call: &ToolCall<'_>,
        context: &CallContext,
    ) -> Result<Completion, String> {
        let Some(tool) = SkillTool::named(call.tool.name.as_str()) else {
            let outcome = Outcome::Error(ToolError::host("UnknownFunction"));
            return Ok(Completion::ended(outcome, context));
        };
        let arguments = call.arguments.value();
        let skill = self.skill(arguments)?;
        let text = match tool {
            SkillTool::Load => {
                let given = text(arguments, "skill_name");
                let loaded = skill.loaded(&self.runners).await;
                loaded.ok_or_else(|| format!("Error: Skill '{given}' not found."))?
            }
            SkillTool::ReadResource => read(skill, arguments).await?,
            SkillTool::RunScript => return self.run(skill, arguments, context).await,
        };
        Ok(Completion::ended(Outcome::Ok(Output::Value(text.into())), context))
    }

    /// Looks up the skill, before the resource or script is checked (`SKILL-15`).
    fn skill(&self, arguments: &Map<String, Value>) -> Result<&Skill, String> {
        let given = text(arguments, "skill_name");
        if given.trim().is_empty() {
            return Err("Error: Skill name cannot be empty.".to_owned());
        }
        self.skills.find(given).ok_or_else(|| format!("Error: Skill '{given}' not found."))
    }

    async fn run(
        &self,
        skill: &Skill,
        arguments: &Map<String, Value>,
        context: &CallContext,
    ) -> Result<Completion, String> {
        let (given, skill_given) = (text(arguments, "script_name"), text(arguments, "skill_name"));
        if given.trim().is_empty() {
            return Err("Error: Script name cannot be empty.".to_owned());
        }
        let cannot_be_run = || {
            format!("Error: Script '{given}' in skill '{skill_given}' cannot be run by this host.")
        };
        match skill.script_named(given) {
            ScriptLookup::Nothing => {
                Err(format!("Error: Script '{given}' not found in skill '{skill_given}'."))
            }
            ScriptLookup::WithoutRunner => Err(cannot_be_run()),
            ScriptLookup::Script(script) => {
                let args = arguments.get("args").cloned().unwrap_or_default();
                let ran = skill.run(&script, given, args, &self.runners, context).await;
                ran.ok_or_else(cannot_be_run)
            }
        }
    }
}

async fn read(skill: &Skill, arguments: &Map<String, Value>) -> Result<String, String> {
    let (given, skill_given) = (text(arguments, "resource_name"), text(arguments, "skill_name"));
    if given.trim().is_empty() {
        return Err("Error: Resource name cannot be empty.".to_owned());
    }
    let Some(resource) = skill.resource_named(given) else {
        return Err(format!("Error: Resource '{given}' not found in skill '{skill_given}'."));
    };
    let read = skill.read(&resource).await;
    read.ok_or_else(|| {
        format!("Error: Failed to read resource '{given}' from skill '{skill_given}'.")
    })
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the definitions of the tools.
///
/// # Errors
/// A declaration is invalid. A test checks that this does not happen.
pub(super) fn definitions() -> Result<Arc<[Arc<ToolDefinition>]>, DeclarationError> {
    let declarations = SkillTool::ALL.map(SkillTool::declaration);
    Ok(check_declarations(&declarations)?.into_iter().map(Arc::new).collect())
}

#[async_trait]
impl ToolSource for SkillTools {
    fn name(&self) -> &str {
        "skills"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    /// Returns false for scripts: one may be a function of the embedding program, whose changes the
    /// host cannot drop.
    fn supports_dry_run(&self, tool: &ToolName) -> bool {
        tool.as_str() != SkillTool::RunScript.name()
    }

    fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    fn needs_approval(&self, tool: &ToolName) -> bool {
        SkillTool::named(tool.as_str()).is_some_and(|tool| !self.freed.contains(&tool))
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let started = Instant::now();
        let is_script = call.tool.name.as_str() == SkillTool::RunScript.name();
        let answered = if is_script {
            // The runner of a script handles cancellation and reports the outcome.
            self.answer(&call, context).await
        } else {
            tokio::select! {
                biased;
                () = context.cancelled() => Ok(Completion::ended(Outcome::Cancelled, context)),
                answered = self.answer(&call, context) => answered,
            }
        };
        let mut completion = answered.unwrap_or_else(|text| {
            Completion::ended(Outcome::Failure(ToolFailure::bare(text)), context)
        });
        completion.record.tool = Some(call.tool.name.clone());
        if completion.record.phases.run.is_zero() {
            completion.record.phases.run = started.elapsed();
        }
        completion
    }
}

impl fmt::Debug for SkillTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillTools")
            .field("skills", &self.skills)
            .field("freed", &self.freed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ProgramSkill, Skills};
    use super::*;

    #[tokio::test]
    async fn none_of_the_declarations_is_refused_and_words_stay_short() {
        let definitions = definitions().unwrap();
        assert_eq!(
            definitions.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
            SkillTool::ALL.map(SkillTool::name)
        );
        let skill = ProgramSkill::new("s", "A <skill>.", "Do it.").unwrap();
        let tools = Skills::builder().skill(skill).build().unwrap().tools().await;
        assert!(
            tools.instructions().unwrap().contains("<description>A &lt;skill&gt;.</description>")
        );
        assert!(tools.instructions().unwrap().len() < 1024);
        let none = Skills::builder().build().unwrap().tools().await;
        assert!(none.definitions().is_empty() && none.instructions().is_none());
    }

    #[tokio::test]
    async fn the_exact_name_comes_before_one_of_another_case() {
        let skill = ProgramSkill::new("s", "d", "").unwrap();
        assert!(
            skill.resource("a", "x").unwrap().resource("A", "y").is_err(),
            "they are too similar"
        );
        let names = ["Guide.md", "guide.md"];
        assert_eq!(super::super::skill::named("guide.md", names.into_iter()), Some("guide.md"));
        assert_eq!(super::super::skill::named("GUIDE.md", names.into_iter()), Some("Guide.md"));
    }
}

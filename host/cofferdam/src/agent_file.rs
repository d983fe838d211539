//! Agents that are defined in YAML: in files of their own, and in workflow files.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use cofferdam_agent::{Agent, AgentRun, Approvals, ChoiceBehavior, LoopSettings, ResponseFormat};
use cofferdam_skills::SkillTools;
use cofferdam_tool::{ToolDefinition, Toolset};
use cofferdam_workflow::definition::{AgentCode, AgentDefinition, NameList};

use crate::code_mode::{self, CodeOffer};
use crate::config::{ConfigError, ConfigFile, loop_names};
use crate::definition_file::DefinitionFile;
use crate::model_specs::{self, ModelSpec};
use crate::{Error, PromptFile, Result, skill_tools, text};

/// A parsed agent file.
pub struct AgentFile {
    file: DefinitionFile,
    definition: AgentDefinition,
}

impl AgentFile {
    /// Reads a file and checks its form.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or its form is invalid.
    pub fn read_ambient(path: &Path) -> Result<Self, ConfigError> {
        let (file, definition) = DefinitionFile::read_ambient(path, AgentDefinition::parse)?;
        match &definition.file {
            Some(other) => {
                let message = "a file that defines an agent cannot name another one";
                Err(file.error(other.referenced, message))
            }
            None => Ok(Self { file, definition }),
        }
    }

    /// Returns the name of the agent; by default the name of the file.
    #[must_use]
    pub fn name(&self) -> String {
        let stem = || self.file.stem();
        self.definition.name.clone().or_else(stem).unwrap_or_else(|| "agent".to_owned())
    }

    /// Returns the description of the agent.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.definition.description.as_deref()
    }

    /// Returns the definition.
    #[must_use]
    pub fn defined(&self) -> DefinedAgent<'_> {
        DefinedAgent { file: &self.file, definition: &self.definition }
    }
}

/// Definition of an agent, and the file that contains it.
#[derive(Clone, Copy)]
pub struct DefinedAgent<'a> {
    pub(crate) file: &'a DefinitionFile,
    pub(crate) definition: &'a AgentDefinition,
}

impl DefinedAgent<'_> {
    /// Returns the model that the agent names, or else `otherwise` in the form of `--model`, or
    /// else the default of the configuration. `base_url` overrides the address of the provider.
    ///
    /// # Errors
    /// Returns an error if there is no such model.
    pub fn model(
        &self,
        otherwise: Option<&str>,
        base_url: Option<&str>,
        config: Option<&ConfigFile>,
    ) -> Result<ModelSpec> {
        let Some(model) = &self.definition.model else {
            return model_specs::choose(otherwise, base_url, config);
        };
        let named = match model.value.strip_prefix("script:") {
            Some(script) => format!("script:{}", self.file.resolve(script).display()),
            None => model.value.clone(),
        };
        model_specs::choose(Some(&named), base_url, config).map_err(|error| match error {
            Error::Invalid(_) => self.file.error(model.referenced, format!("{error:#}")).into(),
            other => other,
        })
    }

    /// Returns the tools of `all` that the agent names; none by default. If it names skills, the
    /// tools for skills offer only those; `skills` are all that there are.
    ///
    /// # Errors
    /// Returns an error for a tool or a skill that does not exist, and if the agent runs programs
    /// and `all` has no `run_code`.
    pub fn tools(&self, all: &Toolset, skills: Option<&Arc<SkillTools>>) -> Result<Toolset> {
        let Some(code) = &self.definition.code else {
            return code_mode::of_agent(self.tools_with_skills(all, skills)?);
        };
        let offer = match code.value {
            AgentCode::Both => CodeOffer::Both,
            AgentCode::Only => CodeOffer::Only,
        };
        let absent = || {
            let message =
                "there is no `run_code` for the agent: pass --code, or set `offer` in [code]";
            self.file.error(code.referenced, message)
        };
        // Programs may call tools that models do not see.
        let callable = code_mode::callable(all).ok_or_else(absent)?;
        let listed = self.tools_with_skills(callable, skills)?;
        Ok(code_mode::for_agent(offer, &listed, all)?.ok_or_else(absent)?)
    }

    /// Returns the tools that the agent names, with the tools for its skills.
    fn tools_with_skills(
        &self,
        all: &Toolset,
        skills: Option<&Arc<SkillTools>>,
    ) -> Result<Toolset> {
        let Some(named) = &self.definition.skills else { return self.named_tools(all) };
        let all_skills = || skills.map(|skills| skills.skills().skills()).unwrap_or_default();
        if named.value == NameList::Word("all".to_owned()) {
            return self.named_tools(all);
        }
        let names = named.value.ids().iter().map(String::as_str);
        let restricted = match skills {
            Some(skills) => skills.restrict(names).map(Arc::new).map(Some),
            None => names.into_iter().next().map_or(Ok(None), Err),
        };
        let restricted = restricted.map_err(|name| {
            let known: Vec<_> = all_skills().iter().map(|skill| skill.name()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            self.file
                .error(named.referenced, format!("there is no skill `{name}`; skills: {known}"))
        })?;
        self.named_tools(&skill_tools::replace(all, restricted)?)
    }

    fn named_tools(&self, all: &Toolset) -> Result<Toolset> {
        let has_skills = self.definition.skills.is_some();
        let is_for_skills =
            |tool: &ToolDefinition| has_skills && skill_tools::has(all, tool.name.as_str());
        let Some(named) = &self.definition.tools else {
            return Ok(all.restrict(is_for_skills));
        };
        if named.value == NameList::Word("all".to_owned()) {
            return Ok(all.clone());
        }
        for name in named.value.ids() {
            if let Err(refused) = all.definition(name) {
                return Err(self.file.error(named.referenced, text::refusal(&refused)).into());
            }
        }
        let names: BTreeSet<_> = named.value.ids().iter().map(String::as_str).collect();
        Ok(all.restrict(|tool| names.contains(tool.name.as_str()) || is_for_skills(tool)))
    }

    /// Returns the instructions: those of the definition, or else its rendered prompt file.
    ///
    /// # Errors
    /// Returns an error if they are in a file that cannot be read, or if there are two of them.
    pub fn instructions(&self) -> Result<Option<String>> {
        let rendered = self.rendered_prompt()?;
        match &self.definition.instructions {
            Some(written) if rendered.is_some() => {
                let message = "the prompt file has a template, which is the instructions; leave out `instructions`";
                Err(self.file.error(written.referenced, message).into())
            }
            Some(written) => self.file.text(&written.value).map(Some),
            None => Ok(rendered),
        }
    }

    fn rendered_prompt(&self) -> Result<Option<String>> {
        let arguments = self.definition.prompt_args.0.iter().cloned().collect();
        match self.prompt_file()? {
            Some(prompt) => prompt.render(&arguments),
            None if arguments.is_empty() => Ok(None),
            None => Err(self.file.error_anywhere("`prompt-args` needs a `prompt-file`").into()),
        }
    }

    /// Returns the prompt file that the agent names.
    fn prompt_file(&self) -> Result<Option<PromptFile>> {
        let Some(named) = &self.definition.prompt_file else { return Ok(None) };
        PromptFile::read_ambient(&self.file.resolve(&named.value)).map(Some)
    }

    /// Returns `settings` with those of the agent.
    ///
    /// # Errors
    /// Returns an error for a setting that is unknown or out of range.
    pub fn settings(&self, mut settings: LoopSettings) -> Result<LoopSettings> {
        if let Some(rounds) = self.definition.max_tool_rounds {
            settings.max_iterations = rounds.get();
        }
        let Some(written) = &self.definition.loop_settings else { return Ok(settings) };
        settings
            .with_json(&loop_names(&written.value))
            .map_err(|error| self.file.error(written.referenced, error.to_string()).into())
    }

    /// Returns `approvals` with the rules of the agent.
    ///
    /// # Errors
    /// Returns an error for a rule that can match nothing.
    pub fn approvals(&self, mut approvals: Approvals) -> Result<Approvals> {
        for rule in &self.definition.approvals {
            approvals = approvals
                .rules([rule.value.clone()])
                .map_err(|error| self.file.error(rule.referenced, error.to_string()))?;
        }
        Ok(approvals)
    }

    /// Returns the choice of functions for a model: that of the definition, or else that of its
    /// prompt file.
    ///
    /// # Errors
    /// Returns an error if it is invalid.
    pub fn choice(&self, model: &ModelSpec) -> Result<Option<ChoiceBehavior>> {
        let own = match &self.definition.choice {
            Some(written) => Some(
                ChoiceBehavior::from_value(&written.value)
                    .map_err(|error| self.file.error(written.referenced, error.to_string()))?,
            ),
            None => None,
        };
        Ok(match self.prompt_file()? {
            Some(prompt) => prompt.choice(model, own),
            None => own,
        })
    }

    /// Returns the form of the agent's answers, if it has one. `name` is the name of the agent.
    ///
    /// # Errors
    /// Returns an error if the schema is invalid or cannot be read.
    pub fn response_format(&self, name: &str) -> Result<Option<ResponseFormat>> {
        let Some(output) = &self.definition.output else { return Ok(None) };
        let read = |path: &str| self.file.content(path).map_err(|error| format!("{error:#}"));
        let format = output.value.response_format(name, read);
        Ok(Some(format.map_err(|message| self.file.error(output.referenced, message))?))
    }

    /// Returns whether the agent runs in a loop that remembers no conversation.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.definition.bounded.is_some()
    }

    /// Returns the agent that was built by the definition, in the loop of the definition if it has
    /// one.
    ///
    /// # Errors
    /// Returns an error if the condition of the loop is invalid.
    pub fn bounded(&self, agent: Agent) -> Result<Arc<dyn AgentRun>> {
        let Some(written) = &self.definition.bounded else { return Ok(Arc::new(agent)) };
        match written.value.bound(agent) {
            Ok(bounded) => Ok(Arc::new(bounded)),
            Err(message) => Err(self.file.error(written.referenced, message).into()),
        }
    }

    /// Overrides the options of requests that the agent sets, itself or by its prompt file.
    ///
    /// # Errors
    /// Returns an error if the prompt file cannot be read or has an invalid option.
    pub fn set_options(&self, model: &mut ModelSpec) -> Result<()> {
        if let Some(prompt) = self.prompt_file()? {
            prompt.apply_to(model)?;
        }
        if let Some(settings) = &self.definition.settings {
            settings.apply_to(&mut model.options);
        }
        Ok(())
    }
}

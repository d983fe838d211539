//! Prompt files, which a command line or an agent names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cofferdam_agent::choice::{InvalidPrompt, PromptFile as ParsedPrompt, ServiceSettings};
use cofferdam_agent::{ChatOptions, ChoiceBehavior};
use cofferdam_workflow::definition::RequestSettings;

use crate::model_specs::ModelSpec;
use crate::{Error, Result};

/// Maximum bytes of a file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A parsed prompt file.
pub struct PromptFile {
    path: PathBuf,
    parsed: ParsedPrompt,
}

impl PromptFile {
    /// Reads a file, in JSON if its name ends in `.json` and otherwise in YAML.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is invalid.
    pub fn read_ambient(path: &Path) -> Result<Self> {
        let error = |reason: String| Error::invalid(format!("{}: {reason}", path.display()));
        let text = cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX)
            .map_err(|reason| error(reason.to_string()))?;
        let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        let parsed = match is_json {
            true => ParsedPrompt::from_json(&text),
            false => ParsedPrompt::from_yaml(&text),
        };
        let parsed = parsed.map_err(|reason| error(one_line(&reason)))?;
        if parsed.template.is_none() && parsed.settings.is_empty() {
            let reason = "expected `template` or `execution_settings`, found neither";
            return Err(error(reason.to_owned()));
        }
        Ok(Self { path: path.to_owned(), parsed })
    }

    /// Returns whether the file has a template.
    #[must_use]
    pub fn has_template(&self) -> bool {
        self.parsed.template.is_some()
    }

    /// Returns the prompt with these arguments, or `None` if the file has no template.
    ///
    /// # Errors
    /// Returns an error if arguments are missing, or if the file has no such variable.
    pub fn render(&self, arguments: &BTreeMap<String, String>) -> Result<Option<String>> {
        match &self.parsed.template {
            Some(template) => {
                let rendered = template.render(arguments);
                Ok(Some(rendered.map_err(|error| self.error(&one_line(&error)))?))
            }
            None if arguments.is_empty() => Ok(None),
            None => Err(self.error("the file has no template, so it takes no arguments")),
        }
    }

    /// Sets the options of requests that the file has for a model. The file can name another model
    /// of the provider only if this is the default model.
    ///
    /// # Errors
    /// Returns an error if an option of the file has the wrong form.
    pub fn apply_to(&self, model: &mut ModelSpec) -> Result<()> {
        let Some(settings) = self.settings(model) else { return Ok(()) };
        let options = settings.complete(ChatOptions::default());
        let options = options.map_err(|error| self.error(&error.to_string()))?;
        let named = options.model.clone().filter(|_| model.is_default);
        // The options of the file come before those of the model.
        let settings = RequestSettings {
            temperature: options.temperature,
            top_p: options.top_p,
            max_output_tokens: options.max_output_tokens,
            stop: options.stop,
            seed: options.seed,
            effort: options.effort,
        };
        settings.apply_to(&mut model.options);
        model.options.model = named.or(model.options.model.take());
        Ok(())
    }

    /// Returns the choice of functions for a model: that of the agent, or else the file's.
    #[must_use]
    pub fn choice(&self, model: &ModelSpec, own: Option<ChoiceBehavior>) -> Option<ChoiceBehavior> {
        match self.settings(model) {
            Some(settings) => settings.behavior_or(own),
            None => own,
        }
    }

    fn settings(&self, model: &ModelSpec) -> Option<&ServiceSettings> {
        model.service_names().find_map(|name| self.parsed.settings.entry(name))
    }

    fn error(&self, reason: &str) -> Error {
        Error::invalid(format!("{}: {reason}", self.path.display()))
    }
}

/// Returns the message of an error without the snippets that parsers add.
fn one_line(error: &InvalidPrompt) -> String {
    let message = error.to_string();
    message.lines().next().unwrap_or(&message).to_owned()
}

//! Behaviors in prompt files (`CHOICE-10` to `CHOICE-12`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

#[cfg(feature = "yaml")]
use super::read::parse_yaml;
use super::read::{object, parse_json, part};
use super::{ChoiceBehavior, InvalidChoice};

/// Key of the behavior in the entry of a service.
const BEHAVIOR: &str = "function_choice_behavior";
/// Key of the entry for services without their own.
const DEFAULT: &str = "default";

/// The `execution_settings` of a prompt file, an entry per service. Everything else in the file is
/// ignored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptSettings {
    entries: BTreeMap<String, ServiceSettings>,
}

/// Settings of a prompt file for one service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServiceSettings {
    /// Behavior, if the entry has one.
    pub behavior: Option<ChoiceBehavior>,
    /// All other keys of the entry, unchanged.
    pub extension_data: Map<String, Value>,
}

impl PromptSettings {
    /// Parses a prompt file in JSON.
    ///
    /// # Errors
    /// [`InvalidChoice`] if the string is not JSON or any entry has an invalid behavior.
    pub fn from_json(text: &str) -> Result<Self, InvalidChoice> {
        Self::from_value(&parse_json(text)?)
    }

    /// Parses a prompt file in YAML; requires the feature `yaml`.
    ///
    /// # Errors
    /// Like [`from_json`](Self::from_json).
    #[cfg(feature = "yaml")]
    pub fn from_yaml(text: &str) -> Result<Self, InvalidChoice> {
        Self::from_value(&parse_yaml(text)?)
    }

    /// Converts the content of a prompt file.
    ///
    /// # Errors
    /// Like [`from_json`](Self::from_json).
    pub fn from_value(prompt: &Value) -> Result<Self, InvalidChoice> {
        let Some(settings) = part(object(prompt, "prompt")?, "execution_settings") else {
            return Ok(Self::default());
        };
        let entries = object(settings, "execution_settings")?.iter();
        let entries =
            entries.map(|(service, entry)| Ok((service.clone(), ServiceSettings::read(entry)?)));
        Ok(Self { entries: entries.collect::<Result<_, InvalidChoice>>()? })
    }

    /// Returns the settings for a service: its own entry as a whole, or else the `default` entry
    /// (`CHOICE-10`, `CHOICE-11`).
    #[must_use]
    pub fn service(&self, name: &str) -> Option<&ServiceSettings> {
        self.entries.get(name).or_else(|| self.entries.get(DEFAULT))
    }
}

impl ServiceSettings {
    fn read(entry: &Value) -> Result<Self, InvalidChoice> {
        if entry.is_null() {
            return Ok(Self::default());
        }
        let mut extension_data = object(entry, "execution_settings.<service>")?.clone();
        let behavior = extension_data.shift_remove(BEHAVIOR).filter(|behavior| !behavior.is_null());
        let behavior = behavior.as_ref().map(ChoiceBehavior::from_value).transpose()?;
        Ok(Self { behavior, extension_data })
    }

    /// Returns the behavior of a run: the one set in code, as a whole, or else the prompt file's
    /// (`CHOICE-12`).
    #[must_use]
    pub fn behavior_or(&self, code: Option<ChoiceBehavior>) -> Option<ChoiceBehavior> {
        code.or_else(|| self.behavior.clone())
    }
}

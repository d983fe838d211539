//! Behaviours in prompt files (`CHOICE-10` to `CHOICE-12`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

#[cfg(feature = "yaml")]
use super::read::parse_yaml;
use super::read::{object, parse_json, part};
use super::{ChoiceBehavior, InvalidChoice};

/// Where the behaviour stands in the entry of a service.
const BEHAVIOR: &str = "function_choice_behavior";
/// The entry for services without one of their own.
const DEFAULT: &str = "default";

/// What a prompt file says under `execution_settings`, an entry per service. Everything else in the
/// file is ignored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptSettings {
    entries: BTreeMap<String, ServiceSettings>,
}

/// What a prompt file says for one service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServiceSettings {
    /// The behaviour, if the entry has one.
    pub behavior: Option<ChoiceBehavior>,
    /// All other keys of the entry, as they are.
    pub extension_data: Map<String, Value>,
}

impl PromptSettings {
    /// Reads a prompt file in JSON.
    ///
    /// # Errors
    /// [`InvalidChoice`] for text that is not JSON, and for an entry whose behaviour is none: all
    /// of the file is refused.
    pub fn from_json(text: &str) -> Result<Self, InvalidChoice> {
        Self::from_value(&parse_json(text)?)
    }

    /// Reads a prompt file in YAML; needs the feature `yaml`.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    #[cfg(feature = "yaml")]
    pub fn from_yaml(text: &str) -> Result<Self, InvalidChoice> {
        Self::from_value(&parse_yaml(text)?)
    }

    /// Reads what a prompt file holds.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_value(prompt: &Value) -> Result<Self, InvalidChoice> {
        let Some(settings) = part(object(prompt, "prompt")?, "execution_settings") else {
            return Ok(Self::default());
        };
        let entries = object(settings, "execution_settings")?.iter();
        let entries =
            entries.map(|(service, entry)| Ok((service.clone(), ServiceSettings::read(entry)?)));
        Ok(Self { entries: entries.collect::<Result<_, InvalidChoice>>()? })
    }

    /// What is said for a service: its own entry as a whole, or else the one called `default`
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

    /// The behaviour of a run: the one that is set in code, as a whole, or else the prompt's
    /// (`CHOICE-12`).
    #[must_use]
    pub fn behavior_or(&self, code: Option<ChoiceBehavior>) -> Option<ChoiceBehavior> {
        code.or_else(|| self.behavior.clone())
    }
}

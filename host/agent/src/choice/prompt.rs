//! Behaviors and options of requests in prompt files (`CHOICE-10` to `CHOICE-12`, `CHOICE-16`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

#[cfg(feature = "yaml")]
use super::read::parse_yaml;
use super::read::{object, parse_json, part};
use super::{ChoiceBehavior, InvalidChoice};
use crate::{ChatOptions, Effort};

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
    /// All other keys of the entry, unchanged. [`complete`](Self::complete) reads the options of
    /// requests from them.
    pub extension_data: Map<String, Value>,
}

impl PromptSettings {
    /// Returns whether the file has no settings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

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

    /// Returns the entry of a service, without the `default` entry for other services.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&ServiceSettings> {
        self.entries.get(name)
    }

    /// Returns the settings for a service: its own entry as a whole, or else the `default` entry
    /// (`CHOICE-10`, `CHOICE-11`).
    #[must_use]
    pub fn service(&self, name: &str) -> Option<&ServiceSettings> {
        self.entry(name).or_else(|| self.entry(DEFAULT))
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

    /// Returns options of a request, completed by those of the entry: an option that is set stays
    /// (`CHOICE-16`).
    ///
    /// # Errors
    /// [`InvalidChoice::Form`] for the first option of the entry that has the wrong form.
    pub fn complete(&self, options: ChatOptions) -> Result<ChatOptions, InvalidChoice> {
        let temperature = self.option(&["temperature"], "a number", Value::as_f64)?;
        let top_p = self.option(&["top_p"], "a number", Value::as_f64)?;
        let keys = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
        let max_output_tokens = self.option(&keys, "a positive integer", positive)?;
        let model = self.option(&["model_id"], "a string", string)?;
        let stop = self.option(&["stop_sequences", "stop"], "a list of strings", strings)?;
        let seed = self.option(&["seed"], "an integer", Value::as_i64)?;
        let efforts = "one of none, minimal, low, medium, high, xhigh, max";
        let effort = self.option(&["reasoning_effort", "effort"], efforts, |value| {
            value.as_str()?.parse::<Effort>().ok()
        })?;
        Ok(ChatOptions {
            temperature: options.temperature.or(temperature),
            top_p: options.top_p.or(top_p),
            max_output_tokens: options.max_output_tokens.or(max_output_tokens),
            model: options.model.or(model),
            stop: match options.stop.is_empty() {
                true => stop.unwrap_or_default(),
                false => options.stop,
            },
            seed: options.seed.or(seed),
            effort: options.effort.or(effort),
            ..options
        })
    }

    /// Returns the first of these options that is set.
    fn option<T>(
        &self,
        keys: &[&'static str],
        expected: &'static str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, InvalidChoice> {
        let found = keys.iter().find_map(|key| Some((*key, part(&self.extension_data, key)?)));
        let Some((part, value)) = found else { return Ok(None) };
        read(value).map(Some).ok_or(InvalidChoice::Form { part, expected })
    }

    /// Returns the behavior of a run: the one set in code, as a whole, or else the prompt file's
    /// (`CHOICE-12`).
    #[must_use]
    pub fn behavior_or(&self, code: Option<ChoiceBehavior>) -> Option<ChoiceBehavior> {
        code.or_else(|| self.behavior.clone())
    }
}

fn positive(value: &Value) -> Option<u64> {
    value.as_u64().filter(|number| *number > 0)
}

fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Returns strings of a list, or the only one.
fn strings(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(list) => list.iter().map(string).collect(),
        _ => None,
    }
}

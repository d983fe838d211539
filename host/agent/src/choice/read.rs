//! JSON and YAML form of behaviors (`CHOICE-1`, `CHOICE-2`, `CHOICE-7`, `CHOICE-10`).

use serde_json::{Map, Value, json};

use super::{ChoiceBehavior, ChoiceKind, ChoiceOptions, FunctionName, InvalidChoice};

/// Maximum length of the input in bytes. A behavior has a few hundred; users write prompt files.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Maximum number of parser events that YAML aliases may repeat.
#[cfg(feature = "yaml")]
const REPEATED_EVENTS_MAX: usize = 10_000;

impl ChoiceBehavior {
    /// Converts a behavior with a `type` and, optionally, `functions` and `options`. Other keys are
    /// ignored (`CHOICE-10`), including everything that only code may set (`CHOICE-4`,
    /// `CHOICE-11`).
    ///
    /// # Errors
    /// [`InvalidChoice`] if the value is not a behavior.
    pub fn from_value(value: &Value) -> Result<Self, InvalidChoice> {
        let object = object(value, "function_choice_behavior")?;
        let kind = match part(object, "type") {
            None => return Err(InvalidChoice::NoType),
            Some(Value::String(name)) => kind(name)?,
            Some(other) => return Err(InvalidChoice::UnknownType { name: other.to_string() }),
        };
        let functions = part(object, "functions").map(names).transpose()?;
        let options = part(object, "options").map(options).transpose()?.unwrap_or_default();
        Ok(Self { functions, options, ..Self::new(kind) })
    }

    /// Parses a behavior in JSON.
    ///
    /// # Errors
    /// [`InvalidChoice`] if the string is not a behavior.
    pub fn from_json(text: &str) -> Result<Self, InvalidChoice> {
        Self::from_value(&parse_json(text)?)
    }

    /// Parses a behavior in YAML; requires the feature `yaml`.
    ///
    /// # Errors
    /// [`InvalidChoice`] if the string is not a behavior.
    #[cfg(feature = "yaml")]
    pub fn from_yaml(text: &str) -> Result<Self, InvalidChoice> {
        Self::from_value(&parse_yaml(text)?)
    }

    /// Returns the form that [`from_value`](Self::from_value) reads, with every part present.
    /// Leaves out what only code can set. The type of a custom behavior is `custom`, which
    /// `from_value` rejects (`CHOICE-11`).
    #[must_use]
    pub fn to_value(&self) -> Value {
        let names = |names: &Vec<FunctionName>| -> Vec<String> {
            names.iter().map(ToString::to_string).collect()
        };
        json!({
            "type": if self.is_custom() { "custom" } else { self.kind.as_str() },
            "functions": self.functions.as_ref().map(names),
            "options": {
                "allow_concurrent_invocation": self.options.allow_concurrent_invocation,
                "allow_parallel_calls": self.options.allow_parallel_calls,
                "allow_strict_schema_adherence": self.options.allow_strict_schema_adherence,
            },
        })
    }
}

fn kind(name: &str) -> Result<ChoiceKind, InvalidChoice> {
    let kinds = [ChoiceKind::Auto, ChoiceKind::Required, ChoiceKind::None];
    let kind = kinds.into_iter().find(|kind| kind.as_str() == name);
    kind.ok_or_else(|| InvalidChoice::UnknownType { name: name.to_owned() })
}

fn names(value: &Value) -> Result<Vec<FunctionName>, InvalidChoice> {
    let broken = || InvalidChoice::Form { part: "functions", expected: "a list of names" };
    let names = value.as_array().ok_or_else(broken)?.iter();
    names.map(|name| name.as_str().map(FunctionName::from).ok_or_else(broken)).collect()
}

fn options(value: &Value) -> Result<ChoiceOptions, InvalidChoice> {
    let object = object(value, "options")?;
    let flag = |name| match part(object, name) {
        Some(value) => {
            let broken = InvalidChoice::Form { part: name, expected: "true or false" };
            value.as_bool().map(Some).ok_or(broken)
        }
        None => Ok(None),
    };
    Ok(ChoiceOptions {
        allow_concurrent_invocation: flag("allow_concurrent_invocation")?.unwrap_or_default(),
        allow_parallel_calls: flag("allow_parallel_calls")?,
        allow_strict_schema_adherence: flag("allow_strict_schema_adherence")?.unwrap_or_default(),
    })
}

/// Returns a member of an object; null counts as absent (`CHOICE-2`, `CHOICE-7`).
pub(super) fn part<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| !value.is_null())
}

pub(super) fn object<'v>(
    value: &'v Value,
    part: &'static str,
) -> Result<&'v Map<String, Value>, InvalidChoice> {
    value.as_object().ok_or(InvalidChoice::Form { part, expected: "an object" })
}

pub(super) fn parse_json(text: &str) -> Result<Value, InvalidChoice> {
    check_size(text)?;
    serde_json::from_str(text).map_err(InvalidChoice::Json)
}

/// Parses YAML 1.2 as JSON: `yes` and `no` are strings, keys are unique, and aliases may repeat
/// only a little.
#[cfg(feature = "yaml")]
pub(super) fn parse_yaml(text: &str) -> Result<Value, InvalidChoice> {
    check_size(text)?;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_documents: 1, max_total_scalar_bytes: 2 * TEXT_BYTES_MAX },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPEATED_EVENTS_MAX },
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| InvalidChoice::Yaml(error.into()))
}

fn check_size(text: &str) -> Result<(), InvalidChoice> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(InvalidChoice::TooLarge { bytes_max: TEXT_BYTES_MAX })
}

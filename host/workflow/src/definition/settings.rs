//! Options of requests in text: keys of YAML and `KEY=VALUE` of the command line.

use std::str::FromStr;

use cofferdam_agent::{ChatOptions, Effort, finite_number};
use serde::Deserialize;

/// Options of an agent's requests. They override those of its model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct RequestSettings {
    /// Sampling temperature.
    #[serde(deserialize_with = "finite_number")]
    pub temperature: Option<f64>,
    /// Share of the probability mass from which tokens are sampled.
    #[serde(deserialize_with = "finite_number")]
    pub top_p: Option<f64>,
    /// Maximum number of tokens of one reply.
    pub max_output_tokens: Option<u64>,
    /// Strings that end a reply.
    pub stop: Vec<String>,
    /// Seed of the sampling.
    pub seed: Option<i64>,
    /// Effort in reasoning.
    pub effort: Option<Effort>,
}

/// Error returned for a setting in text that is unknown or has no valid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequestSetting {
    /// There is no `=`.
    #[error("`{written}` is not a setting; expected KEY=VALUE, such as temperature=0.2")]
    Form {
        /// The setting as it was written.
        written: String,
    },
    /// The key does not exist.
    #[error(
        "there is no setting `{key}`; known are temperature, top-p, max-output-tokens, stop, seed, \
         effort"
    )]
    Unknown {
        /// Key that was written.
        key: String,
    },
    /// The value has another type, or is out of range.
    #[error("the setting `{key}` is {expected}, not `{value}`")]
    Value {
        /// Key of the setting.
        key: String,
        /// Value that was written.
        value: String,
        /// Description of valid values.
        expected: &'static str,
    },
}

impl RequestSettings {
    /// Overrides the options that are set here.
    pub fn apply_to(&self, options: &mut ChatOptions) {
        options.temperature = self.temperature.or(options.temperature);
        options.top_p = self.top_p.or(options.top_p);
        options.max_output_tokens = self.max_output_tokens.or(options.max_output_tokens);
        options.seed = self.seed.or(options.seed);
        options.effort = self.effort.or(options.effort);
        if !self.stop.is_empty() {
            options.stop.clone_from(&self.stop);
        }
    }
}

impl RequestSettings {
    /// Parses settings in the form `KEY=VALUE`, with the keys of YAML. `stop` may occur several
    /// times; of the others, the last one counts.
    ///
    /// # Errors
    /// The first setting that is unknown or has no valid value.
    pub fn parse(written: &[String]) -> Result<Self, InvalidRequestSetting> {
        let mut settings = Self::default();
        for written in written {
            let form = || InvalidRequestSetting::Form { written: written.clone() };
            let (key, value) = written.split_once('=').ok_or_else(form)?;
            settings.set(key, value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), InvalidRequestSetting> {
        match key {
            "temperature" => self.temperature = Some(finite(key, value)?),
            "top-p" => self.top_p = Some(finite(key, value)?),
            "max-output-tokens" => {
                self.max_output_tokens = Some(parsed(key, value, "a number of tokens")?);
            }
            "stop" => self.stop.push(value.to_owned()),
            "seed" => self.seed = Some(parsed(key, value, "an integer")?),
            "effort" => {
                let levels = "none, minimal, low, medium, high, xhigh or max";
                self.effort = Some(parsed(key, value, levels)?);
            }
            _ => return Err(InvalidRequestSetting::Unknown { key: key.to_owned() }),
        }
        Ok(())
    }
}

fn finite(key: &str, value: &str) -> Result<f64, InvalidRequestSetting> {
    let number = parsed::<f64>(key, value, "a number")?;
    if number.is_finite() { Ok(number) } else { Err(invalid(key, value, "a number")) }
}

fn parsed<T: FromStr>(
    key: &str,
    value: &str,
    expected: &'static str,
) -> Result<T, InvalidRequestSetting> {
    value.parse().map_err(|_| invalid(key, value, expected))
}

fn invalid(key: &str, value: &str, expected: &'static str) -> InvalidRequestSetting {
    InvalidRequestSetting::Value { key: key.to_owned(), value: value.to_owned(), expected }
}

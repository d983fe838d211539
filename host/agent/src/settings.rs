//! Settings of the loop (`LOOP-9`, `LOOP-10`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::Toolset;
use serde_json::{Map, Value, json};

use crate::IterationHook;
use crate::middleware::{FunctionContext, Middleware};

/// Settings of the loop. `LOOP-9` defines the defaults.
#[derive(Clone)]
pub struct LoopSettings {
    /// True if calls are executed; otherwise they are returned to the caller (`LOOP-3`).
    pub enabled: bool,
    /// Maximum number of iterations before the model has to answer without calls (`LOOP-20`). At
    /// least 1.
    pub max_iterations: u32,
    /// Maximum number of calls before the model has to answer without them; compared after each
    /// batch (`LOOP-21`). At least 1.
    pub max_function_calls: Option<u32>,
    /// Maximum time before the model has to answer without calls (`LOOP-22`). Greater than zero.
    pub max_duration: Option<Duration>,
    /// Number of consecutive iterations with errors that triggers `on_error_limit`; 0 acts like 1
    /// (`LOOP-18`).
    pub max_consecutive_errors: u32,
    /// Reaction to reaching `max_consecutive_errors`.
    pub on_error_limit: ErrorLimitAction,
    /// True if a call of an unknown tool ends the run before any call of its batch has run
    /// (`LOOP-16`).
    pub terminate_on_unknown: bool,
    /// True if the model sees the messages of host errors (`LOOP-14`). For development only,
    /// because such messages may contain confidential information.
    pub include_detailed_errors: bool,
    /// True if the calls of one reply run concurrently (`LOOP-24`).
    pub allow_concurrent_invocation: bool,
    /// Tools that can be called but are not advertised (`LOOP-11`).
    pub additional_tools: Toolset,
    /// Names of tools that the caller of the run executes itself (`LOOP-11`, `LOOP-26`).
    pub caller_tools: BTreeSet<String>,
    /// Called after each iteration (`LOOP-30`).
    pub iteration_completed: Option<Arc<dyn IterationHook>>,
    /// Called when a limit is reached after which the model has to answer without tools.
    pub limit_observer: Option<LimitObserver>,
    /// Executes calls instead of the loop: the innermost function middleware, inside of all others
    /// (`LOOP-27`).
    pub invoker: Option<Arc<dyn Middleware<FunctionContext>>>,
}

/// Receives the limit that a run has reached. Must not block.
pub type LimitObserver = Arc<dyn Fn(ReachedLimit) + Send + Sync>;

/// Limit after which the model has to answer without tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReachedLimit {
    /// [`LoopSettings::max_iterations`] (`LOOP-20`).
    Iterations,
    /// [`LoopSettings::max_function_calls`] (`LOOP-21`).
    FunctionCalls,
    /// [`LoopSettings::max_duration`] (`LOOP-22`).
    Duration,
    /// [`LoopSettings::max_consecutive_errors`] (`LOOP-18`).
    ConsecutiveErrors,
}

/// Reaction to too many consecutive errors (`LOOP-18`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorLimitAction {
    /// The model answers without tools.
    #[default]
    Answer,
    /// The run fails with the errors of the last iteration.
    Raise,
}

/// Error returned for invalid settings (`LOOP-10`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSetting {
    /// `max_iterations` is not a positive integer.
    #[error("max_iterations must be at least 1.")]
    MaxIterations,
    /// `max_function_calls` is not a positive integer.
    #[error("max_function_calls must be at least 1 or none.")]
    MaxFunctionCalls,
    /// `max_duration` is not a positive number of seconds.
    #[error("max_duration must be greater than zero or none.")]
    MaxDuration,
    /// `max_consecutive_errors` is negative or not an integer.
    #[error("max_consecutive_errors must be 0 or more.")]
    MaxConsecutiveErrors,
    /// `on_error_limit` is neither `answer` nor `raise`.
    #[error("on_error_limit must be 'answer' or 'raise'.")]
    OnErrorLimit,
    /// The setting does not exist.
    #[error("Unknown loop setting '{name}'.")]
    Unknown {
        /// Name of the setting.
        name: String,
    },
    /// A flag is neither true nor false.
    #[error("{name} must be true or false.")]
    NotAFlag {
        /// Name of the setting.
        name: String,
    },
    /// The value is not a list of tool names.
    #[error("{name} must be a list of tool names.")]
    NotNames {
        /// Name of the setting.
        name: String,
    },
    /// The setting holds code or tools.
    #[error("{name} can be set in code only.")]
    CodeOnly {
        /// Name of the setting.
        name: String,
    },
}

impl Default for LoopSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_iterations: 40,
            max_function_calls: None,
            max_duration: None,
            max_consecutive_errors: 3,
            on_error_limit: ErrorLimitAction::Answer,
            terminate_on_unknown: false,
            include_detailed_errors: false,
            allow_concurrent_invocation: false,
            additional_tools: Toolset::new(),
            caller_tools: BTreeSet::new(),
            iteration_completed: None,
            limit_observer: None,
            invoker: None,
        }
    }
}

impl LoopSettings {
    /// Checks settings that were made in code.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if self.max_iterations == 0 {
            return Err(InvalidSetting::MaxIterations);
        }
        if self.max_function_calls == Some(0) {
            return Err(InvalidSetting::MaxFunctionCalls);
        }
        if self.max_duration == Some(Duration::ZERO) {
            return Err(InvalidSetting::MaxDuration);
        }
        Ok(())
    }

    /// Converts settings from JSON. Null and missing values mean the default. `max_duration` is in
    /// seconds.
    ///
    /// # Errors
    /// The first setting that is unknown or out of range.
    pub fn from_json(settings: &Map<String, Value>) -> Result<Self, InvalidSetting> {
        Self::default().with_json(settings)
    }

    /// Replaces the settings that JSON names. Null means the default.
    ///
    /// # Errors
    /// Like [`from_json`](Self::from_json).
    pub fn with_json(mut self, settings: &Map<String, Value>) -> Result<Self, InvalidSetting> {
        for (name, value) in settings {
            self.set(name, value)?;
        }
        self.check()?;
        Ok(self)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), InvalidSetting> {
        let default = Self::default();
        let flag = |default: bool| match value {
            Value::Null => Ok(default),
            Value::Bool(flag) => Ok(*flag),
            _ => Err(InvalidSetting::NotAFlag { name: name.to_owned() }),
        };
        let number = |default: Option<u32>, error: InvalidSetting| match value {
            Value::Null => Ok(default),
            other => other
                .as_u64()
                .map(|number| Some(u32::try_from(number).unwrap_or(u32::MAX)))
                .ok_or(error),
        };
        match name {
            "enabled" => self.enabled = flag(default.enabled)?,
            "terminate_on_unknown" => {
                self.terminate_on_unknown = flag(default.terminate_on_unknown)?
            }
            "include_detailed_errors" => {
                self.include_detailed_errors = flag(default.include_detailed_errors)?;
            }
            "allow_concurrent_invocation" => {
                self.allow_concurrent_invocation = flag(default.allow_concurrent_invocation)?;
            }
            "max_iterations" => {
                let read = number(Some(default.max_iterations), InvalidSetting::MaxIterations)?;
                self.max_iterations = read.ok_or(InvalidSetting::MaxIterations)?;
            }
            "max_function_calls" => {
                self.max_function_calls = number(None, InvalidSetting::MaxFunctionCalls)?;
            }
            "max_consecutive_errors" => {
                let read = number(
                    Some(default.max_consecutive_errors),
                    InvalidSetting::MaxConsecutiveErrors,
                )?;
                self.max_consecutive_errors = read.ok_or(InvalidSetting::MaxConsecutiveErrors)?;
            }
            "max_duration" => self.max_duration = duration(value)?,
            "on_error_limit" => {
                self.on_error_limit = match value.as_str() {
                    Some("answer") => ErrorLimitAction::Answer,
                    Some("raise") => ErrorLimitAction::Raise,
                    None if value.is_null() => default.on_error_limit,
                    _ => return Err(InvalidSetting::OnErrorLimit),
                }
            }
            "caller_tools" => self.caller_tools = names(name, value)?,
            "additional_tools" | "iteration_completed" | "invoker" | "limit_observer" => {
                let is_none = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
                if !is_none {
                    return Err(InvalidSetting::CodeOnly { name: name.to_owned() });
                }
            }
            other => return Err(InvalidSetting::Unknown { name: other.to_owned() }),
        }
        Ok(())
    }

    /// Converts settings to JSON. Tools are given by name; a hook and an invoker are true if set.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let additional: Vec<_> = self
            .additional_tools
            .definitions()
            .map(|definition| definition.name.as_str())
            .collect();
        json!({
            "enabled": self.enabled,
            "max_iterations": self.max_iterations,
            "max_function_calls": self.max_function_calls,
            "max_duration": self.max_duration.map(|duration| duration.as_secs_f64()),
            "max_consecutive_errors": self.max_consecutive_errors,
            "on_error_limit": match self.on_error_limit {
                ErrorLimitAction::Answer => "answer",
                ErrorLimitAction::Raise => "raise",
            },
            "terminate_on_unknown": self.terminate_on_unknown,
            "include_detailed_errors": self.include_detailed_errors,
            "allow_concurrent_invocation": self.allow_concurrent_invocation,
            "additional_tools": additional,
            "caller_tools": self.caller_tools,
            "iteration_completed": self.iteration_completed.as_ref().map(|_| true),
            "invoker": self.invoker.as_ref().map(|_| true),
        })
    }
}

fn duration(value: &Value) -> Result<Option<Duration>, InvalidSetting> {
    if value.is_null() {
        return Ok(None);
    }
    let seconds = value.as_f64().ok_or(InvalidSetting::MaxDuration)?;
    Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| InvalidSetting::MaxDuration)
}

fn names(setting: &str, value: &Value) -> Result<BTreeSet<String>, InvalidSetting> {
    let wrong = || InvalidSetting::NotNames { name: setting.to_owned() };
    if value.is_null() {
        return Ok(BTreeSet::new());
    }
    let names = value.as_array().ok_or_else(wrong)?.iter();
    names.map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

impl std::fmt::Debug for LoopSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoopSettings{}", self.to_json())
    }
}

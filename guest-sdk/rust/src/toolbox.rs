//! Other tools that are granted to the plugin.
//!
//! A called tool runs with its own grants and limits, in its own sandbox. Its file changes belong
//! to the call that made it: if that fails, the host drops them. Tools that need the user's
//! approval cannot be called.
//!
//! A component that does not use this module does not import `cofferdam:plugin/toolbox`. In a unit
//! test the tools are those of a [`testing::Host`](crate::testing::Host).
//!
//! ```
//! # fn tool() -> Result<i64, cofferdam_sdk::ToolFailure> {
//! use cofferdam_sdk::{json, toolbox};
//!
//! let counts = toolbox::call("word_count", &json!({"text": "to be or not to be"}))?;
//! # Ok(counts["words"].as_i64().unwrap_or(0))
//! # }
//! ```

use std::fmt;

use serde_json::Value;

use crate::{Content, ToolFailure, content};

/// Error of a call without a value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// No tool of this name is granted.
    UnknownTool,
    /// The arguments do not match the tool's schema. The message names every problem.
    InvalidArguments(String),
    /// The tool reported a failure.
    Failed(ToolFailure),
    /// The tool ended with an error. The string is the name of the error type, for example
    /// `Trap.Unreachable`.
    Ended(String),
    /// Calls are nested too deeply.
    TooDeep,
    /// An item of the result is declared as JSON but invalid.
    NotJson,
}

/// Returns the names of the granted tools, each with its description.
#[must_use]
pub fn granted() -> Vec<(String, String)> {
    host::granted()
}

/// Calls a tool and returns its value as a model would see it: null, a string or a JSON value; for
/// several items, an array.
///
/// # Errors
/// [`Error`]. `?` turns it into a [`ToolFailure`].
pub fn call(name: &str, arguments: &Value) -> Result<Value, Error> {
    content::value(contents(name, arguments)?).map_err(|_| Error::NotJson)
}

/// Calls a tool and returns the items of its result.
///
/// # Errors
/// [`Error`].
pub fn contents(name: &str, arguments: &Value) -> Result<Vec<Content>, Error> {
    host::call(name, &arguments.to_string())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool => f.write_str("no tool of that name was granted"),
            Self::InvalidArguments(text) => f.write_str(text),
            Self::Failed(failure) => write!(f, "{failure}"),
            Self::Ended(name) => write!(f, "the tool that was called ended as {name}"),
            Self::TooDeep => f.write_str("tools call each other too deeply"),
            Self::NotJson => f.write_str("the tool that was called gave a result that is not JSON"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(target_arch = "wasm32")]
mod host {
    use super::Error;
    use crate::guest::bindings::cofferdam::plugin::{toolbox, types};
    use crate::{Content, ToolFailure};

    pub(super) fn granted() -> Vec<(String, String)> {
        toolbox::list_tools().into_iter().map(|tool| (tool.name, tool.description)).collect()
    }

    pub(super) fn call(name: &str, arguments_json: &str) -> Result<Vec<Content>, Error> {
        let contents = toolbox::call_tool(name, arguments_json)?;
        Ok(contents.into_iter().map(Into::into).collect())
    }

    impl From<toolbox::Error> for Error {
        fn from(error: toolbox::Error) -> Self {
            match error {
                toolbox::Error::UnknownTool => Self::UnknownTool,
                toolbox::Error::InvalidArguments(text) => Self::InvalidArguments(text),
                toolbox::Error::Failed(failure) => Self::Failed(tool_failure(failure)),
                toolbox::Error::Ended(name) => Self::Ended(name),
                toolbox::Error::TooDeep => Self::TooDeep,
            }
        }
    }

    fn tool_failure(received: types::Failure) -> ToolFailure {
        let failure = ToolFailure::new(received.message);
        let failure = match received.suggestion {
            Some(suggestion) => failure.suggestion(suggestion),
            None => failure,
        };
        let failure = match received.transient {
            Some(true) => failure.transient(),
            Some(false) => failure.permanent(),
            None => failure,
        };
        let value =
            received.value.and_then(|value| serde_json::from_str::<serde_json::Value>(&value).ok());
        match value {
            Some(value) => failure.value(value),
            None => failure,
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod host {
    use super::Error;
    use crate::Content;
    use crate::testing::host;

    pub(super) fn granted() -> Vec<(String, String)> {
        host::tool_names()
            .into_iter()
            .map(|name| (name, "A tool of the test.".to_owned()))
            .collect()
    }

    pub(super) fn call(name: &str, arguments_json: &str) -> Result<Vec<Content>, Error> {
        let arguments = serde_json::from_str(arguments_json).map_err(|_| Error::NotJson)?;
        host::call_tool(name, &arguments)
    }
}

//! Calls tools as the host does, with JSON, but without a host.
//!
//! ```
//! use cofferdam_sdk::{json, testing, tool};
//!
//! /// Adds two numbers.
//! #[tool]
//! fn add(a: i64, #[tool(default = 1)] b: i64) -> i64 {
//!     a + b
//! }
//!
//! assert_eq!(testing::call::<add>(json!({"a": 2})).unwrap(), 3);
//! assert_eq!(testing::definition::<add>().input_schema["required"], json!(["a"]));
//! ```
//!
//! A [`Host`] in memory grants stores, secrets, other tools and a client. Without one, nothing is
//! granted, and progress and log lines are dropped.
//!
//! Missing arguments get their defaults as in the host. Other steps of the host do not happen:
//! converting `"2"` to 2, checking against the schema, dropping unknown keys.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod host;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod stores;

#[cfg(not(target_arch = "wasm32"))]
pub use self::host::{Host, Progress};

use serde_json::Value;

use crate::{Arguments, Content, Definition, Tool, ToolFailure, content};

/// Calls a tool and returns the value that the model would see: null, a string, or a JSON value;
/// for several items, an array of such values. A blob is shown as `{"media_type": …, "bytes": …}`
/// with its length, a resource with text as `{"uri": …, "media_type": …, "text": …}`, and a link as
/// `{"uri": …, "name": …, "media_type": …}`.
///
/// # Errors
/// A failure of the tool, also for arguments that do not match, or a result that is not JSON.
pub fn call<T: Tool>(arguments: Value) -> Result<Value, ToolFailure> {
    Ok(content::value(contents::<T>(arguments)?)?)
}

/// Calls a tool and returns the items of its result.
///
/// # Errors
/// A failure of the tool, also for arguments that do not match.
pub fn contents<T: Tool>(arguments: Value) -> Result<Vec<Content>, ToolFailure> {
    T::call(Arguments::parse(T::NAME, &arguments.to_string())?)
}

/// Returns the definition that a tool publishes.
#[must_use]
pub fn definition<T: Tool>() -> Definition {
    T::definition()
}

//! Calls tools the way the host does, through their JSON face and without a host.
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
//! A [`Host`] in memory grants stores, secrets, other tools and a client. Without one nothing is
//! granted and nobody listens.
//!
//! Missing arguments get their defaults here as they do in the host. What else the host does with
//! what a model sends (converting `"2"` to 2, checking it against the schema, dropping unknown
//! keys) does not happen.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod host;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod stores;

#[cfg(not(target_arch = "wasm32"))]
pub use self::host::{Host, Progress};

use serde_json::Value;

use crate::{Arguments, Content, Definition, Tool, ToolFailure, content};

/// Calls a tool and gives the value that the model would see: null, a text, or a JSON value;
/// several items come as an array of such values, and a blob as its media type and its length,
/// `{"media_type": …, "bytes": …}`; a resource with a text as
/// `{"uri": …, "media_type": …, "text": …}`, a link as `{"uri": …, "name": …, "media_type": …}`.
///
/// # Errors
///
/// What the tool reports, arguments that do not fit, and a result that is not JSON.
pub fn call<T: Tool>(arguments: Value) -> Result<Value, ToolFailure> {
    Ok(content::value(contents::<T>(arguments)?)?)
}

/// Calls a tool and gives the items of its result.
///
/// # Errors
///
/// What the tool reports, and arguments that do not fit.
pub fn contents<T: Tool>(arguments: Value) -> Result<Vec<Content>, ToolFailure> {
    T::call(Arguments::parse(T::NAME, &arguments.to_string())?)
}

/// What the tool publishes.
#[must_use]
pub fn definition<T: Tool>() -> Definition {
    T::definition()
}

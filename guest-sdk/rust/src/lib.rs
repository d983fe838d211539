//! Write tools for Cofferdam in Rust: plain functions in, one WebAssembly component out.
//!
//! ```
//! use cofferdam_sdk::{ToolFailure, tool};
//!
//! /// Repeats a string.
//! #[tool(read_only, idempotent)]
//! pub fn repeat(
//!     /// The text to repeat.
//!     text: String,
//!     /// Number of repetitions; at most 100.
//!     #[tool(default = 2)]
//!     times: usize,
//! ) -> Result<String, ToolFailure> {
//!     if times > 100 {
//!         return Err(ToolFailure::new(format!("{times} times is too often")).suggestion("pass 100 or less"));
//!     }
//!     Ok(text.repeat(times))
//! }
//!
//! cofferdam_sdk::plugin!(repeat);
//! # fn main() {
//! # let answer = cofferdam_sdk::testing::call::<repeat>(cofferdam_sdk::json!({"text": "ab"}));
//! # assert_eq!(answer.unwrap(), "abab");
//! # }
//! ```
//!
//! [`tool`] documents parameters and results, [`plugin!`] exports the component, and [`testing`]
//! calls a tool as the host does, without a host. A component imports only what its tools use:
//! without a call of [`call::progress`], the component cannot report progress.
//!
//! The feature `http` adds the module `http`, which sends requests.
//!
//! The SDK does not panic on any input of a model. A panic in a tool ends the call, and the model
//! sees only `Trap.Unreachable`. Therefore return a [`ToolFailure`] for expected errors.

mod arguments;
pub mod call;
pub mod client;
mod content;
mod definition;
mod failure;
pub mod files;
#[cfg(target_arch = "wasm32")]
mod guest;
#[cfg(feature = "http")]
pub mod http;
mod plugin;
mod returned;
mod schema;
pub mod secrets;
pub mod testing;
pub mod tool_calls;
pub mod toolbox;

pub use arguments::Arguments;
pub use content::{Blob, Content, Link, Resource, ResourceBody};
pub use definition::{Annotations, Definition, Tool};
pub use failure::ToolFailure;
#[doc(no_inline)]
pub use serde_json::json;
#[doc(no_inline)]
pub use {schemars, serde, serde_json};

/// Makes a tool of a function.
///
/// The function is not changed and can be called and tested like any other. The macro adds a type
/// with the same name that implements [`Tool`]; `use text::word_count` imports both. A module
/// cannot have the same name in the same scope: leave the tool in its module and pass the path,
/// `plugin!(word_count::word_count)`.
///
/// # What the model sees
///
/// The doc comment of the function is the description of the tool. It is required, because a model
/// knows nothing else about the tool. The doc comment of a parameter is the description of that
/// argument.
///
/// | parameter | the model |
/// |---|---|
/// | `name: T` | must send it |
/// | `name: Option<T>` | may omit it or send null: `None` |
/// | `#[tool(default = …)] name: T` | may omit it or send null: the default |
/// | `#[tool(default)] name: T` | may omit it or send null: `T::default()` |
///
/// `T` is any type that owns its value and implements `serde::Deserialize` and
/// [`schemars::JsonSchema`]. Derive both for your own structs and enums (and `serde::Serialize` for
/// a parameter with a default). Their doc comments are published too. The host checks and converts
/// the model's arguments before the tool runs.
///
/// # What a function may return
///
/// | return type | result |
/// |---|---|
/// | `String`, `&'static str` | a string |
/// | anything that implements `serde::Serialize` | a JSON value |
/// | `()` | null |
/// | [`Content`], `Vec<Content>`, [`Blob`], [`Resource`], [`Link`] | exactly these items |
/// | `Result<T, E>` with one of these as `T` | the same, or a failure; `E` is [`ToolFailure`] or any standard error, whose text the model does not see |
///
/// # Options
///
/// `#[tool(name = "…", title = "…", group = "…", read_only, destructive, idempotent, open_world, long_running, output_schema)]`
///
/// - `name`: replaces the function's name.
/// - `title`: a display name for users.
/// - `group`: the name of a group of tools that belong together, 1 to 64 characters from
///   `A-Z a-z 0-9 _ . -`.
/// - `read_only` to `long_running`: hints, see [`Annotations`]. `read_only` means
///   `read_only = true`; a missing hint means unknown.
/// - `output_schema`: publishes the schema of the return type, which must implement
///   [`schemars::JsonSchema`]. The host checks each result against it.
pub use cofferdam_sdk_macros::tool;

/// Items for the code that the macros generate. Not for direct use; it can change at any time.
#[doc(hidden)]
pub mod __private {
    #[cfg(target_arch = "wasm32")]
    pub use crate::guest::bindings;
    pub use crate::plugin::{Entry, Plugin, problem_of};
    pub use crate::returned::{
        JsonContents, PlainOutcome, PlainSchema, ReturnValue, Returns, Value,
    };
    pub use crate::schema::ObjectSchema;
}

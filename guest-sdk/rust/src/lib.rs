//! Write tools for Cofferdam in Rust: plain functions in, one WebAssembly component out.
//!
//! ```
//! use cofferdam_sdk::{ToolFailure, tool};
//!
//! /// Repeats a text.
//! #[tool(read_only, idempotent)]
//! pub fn repeat(
//!     /// The text to repeat.
//!     text: String,
//!     /// Number of greetings; at most 100.
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
//! [`tool`] says what can be a parameter and a result, [`plugin!`] makes the component, [`testing`]
//! calls a tool as the host does, without a host. A component imports what its tools use and
//! nothing else: a tool that never asks for [`call::progress`] gives a component that could not
//! report any.
//!
//! Nothing here panics on what a model can send. A panic in a tool ends the call, and all that the
//! model learns is `Trap.Unreachable`: return a [`ToolFailure`] for what can go wrong.

mod arguments;
pub mod call;
pub mod client;
mod content;
mod definition;
mod failure;
pub mod files;
#[cfg(target_arch = "wasm32")]
mod guest;
mod plugin;
mod returned;
mod schema;
pub mod secrets;
pub mod testing;
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
/// The function stays what it was and can be called and tested like any other. Beside it appears a
/// type of the same name that implements [`Tool`]; `use text::word_count` brings both. A module of
/// that name cannot stand beside them: leave the tool in its module and pass the path,
/// `plugin!(word_count::word_count)`.
///
/// # What the model sees
///
/// The doc comment of the function is the description of the tool. It is required: a model knows
/// nothing else of the tool. The doc comment of a parameter is the description of that argument.
///
/// | parameter | the model may |
/// |---|---|
/// | `name: T` | not leave it out |
/// | `name: Option<T>` | leave it out or send null: `None` |
/// | `#[tool(default = …)] name: T` | leave it out or send null: the default |
/// | `#[tool(default)] name: T` | the same with `T::default()` |
///
/// `T` is anything that owns its value and implements `serde::Deserialize` and
/// [`schemars::JsonSchema`]: derive both for structs and enums of your own (and `serde::Serialize`
/// to use one with a default). Their doc comments are published too. The host checks and converts
/// what the model sent before the tool runs.
///
/// # What a function may return
///
/// | return type | result |
/// |---|---|
/// | `String`, `&'static str` | a text |
/// | anything that implements `serde::Serialize` | a JSON value |
/// | `()` | null |
/// | [`Content`], `Vec<Content>`, [`Blob`], [`Resource`], [`Link`] | just that |
/// | `Result<T, E>` with one of these as `T` | the same, or a failure; `E` is [`ToolFailure`] or any standard error |
///
/// # Options
///
/// `#[tool(name = "…", title = "…", read_only, destructive, idempotent, open_world, long_running, output_schema)]`
///
/// - `name`: instead of the function's name.
/// - `title`: a short name for users.
/// - `read_only` to `long_running`: hints, see [`Annotations`]. `read_only` is `read_only = true`;
///   a hint that is not given is unknown.
/// - `output_schema`: publishes the schema of the return type, which then implements
///   [`schemars::JsonSchema`]. The host checks each result against it.
pub use cofferdam_sdk_macros::tool;

/// Support for the code that the macros generate. Not for use by hand, and free to change.
#[doc(hidden)]
pub mod __private {
    #[cfg(target_arch = "wasm32")]
    pub use crate::guest::bindings;
    pub use crate::plugin::{Entry, Plugin, check_names};
    pub use crate::returned::{
        JsonContents, PlainOutcome, PlainSchema, ReturnValue, Returns, Value,
    };
    pub use crate::schema::ObjectSchema;
}

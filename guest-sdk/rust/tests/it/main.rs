//! What authors and hosts can rely on, tried natively.
//!
//! - `definitions`: what is published of a tool.
//! - `arguments`: from JSON to parameters.
//! - `results`: from return values to contents and failures.
//! - `compile_errors`: what an author is told; `tests/ui` holds the programs and the words.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, also in its helpers")]

mod arguments;
mod compile_errors;
mod definitions;
mod results;

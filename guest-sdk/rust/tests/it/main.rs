//! Native tests of the SDK's interface to authors and hosts.
//!
//! - `definitions`: published definitions of tools.
//! - `arguments`: conversion from JSON to parameters.
//! - `results`: conversion from return values to contents and failures.
//! - `tool_calls`: calls that run side by side.
//! - `compile_errors`: error messages for authors; `tests/ui` contains the programs and the
//!   messages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, also in its helpers")]

mod arguments;
mod compile_errors;
mod definitions;
mod results;
mod tool_calls;

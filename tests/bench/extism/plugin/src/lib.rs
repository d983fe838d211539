//! The tool `echo` of `tests/programs/examples/served.rs`, for extism: returns its input.

use extism_pdk::{FnResult, plugin_fn};

#[plugin_fn]
pub fn echo(arguments: String) -> FnResult<String> {
    Ok(format!(r#"{{"echoed":{arguments}}}"#))
}

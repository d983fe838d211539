//! Tools after which the server offers something else.
//!
//! No tool can change what its server offers. These leave a sign in their store; whoever runs the
//! suite sees it and changes a plugin of the server.

use cofferdam_sdk::files::Store;
use cofferdam_sdk::{ToolFailure, call, tool};

fn sign(what: &str) -> Result<(), ToolFailure> {
    Store::named("signal").replace(what, call::id())?;
    Ok(())
}

/// Has the list of tools changed.
#[tool]
pub fn test_trigger_tool_change() -> Result<&'static str, ToolFailure> {
    sign("tools")?;
    Ok("Tool list change triggered")
}

/// Has the list of prompts changed.
#[tool]
pub fn test_trigger_prompt_change() -> Result<&'static str, ToolFailure> {
    sign("prompts")?;
    Ok("Prompt list change triggered")
}

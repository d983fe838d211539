//! Tools after which the server's lists change.
//!
//! No tool can change the lists of its server. These leave a file in their store; the runner of the
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

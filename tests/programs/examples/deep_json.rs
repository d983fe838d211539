//! Returns JSON that is nested 129 levels deep.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        vec![tool("deep_json")]
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        Ok(vec![Content::Json("[".repeat(129) + &"]".repeat(129))])
    }
}

export!(Program);

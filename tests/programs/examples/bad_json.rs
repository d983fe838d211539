//! Returns an invalid string as JSON.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        vec![tool("bad_json")]
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        Ok(vec![Content::Json("{\"a\":1,}".to_owned())])
    }
}

export!(Program);

//! Traps while it lists its tools.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        panic!("no tools today")
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        Ok(vec![])
    }
}

export!(Program);

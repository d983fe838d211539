//! Declares a schema whose default does not match its type.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        vec![with_schema(
            "bad",
            r#"{"type":"object","properties":{"n":{"type":"integer","default":"many"}}}"#,
        )]
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        Ok(vec![])
    }
}

export!(Program);

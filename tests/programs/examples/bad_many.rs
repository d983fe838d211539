//! Declares several tools, most of them with more than one error.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        vec![
            with_schema(
                "two_mistakes",
                r#"{"type":"object","required":["m"],"properties":{"n":{"type":"integer","default":"many"},"o":{"type":"boolean"}}}"#,
            ),
            with_schema(
                "more_mistakes",
                r#"{"type":"object","properties":{"a":{"type":"thing"},"b":{"pattern":"(?=x)"},"c":{"enum":[]}}}"#,
            ),
            with_schema("not json", "{"),
            tool("fine"),
            tool("Fine"),
        ]
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        Ok(vec![])
    }
}

export!(Program);

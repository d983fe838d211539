//! Declares tools that load, but that models and clients have trouble with.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        let mut silent = with_schema(
            "files.read",
            r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string","default":"/"},"headers":{"type":"object","additionalProperties":{"type":"string"},"description":"Headers to send"},"zu groß":{"type":"integer","minimum":1,"description":"A bound"}}}"#,
        );
        silent.description = String::new();
        let mut long =
            tool("a_name_that_is_much_longer_than_sixty_four_characters_and_so_is_cut_off");
        long.description = "Says more than anybody wants to read. ".repeat(40);
        vec![silent, long]
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        Ok(vec![])
    }
}

export!(Program);

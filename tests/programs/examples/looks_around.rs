//! Returns everything that it can see of its environment.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        vec![tool("looks_around")]
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        let environment = std::env::vars().count();
        let arguments = std::env::args().count();
        let root =
            std::fs::read_dir("/").map(|entries| entries.count()).map_err(|error| error.kind());
        let here =
            std::fs::read_dir(".").map(|entries| entries.count()).map_err(|error| error.kind());
        let mut input = String::new();
        let read = std::io::Read::read_to_string(&mut std::io::stdin(), &mut input)
            .map_err(|error| error.kind());
        Ok(vec![Content::Text(format!("{environment} {arguments} {root:?} {here:?} {read:?}"))])
    }
}

export!(Program);

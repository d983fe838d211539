//! One tool with many attacks, one for each name. `tests/it/hostile/` defines their required ends.

mod blocking;
mod floods;
mod handles;
mod probes;
mod traces;

use cofferdam_test_programs::*;

wit_bindgen::generate!({
    path: "../../wit",
    inline: "
        package cofferdam:hostile;
        world hostile {
            import cofferdam:plugin/call@0.1.0;
        }
    ",
    world: "cofferdam:hostile/hostile",
    generate_all,
});

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        let schema =
            r#"{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}"#;
        vec![with_schema("attack", schema)]
    }

    fn call_tool(_name: String, arguments: String) -> Result<Vec<Content>, Failure> {
        let name = arguments.split('"').nth(3).unwrap_or_default();
        let families =
            [blocking::attack, floods::attack, handles::attack, probes::attack, traces::attack];
        let contents = families.iter().find_map(|attack| attack(name));
        Ok(contents.unwrap_or_else(|| panic!("there is no attack called {name}")))
    }
}

/// Returns the answer of an attack that returned.
fn text(text: impl Into<String>) -> Option<Vec<Content>> {
    Some(vec![Content::Text(text.into())])
}

export!(Program);

//! Shared code of the programs: the raw plugin interface, without an SDK.

#![allow(missing_docs, reason = "generated bindings")]

wit_bindgen::generate!({
    path: "../../wit",
    inline: "
        package cofferdam:programs;
        world program {
            import cofferdam:plugin/call@0.1.0;
            import cofferdam:plugin/client@0.1.0;
            import cofferdam:plugin/files@0.1.0;
            import cofferdam:plugin/tool-calls@0.1.0;
            import cofferdam:plugin/toolbox@0.1.0;
            export cofferdam:plugin/tools@0.1.0;
        }
    ",
    world: "cofferdam:programs/program",
    generate_all,
    pub_export_macro: true,
    default_bindings_module: "cofferdam_test_programs",
});

pub use cofferdam::plugin::types::{Annotations, Blob, Content, Failure, ToolDefinition};
pub use cofferdam::plugin::{call, client, files, tool_calls, toolbox};
pub use exports::cofferdam::plugin::tools::Guest;

/// Returns a tool with a name and the input schema of a tool without parameters.
pub fn tool(name: &str) -> ToolDefinition {
    with_schema(name, r#"{"type":"object"}"#)
}

/// Returns a tool with a name and a schema.
pub fn with_schema(name: &str, schema: &str) -> ToolDefinition {
    let annotations = Annotations {
        read_only: None,
        destructive: None,
        idempotent: None,
        open_world: None,
        long_running: None,
    };
    ToolDefinition {
        name: name.to_owned(),
        title: None,
        description: format!("Does {name}."),
        input_schema: schema.to_owned(),
        output_schema: None,
        annotations,
    }
}

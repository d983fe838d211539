//! Plugin interface, with wasmtime bindings generated from `wit/`.

pub(crate) mod lift;

wasmtime::component::bindgen!({
    path: "wit",
    inline: "
        package cofferdam:host;
        world served {
            import cofferdam:plugin/call@0.1.0;
            import cofferdam:plugin/client@0.1.0;
            import cofferdam:plugin/errors@0.1.0;
            import cofferdam:plugin/files@0.1.0;
            import cofferdam:plugin/secrets@0.1.0;
            import cofferdam:plugin/tool-calls@0.1.0;
            import cofferdam:plugin/toolbox@0.1.0;
            export cofferdam:plugin/tools@0.1.0;
        }
    ",
    world: "cofferdam:host/served",
    imports: {
        "cofferdam:plugin/client@0.1.0": async,
        "cofferdam:plugin/files@0.1.0": async,
        "cofferdam:plugin/tool-calls@0.1.0": async,
        "cofferdam:plugin/toolbox@0.1.0": async,
    },
    exports: { default: async },
    anyhow: false,
});

pub(crate) use cofferdam::plugin::types::{
    Content, EmbeddedResource, Failure, Link, ResourceBody, ToolDefinition,
};

/// Export that makes a component a plugin.
pub(crate) const TOOLS_EXPORT: &str = "cofferdam:plugin/tools@0.1.0";

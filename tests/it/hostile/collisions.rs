//! Plugins whose tools imitate those of another plugin.

use cofferdam_engine::{Component, Grants, Plugin, PluginOptions};
use cofferdam_tool::{DuplicateTool, Limits, PluginName, Toolset};

use super::{Arena, End, Ended, Launch, attacks};
use crate::module::{Definition, Module};

attacks! {
    /// The same name: the plugin that is loaded last, or first, would be called.
    the_name_of_another_plugins_tool: Launch::Steps(|arena| Box::pin(async move {
        let error = clash(arena, "read_file", "read_file").await.expect("it is refused");
        assert_eq!(
            error.to_string(),
            "two tools are called 'read_file', one of `honest` and one of `stranger`; load only one of the two, or \
             have its author rename a tool"
        );
        Ended::AsExpected
    })) => End::AsExpected,
    /// The same name but for case.
    a_name_in_capitals: Launch::Steps(|arena| Box::pin(alike(arena, "read_file", "Read_File")))
        => End::AsExpected,
    /// The same name but for a separator.
    a_name_with_another_separator: Launch::Steps(|arena| Box::pin(alike(arena, "read_file", "read-file")))
        => End::AsExpected,
    /// The same name but for a dot, which clients use between plugin and tool.
    a_name_with_a_dot: Launch::Steps(|arena| Box::pin(alike(arena, "read_file", "read.file")))
        => End::AsExpected,
    /// A one instead of an l.
    a_one_for_an_l: Launch::Steps(|arena| Box::pin(alike(arena, "read_file", "read_fi1e")))
        => End::AsExpected,
    /// A capital I instead of an l.
    an_i_for_an_l: Launch::Steps(|arena| Box::pin(alike(arena, "list", "Iist"))) => End::AsExpected,
    /// A zero instead of an o.
    a_zero_for_an_o: Launch::Steps(|arena| Box::pin(alike(arena, "open", "0pen"))) => End::AsExpected,
    /// Two letters that look like one.
    rn_for_an_m: Launch::Steps(|arena| Box::pin(alike(arena, "remove", "rernove"))) => End::AsExpected,
    /// Two letters that look like another one.
    vv_for_a_w: Launch::Steps(|arena| Box::pin(alike(arena, "write", "vvrite"))) => End::AsExpected,
    /// One tool of several is a look-alike: no tool of the plugin is added.
    a_look_alike_among_others: Launch::Steps(|arena| Box::pin(all_or_nothing(arena))) => End::AsExpected,
}

/// Returns a plugin under a name, with a tool for each of `tools`.
async fn plugin(arena: &Arena, name: &str, tools: &[&str]) -> Plugin {
    let definitions = tools.iter().map(|tool| Definition::new(tool)).collect();
    let component = Component::from_bytes(Module { definitions, ..Module::default() }.component());
    let name = PluginName::new(name).unwrap();
    let options = PluginOptions::new(name, Grants::default(), Limits::default());
    arena.host.engine.load(&component, options, &()).await.expect("the plugin loads")
}

async fn clash(arena: &Arena, honest: &str, stranger: &str) -> Option<DuplicateTool> {
    let mut toolset = Toolset::new();
    toolset.add(std::sync::Arc::new(plugin(arena, "honest", &[honest]).await)).unwrap();
    toolset.add(std::sync::Arc::new(plugin(arena, "stranger", &[stranger]).await)).err()
}

async fn alike(arena: &mut Arena, honest: &str, stranger: &str) -> Ended {
    let error = clash(arena, honest, stranger).await.expect("it is refused");
    assert_eq!(
        error.to_string(),
        format!(
            "the tool '{stranger}' of `stranger` cannot be told from '{honest}' of `honest`; load only one of the \
             two, or have its author rename a tool"
        )
    );
    Ended::AsExpected
}

async fn all_or_nothing(arena: &mut Arena) -> Ended {
    let mut toolset = Toolset::new();
    toolset.add(std::sync::Arc::new(plugin(arena, "honest", &["list", "open"]).await)).unwrap();
    let stranger = plugin(arena, "stranger", &["fine", "0pen"]).await;
    assert!(toolset.add(std::sync::Arc::new(stranger)).is_err());
    let names: Vec<_> =
        toolset.definitions().map(|definition| definition.name.to_string()).collect();
    assert_eq!(names, ["list", "open"]);
    Ended::AsExpected
}

//! The attacks of the guest `hostile` by a command plugin. Its first argument is the attack's name.

#[path = "hostile/blocking.rs"]
mod blocking;
#[path = "hostile/floods.rs"]
mod floods;
#[path = "hostile/handles.rs"]
mod handles;
#[path = "hostile/probes.rs"]
mod probes;
#[path = "hostile/traces.rs"]
mod traces;

use std::io::Write as _;

use cofferdam_test_programs::Content;

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

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let families =
        [blocking::attack, floods::attack, handles::attack, probes::attack, traces::attack];
    let contents = families.iter().find_map(|attack| attack(&name));
    let contents = contents.unwrap_or_else(|| panic!("there is no attack called {name}"));
    let mut stdout = std::io::stdout();
    for content in contents {
        let printed = match content {
            Content::Text(text) | Content::Json(text) => text,
            Content::Blob(blob) => blob.media_type,
            Content::Resource(_) | Content::Link(_) => continue,
        };
        let _ = stdout.write_all(printed.as_bytes());
    }
    let _ = stdout.flush();
}

/// Returns the answer of an attack that returned.
fn text(text: impl Into<String>) -> Option<Vec<Content>> {
    Some(vec![Content::Text(text.into())])
}

//! The attacks as files, with which `cargo xtask platforms --run` attacks binaries that were built
//! for other platforms.

use std::path::{Path, PathBuf};

use cofferdam_engine::Component;
use cofferdam_tests::guest;
use cofferdam_tool::ToolSource as _;
use serde_json::{Value, json};

use super::arena::named;
use super::{Arena, Attack, End, FAMILIES, Launch};

/// Variable with the folder to write to, which `cargo xtask platforms --run` sets.
const FOLDER: &str = "COFFERDAM_HOSTILE_FOLDER";

/// Writes a component for each attack that consists of one call, and `rows.jsonl` with the required
/// ends. Attacks in several steps use interfaces of the library and have no component. Without the
/// variable this test does nothing.
#[tokio::test]
async fn rows() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let arena = Arena::new().await;
    let mut lines = String::new();
    for (family, attacks) in FAMILIES {
        for attack in *attacks {
            let mut row = row(&arena, attack, &folder).await;
            row["family"] = json!(family);
            row["name"] = json!(attack.name);
            lines.push_str(&format!("{row}\n"));
        }
    }
    std::fs::write(folder.join("rows.jsonl"), lines).unwrap();
}

/// Returns the row of an attack, and writes its component.
async fn row(arena: &Arena, attack: &Attack, folder: &Path) -> Value {
    let (name, bytes, call) = match attack.launch {
        Launch::Named => ("hostile", None, Some(("attack", named(attack.name)))),
        Launch::Tool(guest, tool, arguments) => (guest, None, Some((tool, arguments.to_owned()))),
        Launch::Module(module) => (attack.name, Some(module().component()), None),
        Launch::Text(text) => (attack.name, Some(wat::parse_str(text()).unwrap()), None),
        Launch::Bytes(bytes) => (attack.name, Some(bytes()), None),
        Launch::Steps(_) => return json!({}),
    };
    let bytes = bytes.unwrap_or_else(|| std::fs::read(guest(name)).unwrap());
    let component = format!("{name}.wasm");
    std::fs::write(folder.join(&component), &bytes).unwrap();
    let (tool, arguments) = match call {
        Some((tool, arguments)) => (tool.to_owned(), arguments),
        None => (first_tool(arena, bytes).await, "{}".to_owned()),
    };
    json!({ "component": component, "tool": tool, "arguments": arguments, "end": end(attack.end) })
}

/// Returns the name of the first tool of a component, and any name for one that is refused.
async fn first_tool(arena: &Arena, bytes: Vec<u8>) -> String {
    match arena.load(&Component::from_bytes(bytes)).await {
        Ok(plugin) => plugin.definitions()[0].name.to_string(),
        Err(_) => "tool".to_owned(),
    }
}

fn end(end: End) -> Value {
    match end {
        End::Error(error_type) => json!({ "error": error_type }),
        End::Failure => json!("failure"),
        End::Says(text) => json!({ "says": text }),
        End::Succeeds => json!("succeeds"),
        End::Refused(words) => json!({ "refused": words }),
        End::AsExpected => panic!("an attack in steps has no row"),
    }
}

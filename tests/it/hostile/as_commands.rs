//! The attacks by command plugins: programs with a manifest, which know nothing of the host.

use cofferdam_engine::Component;
use cofferdam_engine::manifest::embed_manifest;
use cofferdam_tests::guest;

use super::arena::{Attack, Ended, assert_end, assert_modest, named};
use super::{Arena, End, FAMILIES, Launch};

const MANIFEST: &str = r#"
[tools.attack]
description = "Attacks."
schema = { type = "object", properties = { name = { type = "string" } }, required = ["name"] }
arguments = ["{name}"]
"#;

/// Families and attacks that are about the interface of tools, which a program does not have.
const ABOUT_TOOLS: &[&str] =
    &["amplification through the calling convention", "loop_in_post_return"];

/// Ends that differ from those of a tool: a program has arguments, and its result is what it
/// prints.
const OTHER_ENDS: &[(&str, End)] = &[
    ("environment", End::Says(r#"[] ["attack", "environment"] None"#)),
    ("half_a_million_empty_texts", End::Says("")),
    ("print_a_byte_at_a_time", End::Succeeds),
    ("two_hundred_thousand_numbers", End::Succeeds),
    ("write_more_than_was_allowed", End::Succeeds),
    ("write_sixteen_mebibytes_at_once", End::Error("OutputLimit")),
];

/// Minimum number of attacks.
const ATTACKS_MIN: usize = 45;

#[tokio::test]
async fn attacks_by_commands_end_as_those_by_tools() {
    let file = std::fs::read(guest("hostile_command")).unwrap();
    let hostile = embed_manifest(&file, MANIFEST).unwrap();
    let mut arena = Arena::new().await;
    let mut launched = 0;
    let families = FAMILIES.iter().filter(|(family, _)| !ABOUT_TOOLS.contains(family));
    for attack in families.flat_map(|(_, attacks)| *attacks) {
        if ABOUT_TOOLS.contains(&attack.name) {
            continue;
        }
        let other = OTHER_ENDS.iter().find(|(name, _)| *name == attack.name);
        let attack = Attack { end: other.map_or(attack.end, |(_, end)| *end), ..*attack };
        arena.expect(attack.end);
        let ended = match attack.launch {
            Launch::Named => launch(&arena, hostile.clone(), attack.name).await,
            Launch::Module(module) => match module().program() {
                Some(program) => launch_program(&arena, &program, attack.name).await,
                None => continue,
            },
            _ => continue,
        };
        assert_end(&attack, &ended);
        assert_modest(&ended);
        launched += 1;
    }
    arena.assert_honest().await;
    assert!(launched >= ATTACKS_MIN, "{launched} attacks");
}

async fn launch_program(arena: &Arena, program: &[u8], name: &str) -> Ended {
    match cofferdam_author::wrap(program) {
        Ok(component) => {
            let component = embed_manifest(&component, MANIFEST).unwrap();
            launch(arena, component, name).await
        }
        Err(error) => Ended::Refused(error.to_string()),
    }
}

async fn launch(arena: &Arena, component: Vec<u8>, name: &str) -> Ended {
    arena.call_component(&Component::from_bytes(component), "attack", &named(name)).await
}

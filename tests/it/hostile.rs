//! The hostile suite: a list of all known attacks, each with its required end.
//!
//! An attack is a row of a family. Its test launches it on an engine of its own, compares the end,
//! and then makes an honest call on the same engine, which has to return the right value. Leaks
//! without a crash (memory, descriptors, threads) show in `resources`, which launches a thousand
//! attacks in one process.
//!
//! | form of an attack | used for |
//! |---|---|
//! | tool of the guest `hostile` (`tests/programs/examples/hostile/`) | code of a compiler |
//! | module in the text format (`super::module`) | code that no compiler emits |
//! | bytes | files that are not components |
//!
//! Attacks on grants need grants, stores and servers, and are tests elsewhere: paths, links, quotas
//! and special files in `mounts`, egress in `network`, plugins that change between loads in
//! `cli_grants`.
//!
//! `as_commands` launches the attacks again by command plugins, where they are about code. `export`
//! writes them as files, with which `cargo xtask platforms --run` attacks the binaries of other
//! platforms.
//!
//! A new attack is a new row. A new family is a file and an entry in `FAMILIES`.

mod amplification;
mod arena;
mod as_commands;
mod binaries;
mod blocking;
mod cache;
mod collisions;
mod compiling;
mod cpu;
mod definitions;
mod environment;
mod export;
mod floods;
mod handles;
mod leaks;
mod memory;
mod resources;
mod terminal;
mod text;

use std::collections::BTreeSet;

pub(crate) use arena::{Arena, Attack, End, Ended, Launch};

/// Defines the attacks of a family: the rows, and a test for each.
macro_rules! attacks {
    ($($(#[doc = $goal:literal])+ $name:ident: $launch:expr => $end:expr,)+) => {
        pub(crate) const ATTACKS: &[$crate::hostile::Attack] = &[$($crate::hostile::Attack {
            name: stringify!($name),
            goal: concat!($($goal),+),
            launch: $launch,
            end: $end,
        }),+];
        $(
            #[tokio::test]
            async fn $name() {
                $crate::hostile::arena::check(ATTACKS, stringify!($name)).await;
            }
        )+
    };
}
use attacks;

/// Every family, with its subject.
const FAMILIES: &[(&str, &[Attack])] = &[
    ("CPU loops", cpu::ATTACKS),
    ("blocking host calls", blocking::ATTACKS),
    ("growth of memories, tables, stacks and instances", memory::ATTACKS),
    ("amplification through the calling convention", amplification::ATTACKS),
    ("floods of results, logs and progress", floods::ATTACKS),
    ("invalid strings", text::ATTACKS),
    ("handles: hoards, and those of others", handles::ATTACKS),
    ("files that are not components", binaries::ATTACKS),
    ("false definitions", definitions::ATTACKS),
    ("probes of the environment", environment::ATTACKS),
    ("traces of earlier calls", leaks::ATTACKS),
    ("bombs for the compiler", compiling::ATTACKS),
    ("tampering with compiled code", cache::ATTACKS),
    ("text that drives terminals", terminal::ATTACKS),
    ("names that are taken or look alike", collisions::ATTACKS),
];

/// Minimum number of attacks.
const ATTACKS_MIN: usize = 200;

#[test]
fn no_family_is_empty_and_no_attack_is_there_twice() {
    let mut names = BTreeSet::new();
    for (family, attacks) in FAMILIES {
        assert!(attacks.len() >= 3, "{family}: {} attacks", attacks.len());
        for attack in *attacks {
            assert!(names.insert(attack.name), "two attacks are called {}", attack.name);
            assert!(attack.goal.trim().ends_with('.'), "{} names its goal", attack.name);
        }
    }
    assert!(names.len() >= ATTACKS_MIN, "{} attacks", names.len());
}

//! Rules about this repository that no compiler checks. Each says how much it looked at, so that a rule which looks at
//! nothing fails.

use std::path::{Path, PathBuf};
use std::process::Command;

use cofferdam_tests::root;

/// Longest source file in lines; a uniform catalogue may be longer.
const LINES_MAX: usize = 600;

/// Every file that git tracks or would track.
fn files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git lists the files of this repository");
    let text = String::from_utf8(listed.stdout).unwrap();
    text.lines().map(PathBuf::from).filter(|path| root().join(path).is_file()).collect()
}

fn sources() -> Vec<(PathBuf, String)> {
    let rust = files().into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let read: Vec<_> =
        rust.map(|path| (path.clone(), std::fs::read_to_string(root().join(&path)).unwrap())).collect();
    assert!(read.len() > 50, "only {} source files found", read.len());
    read
}

fn manifest(folder: &str) -> String {
    std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap()
}

#[test]
fn only_the_engine_names_wasmtime() {
    for folder in [
        "host/tool",
        "host/files",
        "host/network",
        "host/agent",
        "host/author",
        "host/cli",
        "tests",
        "xtask",
        "guest-sdk/rust",
    ] {
        assert!(!manifest(folder).contains("wasmtime"), "{folder} depends on wasmtime");
    }
    assert!(manifest("host/engine").contains("wasmtime"));
}

#[test]
fn dependencies_point_one_way() {
    let forbidden = [
        ("host/tool", &["cofferdam-files", "cofferdam-network", "cofferdam-engine", "cap-std", "rustix"][..]),
        ("host/files", &["cofferdam-engine", "cofferdam-network", "clap"]),
        ("host/network", &["cofferdam-engine", "cofferdam-files", "clap"]),
        ("host/engine", &["clap", "axum", "cofferdam-agent", "cofferdam-mcp"]),
        ("host/mcp", &["cofferdam-engine", "cofferdam-files", "clap"]),
        ("host/agent", &["cofferdam-engine", "cofferdam-network", "cofferdam-mcp", "clap"]),
        ("host/author", &["cofferdam-tool", "cofferdam-files", "cofferdam-engine", "clap"]),
        ("guest-sdk/rust", &["cofferdam-tool", "cofferdam-files", "cofferdam-engine"]),
    ];
    for (folder, names) in forbidden {
        let text = manifest(folder);
        for name in names {
            assert!(!text.contains(name), "{folder} must not depend on {name}");
        }
    }
}

#[test]
fn source_files_stay_small() {
    for (path, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines: split it", path.display());
    }
}

#[test]
fn no_test_is_switched_off() {
    for (path, text) in sources() {
        let switched_off = concat!("#[", "ignore");
        assert!(!text.contains(switched_off), "{} switches a test off", path.display());
    }
}

#[test]
fn the_environment_is_read_in_the_binary_alone() {
    let is_test = |path: &Path| {
        let is_below_tests =
            path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "examples");
        is_below_tests
            || path.ends_with("tests.rs")
            || path.ends_with("build.rs")
            || path.starts_with("host/files/src/testing")
            // The child process is told by its arguments what it is.
            || path == Path::new("host/cofferdam/src/compile_child.rs")
    };
    let host = |path: &Path| path.starts_with("host") && !path.starts_with("host/cli") && !is_test(path);
    let mut looked_at = 0;
    for (path, text) in sources().into_iter().filter(|(path, _)| host(path)) {
        looked_at += 1;
        // Examples in documentation are programs.
        let text: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for reading in ["env::var", "env::current_dir", "env::args", "println!"] {
            assert!(!text.contains(reading), "{} uses {reading}", path.display());
        }
    }
    assert!(looked_at > 30, "only {looked_at} files of the host looked at");
}

#[test]
fn every_unsafe_block_is_in_a_place_that_is_listed() {
    // The engine loads machine code and gives pages of its pool back, and the binary those of the allocator; the crash tool breaks rules on purpose.
    let listed = [
        "host/engine/src/engine_pool/code.rs",
        "host/cli/src/memory.rs",
        "tests/support/lib.rs",
        "host/engine/src/scheduler/trim.rs",
        "sample-tools/rust/crash/src/",
        "guest-sdk/rust/src/guest.rs",
        "tests/programs/",
    ];
    for (path, text) in sources() {
        let name = path.display().to_string();
        let uses = text.lines().any(|line| line.contains(concat!("unsafe", " {")));
        assert!(!uses || listed.iter().any(|place| name.starts_with(place)), "{name} uses unsafe code");
    }
}

#[test]
fn no_path_of_a_machine_is_in_the_tree() {
    for path in files() {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        for folder in [concat!("/ro", "ot/."), concat!("/wo", "rk/main"), concat!("/wo", "rk/shared")] {
            assert!(!text.contains(folder), "{} names a folder of a machine: {folder}", path.display());
        }
    }
}

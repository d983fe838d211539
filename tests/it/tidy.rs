//! Rules about this repository that no compiler checks. Each counts what it checks, so that a rule
//! that checks nothing fails.

mod lists;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

use cofferdam_tests::root;

/// Maximum number of lines of a source file; a uniform catalog may be longer.
const LINES_MAX: usize = 650;

/// Lists every file that git tracks or would track.
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
    let rust =
        files().into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let read: Vec<_> = rust
        .map(|path| (path.clone(), std::fs::read_to_string(root().join(&path)).unwrap()))
        .collect();
    assert!(read.len() > 50, "only {} source files found", read.len());
    read
}

/// Returns the folders of all workspace members, with their manifests.
fn members() -> Vec<(String, String)> {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, rest) = workspace.split_once("members = [").unwrap();
    let (list, _) = rest.split_once(']').unwrap();
    let folders = list
        .split(',')
        .map(|entry| entry.trim().trim_matches('"'))
        .filter(|entry| !entry.is_empty());
    let members: Vec<_> = folders
        .map(|folder| {
            let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
            (folder.to_owned(), manifest)
        })
        .collect();
    assert!(members.len() > 10, "only {} members found", members.len());
    members
}

/// Returns the dependencies of a manifest that its crate can name: not those for development, and
/// not those of a build script.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut is_dependency = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            let is_other = ["dev-dependencies", "build-dependencies"];
            is_dependency =
                line.ends_with("dependencies]") && !is_other.iter().any(|name| line.contains(name));
        } else if is_dependency && let Some((key, _)) = line.split_once('=') {
            names.push(key.trim().split('.').next().unwrap());
        }
    }
    names
}

/// Heavy libraries, each with the only members that may depend on it.
#[test]
fn heavy_libraries_are_named_by_few_members() {
    let allowed = [
        ("wasmtime", &["host/author", "host/engine", "xtask/snapshot"][..]),
        ("wasmtime-wizer", &["host/author", "xtask/snapshot"]),
        ("wasmtime-wasi", &["host/engine"]),
        ("rmcp", &["host/mcp", "tests/bench"]),
        ("reqwest", &["host/mcp", "host/models", "host/record", "host/registry"]),
        ("clap", &["host/cli", "xtask", "tests/bench"]),
        ("toml", &["host/cofferdam", "host/author", "host/engine", "xtask"]),
        ("toml_edit", &["host/cofferdam"]),
        ("jsonc-parser", &["host/cofferdam"]),
        ("zip", &["host/cofferdam", "xtask"]),
        ("notify", &["host/cofferdam"]),
        ("keyring", &["host/cofferdam"]),
        ("pyo3", &["host/clients/python-native"]),
        ("async-nats", &["host/cluster"]),
        (
            "anyhow",
            &["host/cli", "xtask", "xtask/snapshot", "tests", "tests/bench", "tests/examples"],
        ),
    ];
    for (library, folders) in allowed {
        let users: Vec<_> = members()
            .into_iter()
            .filter(|(_, manifest)| dependencies(manifest).contains(&library))
            .map(|(folder, _)| folder)
            .collect();
        for user in &users {
            assert!(folders.contains(&user.as_str()), "{user} must not depend on {library}");
        }
        assert!(!users.is_empty(), "nothing depends on {library}");
    }
}

/// The root of a crate exports what most embedders need; everything else is in a module.
#[test]
fn crate_roots_stay_small() {
    for (crate_root, names_max) in [("host/engine/src/lib.rs", 25), ("host/tool/src/lib.rs", 30)] {
        let text = std::fs::read_to_string(root().join(crate_root)).unwrap();
        let exports = text.split("pub use ").skip(1).filter_map(|export| export.split(';').next());
        let names = |export: &str| match export.split_once('{') {
            Some((_, list)) => {
                list.split(',').filter(|name| name.contains(char::is_alphanumeric)).count()
            }
            None => 1,
        };
        let count: usize = exports.map(names).sum();
        assert!(
            (1..=names_max).contains(&count),
            "{crate_root} exports {count} names; at most {names_max}"
        );
    }
}

/// Returns the number of parameters, without `self`, of the function that a string begins with.
fn parameters(function: &str) -> usize {
    let (mut depth, mut count, mut before) = (0_i32, 0, ' ');
    // Begins after the generic parameters.
    let mut parameter: Option<String> = None;
    let mut is_method = false;
    for character in function.chars() {
        match character {
            '(' if depth == 0 && parameter.is_none() => {
                parameter = Some(String::new());
                continue;
            }
            ')' if depth == 0 => break,
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            // Not the end of an arrow.
            '>' if before != '-' && before != '=' => depth -= 1,
            _ => {}
        }
        before = character;
        let Some(parameter) = &mut parameter else { continue };
        if character == ',' && depth == 0 {
            is_method |= parameter.trim().ends_with("self");
            count += 1;
            parameter.clear();
        } else {
            parameter.push(character);
        }
    }
    let last = parameter.unwrap_or_default();
    is_method |= last.trim().ends_with("self");
    count + usize::from(!last.trim().is_empty()) - usize::from(is_method)
}

#[test]
fn public_functions_have_few_parameters() {
    const PARAMETERS_MAX: usize = 4;
    let example = "name<F: Fn(u8)>(&mut self, a: &[(u8, u8)], b: impl Fn(u8) -> u8) -> u8 {";
    assert_eq!((parameters(example), parameters("name()"), parameters("name(a: F,\n)")), (2, 0, 1));
    let (mut checked, mut long) = (0, Vec::new());
    for (path, text) in sources() {
        let is_public =
            path.starts_with("host") && path.components().any(|it| it.as_os_str() == "src");
        if !is_public {
            continue;
        }
        let functions = ["pub fn ", "pub async fn ", "pub const fn "];
        for function in functions.iter().flat_map(|start| text.split(start).skip(1)) {
            checked += 1;
            if parameters(function) > PARAMETERS_MAX {
                let name: String = function.chars().take_while(|it| !"(<".contains(*it)).collect();
                long.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(checked > 1000, "only {checked} functions found");
    assert!(long.is_empty(), "more than {PARAMETERS_MAX} parameters:\n{}", long.join("\n"));
}

/// Each crate may depend only on the crates in its row.
#[test]
fn dependencies_point_one_way() {
    let allowed = [
        ("host/tool", &["tool-macros"][..]),
        ("host/tool/macros", &[]),
        ("host/files", &["tool"]),
        ("host/network", &["tool"]),
        ("host/engine", &["tool", "files", "network"]),
        ("host/mcp", &["tool", "sse"]),
        ("host/cluster", &["tool", "record"]),
        ("host/agent", &["tool", "files"]),
        ("host/models", &["tool", "agent", "sse"]),
        ("host/workflow", &["tool", "files", "agent", "labels"]),
        ("host/labels", &["tool", "agent"]),
        ("host/eval", &["tool", "agent"]),
        ("host/code", &["tool", "files"]),
        ("host/skills", &["tool", "files", "agent"]),
        ("host/record", &["tool"]),
        ("host/inspector", &["tool", "record"]),
        ("host/registry", &["tool"]),
        ("host/author", &[]),
        ("host/sse", &[]),
        ("host/terminal", &["tool"]),
        (
            "host/cofferdam",
            &[
                "tool",
                "files",
                "engine",
                "mcp",
                "agent",
                "models",
                "workflow",
                "labels",
                "skills",
                "record",
                "code",
                "registry",
                "inspector",
                "cluster",
            ],
        ),
        ("guest-sdk/rust", &["sdk-macros"]),
        ("guest-sdk/rust/macros", &[]),
    ];
    // The command line and the modules for other languages are what the facade is for.
    let is_library = |folder: &str| {
        (folder.starts_with("host/") || folder.starts_with("guest-sdk/"))
            && folder != "host/cli"
            && !folder.starts_with("host/clients/")
    };
    for (folder, manifest) in members().into_iter().filter(|(folder, _)| is_library(folder)) {
        let Some((_, allowed)) = allowed.iter().find(|(known, _)| *known == folder) else {
            panic!("{folder} is not in the list: say which crates it may depend on");
        };
        for name in dependencies(&manifest) {
            if let Some(ours) = name.strip_prefix("cofferdam-") {
                assert!(allowed.contains(&ours), "{folder} must not depend on {name}");
            }
            assert!(name != "cofferdam", "{folder} must not depend on the facade");
        }
    }
}

/// Cargo packs only files in the folder of a crate, so crates contain copies of the license and of
/// the plugin interface.
#[test]
fn copies_in_crates_are_equal() {
    let read = |path: &Path| std::fs::read_to_string(root().join(path)).unwrap_or_default();
    let license = read(Path::new("LICENSE"));
    let published = members()
        .into_iter()
        .filter(|(_, manifest)| manifest.lines().any(|line| line == "publish.workspace = true"));
    let mut count = 0;
    for (folder, _) in published {
        count += 1;
        assert!(
            read(&Path::new(&folder).join("LICENSE")) == license,
            "{folder} has no copy of the license: cp LICENSE {folder}"
        );
    }
    assert!(count > 20, "only {count} crates are published");
    for folder in ["host/engine/wit", "guest-sdk/rust/wit"] {
        let interfaces = |folder: &str| {
            let paths = files().into_iter().filter_map(|path| {
                let name = path.strip_prefix(folder).ok()?;
                name.extension().is_some_and(|ending| ending == "wit").then(|| name.to_owned())
            });
            paths.map(|name| (read(&Path::new(folder).join(&name)), name)).collect::<Vec<_>>()
        };
        assert!(
            interfaces(folder) == interfaces("wit"),
            "{folder} is not a copy of wit: cp wit/*.wit {folder}"
        );
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
fn the_environment_is_read_by_the_binary_and_the_facade_only() {
    let is_test = |path: &Path| {
        let is_below_tests = path.components().any(|part| {
            ["tests", "examples", "benches"].iter().any(|name| part.as_os_str() == *name)
        });
        is_below_tests
            || path.ends_with("tests.rs")
            || path.ends_with("build.rs")
            || path.starts_with("host/files/src/testing")
            // Configurations name variables, and the child process is identified by its arguments.
            || path.starts_with("host/cofferdam")
            // TERM names the capabilities of the terminal.
            || path.starts_with("host/terminal")
    };
    let host =
        |path: &Path| path.starts_with("host") && !path.starts_with("host/cli") && !is_test(path);
    let mut looked_at = 0;
    for (path, text) in sources().into_iter().filter(|(path, _)| host(path)) {
        looked_at += 1;
        // Examples in documentation are programs.
        let text: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for reading in ["env::var", "env::current_dir", "env::args", "println!"] {
            assert!(!text.contains(reading), "{} uses {reading}", path.display());
        }
    }
    assert!(looked_at > 30, "only {looked_at} files of the host looked at");
}

#[test]
fn every_unsafe_block_is_in_a_listed_file() {
    // The engine loads machine code, releases pages of its pool and calls Windows and macOS, the
    // binary releases pages of the allocator, the interpreter of JavaScript calls QuickJS, and the
    // crash tool breaks rules on purpose.
    let listed = [
        "host/engine/src/engine_pool/code.rs",
        "host/cli/src/memory.rs",
        "tests/support/lib.rs",
        "host/engine/src/scheduler/trim.rs",
        "host/engine/src/sys/macos.rs",
        "host/engine/src/sys/windows",
        "sample-tools/rust/crash/src/",
        "guest-sdk/rust/src/guest.rs",
        "guest-sdk/code/javascript/src/",
        "tests/programs/",
    ];
    for (path, text) in sources() {
        let name = path.display().to_string();
        let uses = text.lines().any(|line| line.contains(concat!("unsafe", " {")));
        assert!(
            !uses || listed.iter().any(|file| name.starts_with(file)),
            "{name} uses unsafe code"
        );
    }
}

#[test]
fn no_path_of_a_machine_is_in_the_tree() {
    for path in files() {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        for folder in
            [concat!("/ro", "ot/."), concat!("/wo", "rk/main"), concat!("/wo", "rk/shared")]
        {
            assert!(
                !text.contains(folder),
                "{} names a folder of a machine: {folder}",
                path.display()
            );
        }
    }
}

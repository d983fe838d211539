//! Zig: its own compiler, which contains a C library for WASI.
//!
//! One command compiles the project with both SDKs, since that of Zig is written over that of C,
//! and links a core module that is a reactor. The linker drops unused code, so that a component
//! imports only what its tools use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{BuildError, MissingTool, Project, Steps, component};

/// Version series that the SDK is written for. Zig changes its language and its library in each.
const SERIES: &str = "0.17.";
/// Version in the advice for users without a compiler.
const TESTED: &str = "0.17.1";
/// Programs that are Zig, with their first arguments: that of the Zig project, and those of the
/// Python package.
const PROGRAMS: [&[&str]; 3] = [&["zig"], &["python-zig"], &["python3", "-m", "ziglang"]];
/// Main files that are looked for, in order.
const ENTRIES: [&str; 2] = ["main.zig", "src/main.zig"];
/// Options of every build. Checks of overflow and bounds end a call; without them, it would go on
/// with wrong values.
const OPTIONS: [&str; 10] = [
    "-target",
    "wasm32-wasi",
    "-mexec-model=reactor",
    "-fno-entry",
    "-rdynamic",
    "--gc-sections",
    "-lc",
    "-OReleaseSafe",
    "-fno-sanitize-c",
    "-fno-error-tracing",
];
/// Maximum size of the stack in bytes, as in C.
const STACK_BYTES: &str = "1048576";

/// Builds the component of a project.
pub(crate) fn build(project: &Project, steps: &Steps<'_>) -> Result<Vec<u8>, BuildError> {
    let (program, _) = find()?;
    let sdk = project.sdk()?;
    let work = project.work()?;
    let module = work.join("module.wasm");
    let mut zig = command(program);
    zig.current_dir(project.directory())
        .arg("build-exe")
        .args(OPTIONS)
        .args(["--stack", STACK_BYTES])
        .arg("--cache-dir")
        .arg(work.join("zig"))
        .arg(format!("-femit-bin={}", module.display()))
        .args(&project.build().flags)
        .args(["-cflags", "-std=gnu17", "-ffunction-sections", "-fdata-sections", "--"])
        .args(c_sources(&sdk)?)
        .args(["--dep", "cofferdam"])
        .arg(format!("-Mroot={}", entry(project)?.display()))
        .arg(format!("-Mcofferdam={}", sdk.join("zig/cofferdam.zig").display()));
    steps.run("zig build-exe", &mut zig)?;
    component::from_core_module(
        &fs::read(&module).map_err(|error| BuildError::read(&module, error))?,
    )
}

/// Finds a compiler with a supported version, and returns its program and its version.
pub(crate) fn find() -> Result<(&'static [&'static str], String), MissingTool> {
    let mut others = Vec::new();
    for program in PROGRAMS {
        match version(program) {
            Some(version) if version.starts_with(SERIES) => return Ok((program, version)),
            Some(version) => others.push(format!("{}, which is `{version}`", program.join(" "))),
            None => {}
        }
    }
    let looked_for = if others.is_empty() {
        "zig and python-zig on the PATH, and `python3 -m ziglang`".to_owned()
    } else {
        others.join(", ")
    };
    Err(MissingTool {
        tool: format!("the Zig compiler, {SERIES}x"),
        looked_for,
        install: vec![
            format!("pip install ziglang=={TESTED}   # in a virtual environment that is active"),
            format!(
                "download {TESTED} from https://ziglang.org/download and add its folder to the PATH"
            ),
        ],
    })
}

fn version(program: &[&str]) -> Option<String> {
    let output = command(program).arg("version").stdin(Stdio::null()).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !version.is_empty()).then_some(version)
}

fn command(program: &[&str]) -> Command {
    let mut words = program.iter();
    let mut command = Command::new(words.next().unwrap_or(&"zig"));
    command.args(words);
    command
}

/// Returns the main file of the project, relative to its directory.
fn entry(project: &Project) -> Result<PathBuf, BuildError> {
    if let Some(entry) = &project.build().entry {
        return Ok(entry.clone());
    }
    let is_there = |file: &&str| project.directory().join(file).is_file();
    ENTRIES.into_iter().find(is_there).map(PathBuf::from).ok_or_else(|| {
        BuildError::Project(format!(
            "there is no {}; `[build] entry` in plugin.toml names the file with the tools if it is elsewhere",
            ENTRIES.join(" and no ")
        ))
    })
}

/// Returns the sources of the C SDK, which is beside that of Zig.
fn c_sources(sdk: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let folder = sdk.join("c");
    let entries = folder
        .read_dir()
        .map_err(|_| BuildError::NoSdk { looked_for: folder.join("cofferdam.c") })?;
    let mut sources: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .collect();
    sources.sort();
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::{SERIES, TESTED, version};

    #[test]
    fn the_tested_version_is_one_of_the_series() {
        assert!(TESTED.starts_with(SERIES));
    }

    #[test]
    fn a_program_that_is_not_there_has_no_version() {
        assert_eq!(version(&["no-such-zig"]), None);
    }
}

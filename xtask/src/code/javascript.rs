//! The interpreter of JavaScript: a guest in Rust around QuickJS, which is in C.
//!
//! The C is compiled with clang and the C library of WASI, or with Zig. Of two components that cargo
//! and `cofferdam-snapshot` write, the second one has the engine already started in its memory.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::guests::{self, BUILD_DIR, TARGET, copy_if_changed};
use crate::packages::text;
use crate::run::{Step, cargo_in, command, root, section};
use crate::toolchains::{CLANG, Toolchain, in_venv};

const FOLDER: &str = "guest-sdk/code/javascript";
/// Included before each source of QuickJS.
const HEADER: &str = "guest-sdk/code/javascript/quickjs_config.h";
/// Warnings in QuickJS are not ours.
const WARNINGS: &str = "-Wno-everything";

/// Compiler of C for WebAssembly.
enum Compiler {
    Clang,
    Zig,
}

impl Compiler {
    fn find() -> anyhow::Result<Option<Self>> {
        if !Toolchain::Clang.is_installed() && Toolchain::Zig.is_installed() {
            return Ok(Some(Self::Zig));
        }
        Ok(Toolchain::Clang.is_ready()?.then_some(Self::Clang))
    }

    /// Returns the variables by which cargo's build scripts find the compiler.
    fn variables(&self) -> anyhow::Result<[(&'static str, String); 4]> {
        let header = root().join(HEADER);
        // Cargo compiles QuickJS again if the variables change, but not if the header does.
        let mut hasher = DefaultHasher::new();
        fs::read(&header).with_context(|| format!("cannot read {HEADER}"))?.hash(&mut hasher);
        let digest = hasher.finish();
        let include =
            format!("-include {} -DCONFIG_DIGEST=0x{digest:x} {WARNINGS}", text(&header)?);
        let (program, options) = match self {
            Self::Clang => (CLANG.to_owned(), format!("--target=wasm32-wasi {include}")),
            Self::Zig => (
                format!("{} cc", text(&in_venv("python-zig"))?),
                format!("-target wasm32-wasi -fno-sanitize=all {include}"),
            ),
        };
        Ok([
            // Without it, the build script of QuickJS downloads a compiler.
            ("RQUICKJS_SYS_NO_WASI_SDK", "1".to_owned()),
            ("CC_wasm32_wasip2", program),
            ("CFLAGS_wasm32_wasip2", options),
            ("AR_wasm32_wasip2", "ar".to_owned()),
        ])
    }

    /// Returns a step that runs cargo for WebAssembly.
    fn cargo(&self, arguments: &[&str]) -> anyhow::Result<Step> {
        let step =
            command("cargo", arguments).env("CARGO_TARGET_DIR", text(&root().join(BUILD_DIR))?);
        Ok(self.variables()?.iter().fold(step, |step, (name, value)| step.env(name, value)))
    }
}

/// Builds the component.
pub(super) fn build() -> anyhow::Result<()> {
    let Some(compiler) = Compiler::find()? else { return Ok(()) };
    section(&format!("building the interpreter in {FOLDER}"));
    guests::add_target()?;
    compiler
        .cargo(&["build", "--release", "--locked", "--target", TARGET, "--lib"])?
        .run(&root().join(FOLDER))?;
    let started = root().join(BUILD_DIR).join(TARGET).join("release/javascript.wasm");
    let component = super::component("javascript")?;
    let stamp = component.with_extension("stamp");
    let inputs = inputs(&started)?;
    if component.is_file() && fs::read_to_string(&stamp).is_ok_and(|built| built == inputs) {
        return Ok(());
    }
    section("taking the snapshot of the interpreter");
    let snapshot = component.with_extension("snapshot.wasm");
    command(text(&program())?, &[text(&started)?, text(&snapshot)?])
        .called("cofferdam-snapshot")
        .run(&root())?;
    copy_if_changed(&snapshot, &component)?;
    fs::remove_file(&snapshot).context("cannot remove the snapshot")?;
    fs::write(&stamp, inputs).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Returns the path of the program that takes snapshots, which is built with the host.
fn program() -> std::path::PathBuf {
    root().join("target/debug/cofferdam-snapshot")
}

/// Returns what determines the snapshot: the component that it is taken of.
fn inputs(started: &Path) -> anyhow::Result<String> {
    let output = Command::new("git")
        .args(["hash-object", "--no-filters"])
        .args([started, &root().join("xtask/snapshot/src/main.rs")])
        .arg(root().join("xtask/snapshot/src/state.rs"))
        .output()
        .context("cannot run git")?;
    String::from_utf8(output.stdout).context("git writes text")
}

/// Checks format and code with the options of the build, so that dependencies are compiled once.
pub(super) fn lint() -> anyhow::Result<()> {
    cargo_in(FOLDER, &["fmt", "--all", "--check"])?;
    let Some(compiler) = Compiler::find()? else { return Ok(()) };
    compiler
        .cargo(&["clippy", "--release", "--target", TARGET, "--", "--deny", "warnings"])?
        .run(&root().join(FOLDER))
}

/// Runs the native tests.
pub(super) fn test() -> anyhow::Result<()> {
    section("testing the interpreter of JavaScript natively");
    command("cargo", &["test", "--quiet"])
        .env("CARGO_TARGET_DIR", text(&root().join(BUILD_DIR))?)
        .run(&root().join(FOLDER))
}

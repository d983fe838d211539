//! Checks the host for platforms other than this one, and runs it where this machine can.
//!
//! A separate command, because it compiles all dependencies once per target: minutes each, on
//! a machine without them. CI of the repository does not run it; the workflow
//! `.github/workflows/platforms.yml` builds and tests on the systems themselves.

mod comparison;
mod hostile;
mod wine;

use std::path::PathBuf;

use anyhow::{Context as _, bail};

use self::comparison::HostProgram;
use crate::packages::text;
use crate::run::{Step, cargo, command, root, section, target_folder};
use crate::{guests, toolchains};

/// Python packages: a C compiler for every target, and the program that makes cargo use it.
const ZIG_PACKAGES: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.0"];
/// Packages of Debian: C compilers for Windows, musl and aarch64, and what runs their programs.
const DEBIAN_PACKAGES: [&str; 8] = [
    "gcc-mingw-w64-x86-64-posix",
    "g++-mingw-w64-x86-64-posix",
    "gcc-aarch64-linux-gnu",
    "g++-aarch64-linux-gnu",
    "musl-tools",
    "wine",
    "wine64",
    "qemu-user-static",
];
/// Programs of [`DEBIAN_PACKAGES`].
const DEBIAN_PROGRAMS: [&str; 5] = [
    "x86_64-w64-mingw32-g++-posix",
    "aarch64-linux-gnu-g++",
    "musl-gcc",
    "wine",
    "qemu-aarch64-static",
];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Check only this target; may be given more than once
    #[arg(long = "target", value_name = "TARGET")]
    targets: Vec<String>,
    /// Build and run the host too: for Windows under Wine, for musl, and for aarch64 under qemu
    #[arg(long)]
    run: bool,
}

/// A platform.
struct Platform {
    target: &'static str,
    compiler: CompilerFamily,
    emulator: Emulator,
}

/// Kind of C compiler and linker for a target.
#[derive(Clone, Copy)]
enum CompilerFamily {
    /// GNU tools with this prefix and ending of their names.
    Gnu { prefix: &'static str, ending: &'static str },
    /// Zig, which can link for macOS.
    Zig,
}

/// Means to run programs of a platform on this machine.
#[derive(Clone, Copy)]
enum Emulator {
    /// Runs them directly.
    Native,
    Wine,
    /// Runs only commands that start no process, because the kernel cannot execute the program.
    Qemu,
    /// Cannot run them.
    None,
}

const PLATFORMS: [Platform; 6] = [
    Platform {
        target: "x86_64-pc-windows-gnu",
        compiler: CompilerFamily::Gnu { prefix: "x86_64-w64-mingw32-", ending: "-posix" },
        emulator: Emulator::Wine,
    },
    Platform {
        target: "x86_64-unknown-linux-musl",
        compiler: CompilerFamily::Gnu { prefix: "musl-", ending: "" },
        emulator: Emulator::Native,
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        compiler: CompilerFamily::Gnu { prefix: "aarch64-linux-gnu-", ending: "" },
        emulator: Emulator::Qemu,
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        compiler: CompilerFamily::Zig,
        emulator: Emulator::None,
    },
    Platform {
        target: "aarch64-apple-darwin",
        compiler: CompilerFamily::Zig,
        emulator: Emulator::None,
    },
    Platform {
        target: "x86_64-apple-darwin",
        compiler: CompilerFamily::Zig,
        emulator: Emulator::None,
    },
];

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let known = PLATFORMS.map(|platform| platform.target);
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("unknown target `{unknown}`; expected one of {}", known.join(", "));
    }
    require_debian_packages()?;
    section(&format!("installing {} into target/languages", ZIG_PACKAGES.join(" and ")));
    ZIG_PACKAGES.into_iter().try_for_each(toolchains::pip_install)?;
    if options.run {
        guests::build()?;
        section("building the host and the tests for this machine");
        cargo(&["build", "--workspace", "--bins", "--tests"])?;
        hostile::export()?;
        let here = target_folder().join("debug/cofferdam");
        hostile::attack(&HostProgram::new(&[text(&here)?]), "this machine")?;
    }
    for platform in PLATFORMS {
        if options.targets.is_empty() || options.targets.iter().any(|name| name == platform.target)
        {
            platform.check(options.run)?;
        }
    }
    Ok(())
}

impl Platform {
    fn check(&self, is_run: bool) -> anyhow::Result<()> {
        section(&format!("checking {}", self.target));
        command("rustup", &["target", "add", self.target]).run(&root())?;
        self.cargo("clippy", &["--", "--deny", "warnings"])?.run(&root())?;
        if !is_run || matches!(self.emulator, Emulator::None) {
            return Ok(());
        }
        section(&format!("running {}", self.target));
        self.cargo("build", &[])?.run(&root())?;
        let program = text(&self.program())?.to_owned();
        match self.emulator {
            Emulator::None => Ok(()),
            Emulator::Native => self.compare(&HostProgram::new(&[&program])),
            Emulator::Wine => self.compare(&wine::host(&self.program())?),
            Emulator::Qemu => comparison::check_version(&HostProgram::new(&[
                "qemu-aarch64-static",
                "-L",
                "/usr/aarch64-linux-gnu",
                &program,
            ])),
        }
    }

    /// Compares commands and attacks with their ends on this machine.
    fn compare(&self, host: &HostProgram) -> anyhow::Result<()> {
        comparison::compare(host)?;
        hostile::attack(host, self.target)
    }

    /// Returns a cargo command for the package of the binary.
    fn cargo(&self, subcommand: &str, last: &[&str]) -> anyhow::Result<Step> {
        let first = [subcommand, "--package", "cofferdam-cli", "--target", self.target];
        let arguments = [&first, last].concat();
        let CompilerFamily::Gnu { prefix, ending } = self.compiler else {
            let path = toolchains::path();
            let path = path.to_str().context("the PATH is not UTF-8")?;
            // Its subcommands other than `zigbuild` are those of cargo.
            let program = text(&toolchains::in_venv("cargo-zigbuild"))?.to_owned();
            return Ok(command(&program, &arguments).env("PATH", path));
        };
        let name = self.target.replace('-', "_");
        let compiler = format!("{prefix}gcc{ending}");
        let step = command("cargo", &arguments).env(&format!("CC_{name}"), &compiler);
        if self.target.ends_with("musl") {
            // Rust brings its own musl. `musl-gcc` as the linker adds a second start of the program,
            // which crashes. There is no C++ compiler for musl, and no C++ in the dependencies.
            return Ok(step);
        }
        Ok(step
            .env(&format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), &compiler)
            .env(&format!("CXX_{name}"), &format!("{prefix}g++{ending}")))
    }

    fn program(&self) -> PathBuf {
        let name = if self.target.contains("windows") { "cofferdam.exe" } else { "cofferdam" };
        target_folder().join(self.target).join("debug").join(name)
    }
}

/// Checks that the programs of [`DEBIAN_PACKAGES`] are installed; CI installs them.
fn require_debian_packages() -> anyhow::Result<()> {
    if DEBIAN_PROGRAMS.iter().all(|name| toolchains::has_program(name)) {
        return Ok(());
    }
    if !crate::run::is_ci() {
        bail!("programs are missing; run: apt-get install {}", DEBIAN_PACKAGES.join(" "));
    }
    section("installing compilers and emulators");
    toolchains::apt_install(&DEBIAN_PACKAGES)
}

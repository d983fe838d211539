//! Platforms that packages are made for, and their names in each kind of package.

use std::fmt;
use std::process::Command;
use std::str::FromStr;

use anyhow::Context;

use super::linkage::Linkage;

/// Lowest version of glibc that a tag of a wheel can name for all installers in use.
const GLIBC_MIN: (u32, u32) = (2, 17);

/// Platform of a binary, by its Rust target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Platform {
    arch: Arch,
    system: System,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arch {
    X64,
    Arm64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    LinuxGnu,
    LinuxMusl,
    MacOs,
    WindowsGnu,
    WindowsMsvc,
}

/// Names of architectures in Rust targets.
const ARCHES: [(&str, Arch); 2] = [("x86_64", Arch::X64), ("aarch64", Arch::Arm64)];

/// Rest of Rust targets.
const SYSTEMS: [(&str, System); 5] = [
    ("unknown-linux-gnu", System::LinuxGnu),
    ("unknown-linux-musl", System::LinuxMusl),
    ("apple-darwin", System::MacOs),
    ("pc-windows-gnu", System::WindowsGnu),
    ("pc-windows-msvc", System::WindowsMsvc),
];

impl FromStr for Platform {
    type Err = String;

    fn from_str(triple: &str) -> Result<Self, String> {
        let found = triple.split_once('-').and_then(|(arch, system)| {
            let (_, arch) = ARCHES.into_iter().find(|(name, _)| *name == arch)?;
            let (_, system) = SYSTEMS.into_iter().find(|(name, _)| *name == system)?;
            Some(Self { arch, system })
        });
        found.ok_or_else(|| {
            let arches = ARCHES.map(|(name, _)| name).join(", ");
            let systems = SYSTEMS.map(|(name, _)| name).join(", ");
            format!("unknown target `{triple}`; known: one of {arches} with one of {systems}")
        })
    }
}

impl Platform {
    /// Returns the platform that the installed toolchain builds for by itself.
    pub(super) fn of_this_machine() -> anyhow::Result<Self> {
        let said = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
        let said = String::from_utf8(said.stdout)?;
        let host = said.lines().find_map(|line| line.strip_prefix("host: "));
        host.context("`rustc -vV` does not name its host")?.parse().map_err(anyhow::Error::msg)
    }

    /// Returns the Rust target.
    pub(super) fn triple(&self) -> String {
        let arch = ARCHES.into_iter().find(|(_, arch)| *arch == self.arch);
        let system = SYSTEMS.into_iter().find(|(_, system)| *system == self.system);
        let name = |found: Option<&'static str>| found.unwrap_or_default();
        format!("{}-{}", name(arch.map(|(name, _)| name)), name(system.map(|(name, _)| name)))
    }

    /// Returns the file name of the program.
    pub(super) fn executable(&self) -> &'static str {
        match self.is_windows() {
            true => "cofferdam.exe",
            false => "cofferdam",
        }
    }

    /// Returns the file name of a module of Python in its stable ABI.
    pub(super) fn python_module(&self, name: &str) -> String {
        match self.is_windows() {
            true => format!("{name}.pyd"),
            false => format!("{name}.abi3.so"),
        }
    }

    /// Returns whether this machine can run the program.
    pub(super) fn runs_here(&self) -> bool {
        let arch = match self.arch {
            Arch::X64 => cfg!(target_arch = "x86_64"),
            Arch::Arm64 => cfg!(target_arch = "aarch64"),
        };
        let system = match self.system {
            System::LinuxGnu => cfg!(all(target_os = "linux", target_env = "gnu")),
            System::LinuxMusl => cfg!(target_os = "linux"),
            System::MacOs => cfg!(target_os = "macos"),
            System::WindowsGnu | System::WindowsMsvc => cfg!(windows),
        };
        arch && system
    }

    pub(super) fn is_linux(&self) -> bool {
        matches!(self.system, System::LinuxGnu | System::LinuxMusl)
    }

    pub(super) fn is_static(&self) -> bool {
        self.system == System::LinuxMusl
    }

    pub(super) fn is_windows(&self) -> bool {
        matches!(self.system, System::WindowsGnu | System::WindowsMsvc)
    }

    /// Returns whether a release gets a Debian package of this platform's binary: that for glibc,
    /// or the static one if the release has no other for the processor.
    pub(super) fn has_deb<'a>(&self, mut release: impl Iterator<Item = &'a Self>) -> bool {
        let gnu = Self { arch: self.arch, system: System::LinuxGnu };
        self.is_linux() && (*self == gnu || !release.any(|platform| *platform == gnu))
    }

    /// Returns the platform tag of a wheel.
    pub(super) fn wheel_tag(&self, linkage: &Linkage) -> String {
        let linux = match self.arch {
            Arch::X64 => "x86_64",
            Arch::Arm64 => "aarch64",
        };
        match (self.system, self.arch) {
            (System::LinuxGnu, _) => {
                let (major, minor) = linkage.glibc.unwrap_or(GLIBC_MIN).max(GLIBC_MIN);
                format!("manylinux_{major}_{minor}_{linux}")
            }
            (System::LinuxMusl, _) => format!("musllinux_1_2_{linux}"),
            // The lowest versions that the standard library supports.
            (System::MacOs, Arch::X64) => "macosx_10_12_x86_64".to_owned(),
            (System::MacOs, Arch::Arm64) => "macosx_11_0_arm64".to_owned(),
            (System::WindowsGnu | System::WindowsMsvc, Arch::X64) => "win_amd64".to_owned(),
            (System::WindowsGnu | System::WindowsMsvc, Arch::Arm64) => "win_arm64".to_owned(),
        }
    }

    /// Returns the names of system, processor and C library in npm.
    pub(super) fn npm(&self) -> NpmPlatform {
        let (os, libc) = match self.system {
            System::LinuxGnu => ("linux", Some("glibc")),
            System::LinuxMusl => ("linux", Some("musl")),
            System::MacOs => ("darwin", None),
            System::WindowsGnu | System::WindowsMsvc => ("win32", None),
        };
        let cpu = match self.arch {
            Arch::X64 => "x64",
            Arch::Arm64 => "arm64",
        };
        NpmPlatform { os, cpu, libc }
    }

    /// Returns the name of the processor in Debian, which is also that of container images.
    pub(super) fn debian_arch(&self) -> &'static str {
        match self.arch {
            Arch::X64 => "amd64",
            Arch::Arm64 => "arm64",
        }
    }
}

/// Names of a platform in npm.
pub(super) struct NpmPlatform {
    pub(super) os: &'static str,
    pub(super) cpu: &'static str,
    pub(super) libc: Option<&'static str>,
}

impl fmt::Display for NpmPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.os, self.cpu)?;
        self.libc.map_or(Ok(()), |libc| write!(f, "-{libc}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed_and_shown() {
        for triple in ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"]
        {
            assert_eq!(triple.parse::<Platform>().unwrap().triple(), triple);
        }
        let refused = "riscv64-unknown-linux-gnu".parse::<Platform>().unwrap_err();
        assert!(refused.starts_with("unknown target `riscv64-unknown-linux-gnu`; known: one of"));
    }

    #[test]
    fn wheels_are_tagged_with_the_glibc_that_the_binary_asks_for() {
        let gnu: Platform = "x86_64-unknown-linux-gnu".parse().unwrap();
        let tag = |glibc| gnu.wheel_tag(&Linkage { glibc, ..Linkage::default() });
        assert_eq!(tag(Some((2, 34))), "manylinux_2_34_x86_64");
        assert_eq!(tag(Some((2, 5))), "manylinux_2_17_x86_64");
        let musl: Platform = "aarch64-unknown-linux-musl".parse().unwrap();
        assert_eq!(musl.wheel_tag(&Linkage::default()), "musllinux_1_2_aarch64");
    }

    #[test]
    fn a_static_binary_is_the_deb_only_without_one_for_glibc() {
        let [gnu, musl]: [Platform; 2] = ["x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"]
            .map(|triple| triple.parse().unwrap());
        assert!(gnu.has_deb([&gnu, &musl].into_iter()));
        assert!(!musl.has_deb([&gnu, &musl].into_iter()));
        assert!(musl.has_deb([&musl].into_iter()));
    }
}

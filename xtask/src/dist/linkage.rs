//! Libraries that a binary for Linux asks for, read from its dynamic section.

use anyhow::Context;
use object::elf::{DT_NEEDED, ET_DYN, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, SectionHeader as _};
use object::{Endianness, elf};

/// Libraries of a binary.
#[derive(Debug, Default)]
pub(super) struct Linkage {
    /// Names of the libraries.
    pub(super) libraries: Vec<String>,
    /// Highest version of glibc that a symbol asks for.
    pub(super) glibc: Option<(u32, u32)>,
    /// Tells whether the system can load the program at a random address.
    pub(super) is_position_independent: bool,
}

impl Linkage {
    /// Reads the libraries of an ELF binary.
    pub(super) fn read(binary: &[u8]) -> anyhow::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(binary).context("not a 64-bit ELF file")?;
        let endian = header.endian()?;
        let sections = header.sections(endian, binary)?;
        let mut linkage =
            Self { is_position_independent: header.e_type(endian) == ET_DYN, ..Self::default() };
        if let Some((entries, link)) = sections.dynamic(endian, binary)? {
            let strings = sections.strings(endian, binary, link)?;
            for entry in entries {
                if entry.tag(endian) == DT_NEEDED {
                    let name = entry.string(endian, strings)?;
                    linkage.libraries.push(String::from_utf8(name.to_vec())?);
                }
            }
        }
        for section in sections.iter() {
            if section.sh_type(endian) == elf::SHT_GNU_VERNEED {
                linkage.glibc = linkage.glibc.max(highest_glibc(endian, &sections, binary)?);
            }
        }
        Ok(linkage)
    }

    /// Returns whether the program needs no library.
    pub(super) fn is_static(&self) -> bool {
        self.libraries.is_empty()
    }
}

/// Returns the highest version of glibc in the versions that the binary needs.
fn highest_glibc(
    endian: Endianness,
    sections: &object::read::elf::SectionTable<'_, FileHeader64<Endianness>>,
    binary: &[u8],
) -> anyhow::Result<Option<(u32, u32)>> {
    let mut highest = None;
    let Some((mut needs, link)) = sections.gnu_verneed(endian, binary)? else { return Ok(None) };
    let strings = sections.strings(endian, binary, link)?;
    while let Some((_, mut versions)) = needs.next()? {
        while let Some(version) = versions.next()? {
            let name = version.name(endian, strings)?;
            highest = highest.max(glibc_version(&String::from_utf8_lossy(name)));
        }
    }
    Ok(highest)
}

/// Returns the version in the name of a symbol version of glibc, such as `GLIBC_2.34`.
fn glibc_version(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbol_versions_are_parsed() {
        assert_eq!(glibc_version("GLIBC_2.34"), Some((2, 34)));
        assert_eq!(glibc_version("GLIBC_2.2.5"), Some((2, 2)));
        assert_eq!(glibc_version("GLIBC_PRIVATE"), None);
        assert_eq!(glibc_version("GCC_3.0"), None);
    }

    /// The test itself is a binary that links glibc.
    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn the_libraries_of_a_binary_are_read() {
        let binary = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let linkage = Linkage::read(&binary).unwrap();
        assert!(linkage.libraries.iter().any(|name| name == "libc.so.6"), "{linkage:?}");
        assert!(linkage.glibc >= Some((2, 17)), "{linkage:?}");
        assert!(linkage.is_position_independent);
        assert!(Linkage::read(b"#!/bin/sh").is_err());
    }
}

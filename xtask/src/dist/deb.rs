//! Debian packages, written without Debian's tools, so that every machine makes the same bytes.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use super::contents::{Contents, NOTICES, Shell};
use super::files::{FileTree, gzip};
use super::{Artifact, ArtifactKind, Binary, SUMMARY, VERSION};

/// Maintainer of the package. The project has no address; reports go to its repository.
const MAINTAINER: &str = "The Cofferdam authors <noreply@cofferdam.invalid>";
/// Date of the changelog entry, which is that of all files.
const DATE: &str = "Sat, 26 Oct 1985 08:15:00 +0000";
/// Line in LICENSE after which the exception follows.
const EXCEPTION: &str = "--- LLVM Exceptions to the Apache 2.0 License ----";
/// Magic number of ar archives.
const AR: &[u8] = b"!<arch>\n";

/// Writes the Debian package of a platform.
pub(super) fn write(
    folder: &Path,
    binary: &Binary,
    contents: &Contents,
) -> anyhow::Result<Artifact> {
    let data = data_files(binary, contents)?;
    let mut control = FileTree::default();
    control.add("control", control_file(binary, &data)?);
    let arch = binary.platform.debian_arch();
    let path = folder.join(format!("cofferdam_{VERSION}_{arch}.deb"));
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", control.tar_gz("./")?),
        ("data.tar.gz", data.tar_gz("./")?),
    ];
    fs::write(&path, ar(&members))?;
    Ok(Artifact { kind: ArtifactKind::Deb, platform: binary.platform.clone(), path })
}

/// Returns the files that the package installs.
fn data_files(binary: &Binary, contents: &Contents) -> anyhow::Result<FileTree> {
    let mut files = FileTree::default();
    files.add_program("usr/bin/cofferdam", &*binary.bytes);
    for (page, text) in &contents.manual {
        files.add(format!("usr/share/man/man1/{page}.gz"), gzip(text)?);
    }
    for (shell, script) in &contents.completions {
        let path = match shell {
            Shell::Bash => "bash-completion/completions/cofferdam",
            Shell::Zsh => "zsh/vendor-completions/_cofferdam",
            Shell::Fish => "fish/vendor_completions.d/cofferdam.fish",
            Shell::Power => continue,
        };
        files.add(format!("usr/share/{path}"), &**script);
    }
    let documents = "usr/share/doc/cofferdam";
    files.add(format!("{documents}/copyright"), copyright(&contents.license)?);
    files.add(format!("{documents}/changelog.gz"), gzip(changelog().as_bytes())?);
    files.add(format!("{documents}/CHANGELOG.md.gz"), gzip(&contents.changelog)?);
    files.add(format!("{documents}/{NOTICES}.gz"), gzip(contents.notices.as_bytes())?);
    Ok(files)
}

/// Returns the description of the package.
fn control_file(binary: &Binary, data: &FileTree) -> anyhow::Result<String> {
    let bytes: usize = data.iter().map(|(_, file)| file.bytes.len()).sum();
    let depends = match dependencies(binary)? {
        none if none.is_empty() => String::new(),
        packages => format!("Depends: {}\n", packages.join(", ")),
    };
    Ok(format!(
        "Package: cofferdam\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: \
         {MAINTAINER}\nInstalled-Size: {}\n{depends}Section: utils\nPriority: \
         optional\nDescription: {}\n Cofferdam runs plugins for AI tools as WebAssembly components. \
         Each call gets\n a fresh sandbox with limits. A plugin has no files, no network and no\n \
         environment until the operator grants them. It serves the tools over MCP.\n",
        binary.platform.debian_arch(),
        bytes.div_ceil(1024),
        uncapitalized(SUMMARY),
    ))
}

/// Returns a sentence as Debian wants synopses.
fn uncapitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// Returns the Debian packages of the libraries that the binary asks for.
fn dependencies(binary: &Binary) -> anyhow::Result<Vec<String>> {
    let mut packages = Vec::new();
    for library in &binary.linkage.libraries {
        let package = match library.split('.').next().unwrap_or_default() {
            "libc" | "libm" | "libpthread" | "libdl" | "librt" | "ld-linux-x86-64"
            | "ld-linux-aarch64" => {
                let (major, minor) =
                    binary.linkage.glibc.context("the binary asks for no version of glibc")?;
                format!("libc6 (>= {major}.{minor})")
            }
            "libgcc_s" => "libgcc-s1".to_owned(),
            _ => bail!("{library} is in no known Debian package; name it in xtask/src/dist/deb.rs"),
        };
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    Ok(packages)
}

/// Returns the copyright file. Debian has the text of Apache-2.0, but not that of the exception.
fn copyright(license: &[u8]) -> anyhow::Result<String> {
    let license = std::str::from_utf8(license).context("LICENSE is not UTF-8")?;
    let (_, exception) =
        license.split_once(EXCEPTION).context("LICENSE has no exception to Apache-2.0")?;
    let exception: String = exception
        .trim()
        .lines()
        .map(|line| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: Cofferdam\nComment: The licences of the crates in the binary are in \
         {NOTICES}.gz.\n\nFiles: *\nCopyright: The Cofferdam authors\nLicense: Apache-2.0 with \
         LLVM exception\n The text of Apache-2.0 is in /usr/share/common-licenses/Apache-2.0. The \
         exception:\n .\n{exception}"
    ))
}

/// Returns the changelog in Debian's format.
fn changelog() -> String {
    format!(
        "cofferdam ({VERSION}) unstable; urgency=medium\n\n  * The changes are in \
         CHANGELOG.md.gz.\n\n -- {MAINTAINER}  {DATE}\n"
    )
}

/// Returns an ar archive without times and owners.
fn ar(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = AR.to_vec();
    for (name, bytes) in members {
        let (time, owner, group, mode) = (0, 0, 0, "100644");
        let size = bytes.len();
        let header = format!("{name:<16}{time:<12}{owner:<6}{group:<6}{mode:<8}{size:<10}`\n");
        archive.extend(header.as_bytes());
        archive.extend(bytes);
        if !size.is_multiple_of(2) {
            archive.push(b'\n');
        }
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_ar_archives_have_headers_of_60_bytes_and_even_sizes() {
        let archive = ar(&[("a", b"123".to_vec()), ("b", Vec::new())]);
        assert_eq!(archive.len(), 8 + 60 + 3 + 1 + 60);
        assert!(archive[8..].starts_with(b"a               0           0     0     100644  3"));
    }

    #[test]
    fn the_copyright_file_contains_the_exception() {
        let text = copyright(format!("Apache\n\n{EXCEPTION}\n\nAs an\n\nexception").as_bytes());
        assert!(text.unwrap().ends_with(" exception:\n .\n As an\n .\n exception\n"));
        assert!(copyright(b"Apache").is_err());
    }
}

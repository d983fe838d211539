//! Licences of the third parties whose code is in a binary, as a text.
//!
//! The texts are those in the sources of the crates, wherever they lie in them, so that bundled C
//! code is covered. A crate without one is accepted only if it may be used under Apache-2.0, whose
//! text does not name its author; every other license has to be in the crate.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::dependencies::LinkedCrate;

/// Beginnings of the names of files with licences, in lower case.
const NAMES: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
/// Endings of sources, which may have such names as well.
const SOURCES: [&str; 6] = ["rs", "c", "h", "go", "py", "json"];
/// Line between texts.
const RULE: &str =
    "--------------------------------------------------------------------------------";

/// Returns the licences of all crates from registries.
pub(super) fn notices(crates: &[LinkedCrate]) -> anyhow::Result<String> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut list = String::new();
    for package in crates.iter().filter(|package| package.source.is_some()) {
        let name = format!("{} {}", package.name, package.version);
        let license = package.license.as_deref().unwrap_or("see below");
        list.push_str(&format!("{name}: {license}\n"));
        let folder = package.manifest_path.parent().context("a manifest is in a folder")?;
        let files = license_files(folder)?;
        if files.is_empty() && !may_be_apache(license) {
            bail!("{name} contains no license text and is not under Apache-2.0: {license}");
        }
        for file in files {
            texts.entry(read_text(&file)?).or_default().insert(name.clone());
        }
    }
    texts.entry(standard_library()?).or_default().insert("Rust standard library".to_owned());
    let mut notices = format!(
        "Cofferdam contains code of third parties under these licences. Crates without a text \
         below are used\nunder Apache-2.0, whose text is in the file LICENSE.\n\n{list}"
    );
    for (text, users) in texts {
        let users = users.into_iter().collect::<Vec<_>>().join(", ");
        notices.push_str(&format!("\n{RULE}\n{users}\n{RULE}\n\n{text}\n"));
    }
    Ok(notices)
}

/// Returns whether the text of Apache-2.0 is enough for a license expression.
fn may_be_apache(license: &str) -> bool {
    !license.contains('(')
        && license
            .split(" OR ")
            .any(|choice| ["Apache-2.0", "Apache-2.0 WITH LLVM-exception"].contains(&choice))
}

/// Returns the files with licences in a folder and those below.
fn license_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder);
        for entry in entries.with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false if is_license(&entry.path()) => files.push(entry.path()),
                false => {}
            }
        }
    }
    Ok(files)
}

fn is_license(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    NAMES.iter().any(|start| name.starts_with(start)) && !SOURCES.contains(&ending)
}

/// Returns the contents of a file with the line ends of Unix.
fn read_text(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    Ok(text.trim_matches('\n').to_owned())
}

/// Returns the notices of the standard library, which the toolchain contains as a page.
fn standard_library() -> anyhow::Result<String> {
    let said = Command::new("rustc").args(["--print", "sysroot"]).output();
    let said = String::from_utf8(said.context("cannot run rustc")?.stdout)?;
    let page = Path::new(said.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    read_text(&page).map(|page| without_tags(&page))
}

/// Returns the text of a page of HTML, without empty lines that follow each other.
fn without_tags(page: &str) -> String {
    let mut text = String::new();
    for (index, part) in page.split('<').enumerate() {
        let shown = match index {
            0 => part,
            _ => part.split_once('>').map_or("", |(_, shown)| shown),
        };
        text.push_str(shown);
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    let text = text.replace("&#39;", "'").replace("&amp;", "&");
    let mut lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_apache_needs_no_text_of_its_own() {
        for license in ["Apache-2.0", "MIT OR Apache-2.0", "Apache-2.0 WITH LLVM-exception"] {
            assert!(may_be_apache(license), "{license}");
        }
        for license in ["MIT", "BSD-3-Clause", "Apache-2.0 AND MIT", "ISC AND (MIT OR Apache-2.0)"]
        {
            assert!(!may_be_apache(license), "{license}");
        }
    }

    #[test]
    fn licences_are_found_by_their_names() {
        for name in ["LICENSE", "LICENSE-MIT", "COPYING", "license.md", "third_party/x/LICENSE"] {
            assert!(is_license(Path::new(name)), "{name}");
        }
        for name in ["license.rs", "README.md", "src/lib.rs"] {
            assert!(!is_license(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn pages_become_text() {
        let page = "<h1>A &amp; B</h1>\n\n\n<p>one<br>two</p>\n";
        assert_eq!(without_tags(page), "A & B\n\nonetwo");
    }
}

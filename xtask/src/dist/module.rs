//! Wheels of the module `cofferdam_native`, which runs the host in the process of Python: the extra
//! `native` of the Python client.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::contents::NOTICES;
use super::files::FileTree;
use super::linkage::Linkage;
use super::platform::Platform;
use super::{Artifact, ArtifactKind, VERSION, dependencies, licenses, show, wheel};
use crate::run::root;

/// Name on PyPI.
pub(super) const NAME: &str = "cofferdam-host-native";
/// Package of the module.
const PACKAGE: &str = "cofferdam-python";
const SUMMARY: &str = "Runs the host of cofferdam-host in the process of Python";
/// Types of the module.
const TYPES: &str = "host/clients/python-native/cofferdam_native.pyi";
/// Oldest version of CPython that loads the module.
const PYTHON_MIN: &str = "cp310";

/// Writes the wheel of the module at `path`.
pub(super) fn write(folder: &Path, platform: &Platform, path: &Path) -> anyhow::Result<Artifact> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", show(path)))?;
    let linkage = match platform.is_linux() {
        true => Linkage::read(&bytes).with_context(|| show(path))?,
        false => Linkage::default(),
    };
    if let Some(python) = linkage.libraries.iter().find(|library| library.contains("python")) {
        bail!("{} asks for {python}; a module leaves that to the interpreter", show(path));
    }
    let stem = format!("{}-{VERSION}", NAME.replace('-', "_"));
    let tag = format!("{PYTHON_MIN}-abi3-{}", platform.wheel_tag(&linkage));
    let info = format!("{stem}.dist-info");
    let mut files = FileTree::default();
    files.add_program(platform.python_module("cofferdam_native"), bytes);
    files.add("cofferdam_native.pyi", fs::read(root().join(TYPES))?);
    files.add(format!("{info}/licenses/LICENSE"), fs::read(root().join("LICENSE"))?);
    let crates = dependencies::linked(platform, PACKAGE)?;
    files.add(format!("{info}/licenses/{NOTICES}"), licenses::notices(&crates)?);
    files.add(format!("{info}/METADATA"), metadata()?);
    files.add(
        format!("{info}/WHEEL"),
        format!(
            "Wheel-Version: 1.0\nGenerator: cofferdam {VERSION}\nRoot-Is-Purelib: false\nTag: \
             {tag}\n"
        ),
    );
    let record = wheel::record(&files, &format!("{info}/RECORD"))?;
    files.add(format!("{info}/RECORD"), record);
    let path: PathBuf = folder.join(format!("{stem}-{tag}.whl"));
    fs::write(&path, files.zip("")?)?;
    Ok(Artifact { kind: ArtifactKind::ModuleWheel, platform: platform.clone(), path })
}

/// Returns the metadata. Only the package of the same version uses the module.
fn metadata() -> anyhow::Result<String> {
    let mut text = format!("Metadata-Version: 2.4\nName: {NAME}\nVersion: {VERSION}\n");
    writeln!(text, "Summary: {SUMMARY}")?;
    text.push_str("License-Expression: Apache-2.0 WITH LLVM-exception\n");
    writeln!(text, "License-File: LICENSE\nLicense-File: {NOTICES}")?;
    writeln!(text, "Requires-Python: >=3.10\nRequires-Dist: {}=={VERSION}", wheel::NAME)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another version of the module may expect other messages.
    #[test]
    fn the_client_and_the_module_need_the_same_version() {
        let project = fs::read_to_string(root().join("host/clients/python/pyproject.toml"));
        let project: toml::Table = toml::from_str(&project.unwrap()).unwrap();
        let extra = &project["project"]["optional-dependencies"]["native"];
        assert_eq!(extra[0].as_str(), Some(&*format!("{NAME}=={VERSION}")));
        assert!(metadata().unwrap().contains(&format!("\nRequires-Dist: {}==", wheel::NAME)));
    }
}

//! Python wheels: the binary as a script of the package, with the Python client if the repository
//! has one. Installers put the binary into the `bin` folder of the environment.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::contents::Contents;
use super::files::FileTree;
use super::{Artifact, ArtifactKind, Binary, SUMMARY, VERSION};
use crate::run::{command, root};

/// Name on PyPI, where `cofferdam` belongs to another project.
pub(super) const NAME: &str = "cofferdam-host";
/// Folder of the Python client.
const CLIENT: &str = "host/clients/python";

/// `pyproject.toml` of the Python client.
#[derive(Deserialize)]
struct PythonProject {
    project: PythonMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PythonMetadata {
    name: String,
    version: String,
    description: String,
    readme: Option<String>,
    #[serde(default)]
    requires_python: Option<String>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    classifiers: Vec<String>,
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default)]
    optional_dependencies: toml::Table,
}

/// Writes the wheel of a platform.
pub(super) fn write(
    folder: &Path,
    binary: &Binary,
    contents: &Contents,
) -> anyhow::Result<Artifact> {
    let project = read_project()?;
    let stem = format!("{}-{VERSION}", NAME.replace('-', "_"));
    let tag = format!("py3-none-{}", binary.platform.wheel_tag(&binary.linkage));
    let mut files = client_files()?;
    files.add_program(
        format!("{stem}.data/scripts/{}", binary.platform.executable()),
        &*binary.bytes,
    );
    let info = format!("{stem}.dist-info");
    for (name, file) in contents.legal().iter() {
        files.add(format!("{info}/licenses/{name}"), &*file.bytes);
    }
    files.add(format!("{info}/METADATA"), metadata(project.as_ref(), contents)?);
    files.add(
        format!("{info}/WHEEL"),
        format!(
            "Wheel-Version: 1.0\nGenerator: cofferdam {VERSION}\nRoot-Is-Purelib: false\nTag: \
             {tag}\n"
        ),
    );
    let record = record(&files, &format!("{info}/RECORD"))?;
    files.add(format!("{info}/RECORD"), record);
    let path = folder.join(format!("{stem}-{tag}.whl"));
    fs::write(&path, files.zip("")?)?;
    Ok(Artifact { kind: ArtifactKind::Wheel, platform: binary.platform.clone(), path })
}

/// Reads the metadata of the Python client, if there is one.
fn read_project() -> anyhow::Result<Option<PythonMetadata>> {
    let path = root().join(CLIENT).join("pyproject.toml");
    if !path.is_file() {
        return Ok(None);
    }
    let project: PythonProject = toml::from_str(&fs::read_to_string(&path)?)
        .with_context(|| format!("cannot read {CLIENT}/pyproject.toml"))?;
    let project = project.project;
    if (&*project.name, &*project.version) != (NAME, VERSION) {
        bail!(
            "{CLIENT}/pyproject.toml is about {} {}; expected {NAME} {VERSION}",
            project.name,
            project.version
        );
    }
    Ok(Some(project))
}

/// Returns the files of the Python package, by their paths in the wheel.
fn client_files() -> anyhow::Result<FileTree> {
    let source = PathBuf::from(CLIENT).join("src");
    let mut files = FileTree::default();
    for path in tracked(&source.display().to_string())? {
        let name = Path::new(&path).strip_prefix(&source)?.display().to_string();
        files.add(name, fs::read(root().join(&path))?);
    }
    Ok(files)
}

/// Returns the files below a folder that git tracks. A file that lies there by accident is not
/// published.
pub(super) fn tracked(folder: &str) -> anyhow::Result<Vec<String>> {
    let listed = command("git", &["ls-files", "--", folder]);
    let listed = String::from_utf8(listed.output(&root())?)?;
    Ok(listed.lines().map(str::to_owned).collect())
}

/// Returns the metadata of the package, in version 2.4 of its format.
fn metadata(project: Option<&PythonMetadata>, contents: &Contents) -> anyhow::Result<String> {
    let mut text = format!("Metadata-Version: 2.4\nName: {NAME}\nVersion: {VERSION}\n");
    let summary = project.map_or(SUMMARY, |project| &project.description);
    writeln!(text, "Summary: {summary}")?;
    text.push_str("License-Expression: Apache-2.0 WITH LLVM-exception\n");
    for (name, _) in contents.legal().iter() {
        writeln!(text, "License-File: {name}")?;
    }
    let Some(project) = project else {
        return with_readme(text, &contents.readme);
    };
    if let Some(version) = &project.requires_python {
        writeln!(text, "Requires-Python: {version}")?;
    }
    if !project.keywords.is_empty() {
        writeln!(text, "Keywords: {}", project.keywords.join(","))?;
    }
    for classifier in &project.classifiers {
        writeln!(text, "Classifier: {classifier}")?;
    }
    for requirement in &project.dependencies {
        writeln!(text, "Requires-Dist: {requirement}")?;
    }
    for (extra, requirements) in &project.optional_dependencies {
        writeln!(text, "Provides-Extra: {extra}")?;
        let requirements = requirements.as_array().context("an extra is a list")?;
        for requirement in requirements {
            let requirement = requirement.as_str().context("a requirement is a string")?;
            writeln!(text, "Requires-Dist: {}", with_extra(requirement, extra))?;
        }
    }
    match &project.readme {
        Some(readme) => with_readme(text, &fs::read(root().join(CLIENT).join(readme))?),
        None => with_readme(text, &contents.readme),
    }
}

fn with_readme(mut text: String, readme: &[u8]) -> anyhow::Result<String> {
    text.push_str("Description-Content-Type: text/markdown\n\n");
    text.push_str(std::str::from_utf8(readme).context("the README is not UTF-8")?);
    Ok(text)
}

/// Returns a requirement that applies only to an extra, also if it has a condition already.
fn with_extra(requirement: &str, extra: &str) -> String {
    match requirement.split_once(';') {
        Some((what, condition)) => {
            format!("{}; ({}) and extra == '{extra}'", what.trim_end(), condition.trim())
        }
        None => format!("{requirement}; extra == '{extra}'"),
    }
}

/// Returns the digests and sizes of all files. The list itself has none.
pub(super) fn record(files: &FileTree, own_path: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    for (path, file) in files.iter() {
        let digest = BASE64URL_NOPAD.encode(&Sha256::digest(&file.bytes));
        writeln!(text, "{path},sha256={digest},{}", file.bytes.len())?;
    }
    writeln!(text, "{own_path},,")?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_of_extras_keep_their_conditions() {
        assert_eq!(with_extra("a>=1", "x"), "a>=1; extra == 'x'");
        assert_eq!(
            with_extra("a>=1; python_version < '3.11' or b", "x"),
            "a>=1; (python_version < '3.11' or b) and extra == 'x'"
        );
    }

    /// The digest of the empty string is known.
    #[test]
    fn the_record_lists_digests_without_padding() {
        let mut files = FileTree::default();
        files.add("a.py", "");
        let digest = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
        assert_eq!(
            record(&files, "x.dist-info/RECORD").unwrap(),
            format!("a.py,sha256={digest},0\nx.dist-info/RECORD,,\n")
        );
    }
}

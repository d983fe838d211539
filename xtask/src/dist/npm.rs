//! npm packages: one with the program for each platform, and one that starts the program of the
//! platform that npm has installed. None runs a script at installation, which many forbid.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value, json};

use super::contents::Contents;
use super::files::FileTree;
use super::platform::Platform;
use super::wheel::tracked;
use super::{Artifact, ArtifactKind, Binary, SUMMARY, VERSION};
use crate::run::root;

/// Program of the main package.
const LAUNCHER: &str = include_str!("npm/launcher.cjs");
/// Path of the launcher in the package.
const LAUNCHER_PATH: &str = "bin/cofferdam.cjs";
/// Folder of the client for Node, which the main package contains if the repository has it.
const CLIENT: &str = "host/clients/node";
/// Oldest version of Node that receives security fixes.
const NODE: &str = ">=20";
/// Folder of all packages in npm's archives.
const FOLDER: &str = "package/";

/// Writes the package with the program for a platform.
pub(super) fn write_platform(
    folder: &Path,
    binary: &Binary,
    contents: &Contents,
) -> anyhow::Result<Artifact> {
    let platform = binary.platform.npm();
    let mut manifest = json!({
        "name": package(&binary.platform),
        "version": VERSION,
        "description": format!("{SUMMARY}: the program for {platform}"),
        "license": "Apache-2.0 WITH LLVM-exception",
        "os": [platform.os],
        "cpu": [platform.cpu],
    });
    if let (Some(libc), Some(manifest)) = (platform.libc, manifest.as_object_mut()) {
        manifest.insert("libc".to_owned(), json!([libc]));
    }
    let mut files = contents.legal();
    files.add("package.json", pretty(&manifest)?);
    files.add_program(format!("bin/{}", binary.platform.executable()), &*binary.bytes);
    let path = folder.join(format!("cofferdam-{platform}-{VERSION}.tgz"));
    fs::write(&path, files.tar_gz(FOLDER)?)?;
    Ok(Artifact { kind: ArtifactKind::NpmPlatform, platform: binary.platform.clone(), path })
}

/// Writes the main package, which depends on those of all platforms of the release.
pub(super) fn write_main(folder: &Path, binaries: &[Binary]) -> anyhow::Result<Artifact> {
    let mut manifest = client_manifest()?;
    let mut files = client_files(&manifest)?;
    // Only the repository needs them.
    for key in ["files", "scripts", "devDependencies"] {
        manifest.remove(key);
    }
    let platforms: Map<_, _> =
        binaries.iter().map(|binary| (package(&binary.platform), json!(VERSION))).collect();
    let fields = [
        ("version", json!(VERSION)),
        ("bin", json!({"cofferdam": LAUNCHER_PATH})),
        ("optionalDependencies", Value::Object(platforms)),
    ];
    manifest.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    files.add("package.json", pretty(&Value::Object(manifest))?);
    files.add("LICENSE", fs::read(root().join("LICENSE"))?);
    if !files.iter().any(|(path, _)| path == "README.md") {
        files.add("README.md", fs::read(root().join("README.md"))?);
    }
    files.add_program(LAUNCHER_PATH, LAUNCHER);
    let path = folder.join(format!("cofferdam-{VERSION}.tgz"));
    fs::write(&path, files.tar_gz(FOLDER)?)?;
    let platform = binaries.first().context("a release has a binary")?.platform.clone();
    Ok(Artifact { kind: ArtifactKind::NpmMain, platform, path })
}

/// Returns the name of the package for a platform.
pub(super) fn package(platform: &Platform) -> String {
    format!("@cofferdam/{}", platform.npm())
}

/// Returns the manifest of the client for Node, or that of a package without one.
fn client_manifest() -> anyhow::Result<Map<String, Value>> {
    let path = root().join(CLIENT).join("package.json");
    let manifest = if path.is_file() {
        serde_json::from_str(&fs::read_to_string(&path)?)
            .with_context(|| format!("cannot read {CLIENT}/package.json"))?
    } else {
        json!({
            "name": "cofferdam",
            "version": VERSION,
            "description": SUMMARY,
            "license": "Apache-2.0 WITH LLVM-exception",
            "engines": {"node": NODE},
        })
    };
    match manifest {
        Value::Object(manifest) => Ok(manifest),
        _ => anyhow::bail!("{CLIENT}/package.json is not an object"),
    }
}

/// Returns the files of the client for Node that its manifest names, and its README.
fn client_files(manifest: &Map<String, Value>) -> anyhow::Result<FileTree> {
    let named = manifest.get("files").and_then(Value::as_array).into_iter().flatten();
    let named: Vec<_> = named.filter_map(Value::as_str).chain(["README.md"]).collect();
    let mut files = FileTree::default();
    for path in tracked(CLIENT)? {
        let name = Path::new(&path).strip_prefix(CLIENT)?;
        if named.iter().any(|start| name.starts_with(start)) {
            files.add(name.display().to_string(), fs::read(root().join(&path))?);
        }
    }
    Ok(files)
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(value)?))
}

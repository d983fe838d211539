//! Dependency data of components in Rust: names and versions of the packages that they are built
//! of, in the format of `cargo auditable`.
//!
//! It is JSON compressed with zlib, in the custom section `.dep-v0`. It contains no path and no
//! address: of a package that is not from crates.io, it says only that. Equal dependencies make
//! equal bytes.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

/// Name of the custom section.
pub(crate) const SECTION: &str = ".dep-v0";
/// Version of the format. It records procedural macros as build dependencies.
const FORMAT: u32 = 1;
/// Level of the compression, which `cargo auditable` uses as well.
const LEVEL: u32 = 7;
/// Source of packages from crates.io, as cargo writes it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Kind of a target that is a procedural macro.
const PROC_MACRO: &str = "proc-macro";

/// Error of dependencies that cannot be listed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DependencyError {
    /// `cargo metadata` failed.
    #[error("`cargo metadata`: {0}")]
    Cargo(String),
    /// `cargo metadata` has printed something else than expected.
    #[error("the output of `cargo metadata` cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The package of the component is missing.
    #[error("the output of `cargo metadata` does not contain the package `{0}`")]
    Root(String),
    /// The data cannot be compressed.
    #[error("it cannot be compressed: {0}")]
    Compression(#[from] std::io::Error),
}

/// Output of `cargo metadata`.
#[derive(Deserialize)]
struct CargoMetadata {
    packages: Vec<CargoPackage>,
    resolve: Option<CargoGraph>,
}

#[derive(Deserialize)]
struct CargoPackage {
    id: String,
    name: String,
    version: String,
    source: Option<String>,
    targets: Vec<CargoTarget>,
}

#[derive(Deserialize)]
struct CargoTarget {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct CargoGraph {
    nodes: Vec<CargoNode>,
}

#[derive(Deserialize)]
struct CargoNode {
    id: String,
    deps: Vec<CargoEdge>,
}

#[derive(Deserialize)]
struct CargoEdge {
    pkg: String,
    dep_kinds: Vec<CargoEdgeKind>,
}

#[derive(Deserialize)]
struct CargoEdgeKind {
    /// `dev`, `build`, or nothing for a normal dependency.
    kind: Option<String>,
}

/// Purpose of a dependency. One for both purposes is needed at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DependencyPurpose {
    Build,
    Runtime,
}

#[derive(Serialize)]
struct AuditData<'a> {
    packages: Vec<AuditPackage<'a>>,
    format: u32,
}

#[derive(Serialize)]
struct AuditPackage<'a> {
    name: &'a str,
    version: &'a str,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    root: bool,
}

/// Returns the dependency data of the package with the id `root`, from the output of
/// `cargo metadata`.
pub(crate) fn dependency_data(metadata: &[u8], root: &str) -> Result<Vec<u8>, DependencyError> {
    let metadata: CargoMetadata = serde_json::from_slice(metadata)?;
    let json = serde_json::to_vec(&audit_data(&metadata, root)?)?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(&json)?;
    Ok(encoder.finish()?)
}

fn audit_data<'a>(
    metadata: &'a CargoMetadata,
    root: &str,
) -> Result<AuditData<'a>, DependencyError> {
    let purposes = purposes(metadata, root);
    let mut packages: Vec<_> =
        metadata.packages.iter().filter(|it| purposes.contains_key(it.id.as_str())).collect();
    if !packages.iter().any(|package| package.id == root) {
        return Err(DependencyError::Root(root.to_owned()));
    }
    packages.sort_by_key(|it| (&it.name, &it.version, source(it), &it.id));
    let indices: BTreeMap<&str, usize> =
        packages.iter().enumerate().map(|(index, it)| (it.id.as_str(), index)).collect();
    let nodes = nodes(metadata);
    let dependencies = |id: &str| {
        let edges = nodes.get(id).into_iter().flat_map(|node| &node.deps);
        let needed = edges.filter(|edge| purpose(edge).is_some());
        let mut found: Vec<_> =
            needed.filter_map(|edge| indices.get(edge.pkg.as_str()).copied()).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    let packages = packages.iter().map(|package| AuditPackage {
        name: &package.name,
        version: &package.version,
        source: source(package),
        kind: match purposes.get(package.id.as_str()) {
            Some(DependencyPurpose::Build) => Some("build"),
            _ => None,
        },
        dependencies: dependencies(&package.id),
        root: package.id == root,
    });
    Ok(AuditData { packages: packages.collect(), format: FORMAT })
}

fn nodes(metadata: &CargoMetadata) -> BTreeMap<&str, &CargoNode> {
    let nodes = metadata.resolve.iter().flat_map(|graph| &graph.nodes);
    nodes.map(|node| (node.id.as_str(), node)).collect()
}

/// Returns the packages that `root` needs, with the purpose of each. What a build dependency needs
/// is a build dependency.
fn purposes<'a>(metadata: &'a CargoMetadata, root: &str) -> BTreeMap<&'a str, DependencyPurpose> {
    let nodes = nodes(metadata);
    let is_macro = |package: &&CargoPackage| {
        package.targets.iter().any(|target| target.kind.iter().any(|kind| kind == PROC_MACRO))
    };
    let macros: Vec<_> = metadata.packages.iter().filter(is_macro).map(|it| &it.id).collect();
    let mut purposes = BTreeMap::new();
    let mut waiting: Vec<_> =
        nodes.get(root).map(|it| (*it, DependencyPurpose::Runtime)).into_iter().collect();
    while let Some((node, purpose_of_node)) = waiting.pop() {
        if purposes.get(node.id.as_str()).is_some_and(|known| *known >= purpose_of_node) {
            continue;
        }
        purposes.insert(node.id.as_str(), purpose_of_node);
        for edge in &node.deps {
            let Some(mut purpose) = purpose(edge) else { continue };
            if macros.contains(&&edge.pkg) {
                purpose = DependencyPurpose::Build;
            }
            if let Some(next) = nodes.get(edge.pkg.as_str()) {
                waiting.push((next, purpose.min(purpose_of_node)));
            }
        }
    }
    purposes
}

/// Returns the purpose of a dependency, or `None` for one of tests only.
fn purpose(edge: &CargoEdge) -> Option<DependencyPurpose> {
    let purposes = edge.dep_kinds.iter().filter_map(|it| match it.kind.as_deref() {
        None => Some(DependencyPurpose::Runtime),
        Some("build") => Some(DependencyPurpose::Build),
        Some(_) => None,
    });
    purposes.max()
}

/// Returns the kind of the source of a package, without its address.
fn source(package: &CargoPackage) -> &'static str {
    match package.source.as_deref() {
        None => "local",
        Some(CRATES_IO) => "crates.io",
        Some(source) if source.starts_with("git+") => "git",
        Some(_) => "registry",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::{Value, json};

    use super::*;

    fn package(id: &str, source: Option<&str>, kind: &str) -> Value {
        let (name, version) = id.split_once('@').unwrap();
        json!({"id": format!("path+file:///home/me/{id}"), "name": name, "version": version,
            "source": source, "targets": [{"kind": [kind]}], "license": "MIT"})
    }

    fn node(id: &str, deps: &[(&str, &[Option<&str>])]) -> Value {
        let edge = |(id, kinds): &(&str, &[Option<&str>])| {
            let kinds: Vec<_> =
                kinds.iter().map(|kind| json!({"kind": kind, "target": null})).collect();
            json!({"name": "x", "pkg": format!("path+file:///home/me/{id}"), "dep_kinds": kinds})
        };
        let deps: Vec<_> = deps.iter().map(edge).collect();
        json!({"id": format!("path+file:///home/me/{id}"), "deps": deps, "features": []})
    }

    fn metadata() -> Value {
        let packages = [
            package("tool@0.1.0", None, "cdylib"),
            package("sdk@0.2.0", None, "lib"),
            package("syn@2.0.1", Some(CRATES_IO), "lib"),
            package("macros@1.0.0", Some(CRATES_IO), "proc-macro"),
            package("cc@1.1.0", Some("git+https://git.corp.example/cc"), "lib"),
            package("both@3.0.0", Some("sparse+https://crates.corp.example/"), "lib"),
            package("trybuild@1.0.0", Some(CRATES_IO), "lib"),
            package("elsewhere@1.0.0", Some(CRATES_IO), "lib"),
        ];
        let nodes = [
            node(
                "tool@0.1.0",
                &[
                    ("trybuild@1.0.0", &[Some("dev")]),
                    ("sdk@0.2.0", &[None, Some("dev")]),
                    ("cc@1.1.0", &[Some("build")]),
                ],
            ),
            node("sdk@0.2.0", &[("macros@1.0.0", &[None]), ("both@3.0.0", &[None])]),
            node("macros@1.0.0", &[("syn@2.0.1", &[None]), ("both@3.0.0", &[None])]),
            node("cc@1.1.0", &[("both@3.0.0", &[None])]),
            node("trybuild@1.0.0", &[("elsewhere@1.0.0", &[None])]),
        ];
        let more = ["syn@2.0.1", "both@3.0.0", "elsewhere@1.0.0"].map(|id| node(id, &[]));
        let nodes = [&nodes[..], &more].concat();
        json!({"packages": packages, "resolve": {"nodes": nodes, "root": null}, "version": 1})
    }

    fn data(metadata: &Value, root: &str) -> Result<Vec<u8>, DependencyError> {
        dependency_data(metadata.to_string().as_bytes(), &format!("path+file:///home/me/{root}"))
    }

    #[test]
    fn what_the_component_is_built_of_is_listed_without_paths() {
        let compressed = data(&metadata(), "tool@0.1.0").unwrap();
        let mut text = String::new();
        flate2::read::ZlibDecoder::new(&compressed[..]).read_to_string(&mut text).unwrap();
        let expected = json!({"packages": [
            {"name": "both", "version": "3.0.0", "source": "registry"},
            {"name": "cc", "version": "1.1.0", "source": "git", "kind": "build",
                "dependencies": [0]},
            {"name": "macros", "version": "1.0.0", "source": "crates.io", "kind": "build",
                "dependencies": [0, 4]},
            {"name": "sdk", "version": "0.2.0", "source": "local", "dependencies": [0, 2]},
            {"name": "syn", "version": "2.0.1", "source": "crates.io", "kind": "build"},
            {"name": "tool", "version": "0.1.0", "source": "local", "dependencies": [1, 3],
                "root": true},
        ], "format": 1});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        assert!(!text.contains("home") && !text.contains("corp"), "{text}");
    }

    #[test]
    fn the_order_of_the_metadata_does_not_matter() {
        let mut reversed = metadata();
        for list in ["/packages", "/resolve/nodes"] {
            reversed.pointer_mut(list).unwrap().as_array_mut().unwrap().reverse();
        }
        let (one, other) = (data(&metadata(), "tool@0.1.0"), data(&reversed, "tool@0.1.0"));
        assert_eq!(one.unwrap(), other.unwrap());
    }

    #[test]
    fn what_is_no_metadata_is_an_error() {
        let missing = data(&metadata(), "other@1.0.0").unwrap_err();
        assert!(matches!(missing, DependencyError::Root(_)), "{missing}");
        let malformed = dependency_data(b"{}", "tool").unwrap_err();
        assert!(matches!(malformed, DependencyError::Malformed(_)), "{malformed}");
    }
}

//! Components of a binary (SBOM), in the format of CycloneDX. It contains no time and no random
//! number, so the same crates make the same document.

use std::fs;
use std::path::Path;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::dependencies::{self, LinkedCrate};
use super::{Artifact, ArtifactKind, Binary, VERSION};

/// Reference to the binary in the document.
const BINARY_REF: &str = "cofferdam";
/// Package with the binary.
const ROOT_PACKAGE: &str = "cofferdam-cli";

/// Writes the document of a binary.
pub(super) fn write(folder: &Path, binary: &Binary) -> anyhow::Result<Artifact> {
    let crates = dependencies::linked(&binary.platform, dependencies::ROOT_PACKAGE)?;
    let triple = binary.platform.triple();
    let document = document(&crates, &triple, &HEXLOWER.encode(&Sha256::digest(&binary.bytes)));
    let path = folder.join(format!("cofferdam-{VERSION}-{triple}.cdx.json"));
    fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&document)?))?;
    Ok(Artifact { kind: ArtifactKind::Sbom, platform: binary.platform.clone(), path })
}

fn document(crates: &[LinkedCrate], triple: &str, digest: &str) -> Value {
    let root = crates.iter().filter(|package| package.name == ROOT_PACKAGE);
    let mut dependencies = vec![json!({
        "ref": BINARY_REF,
        "dependsOn": root.map(|package| url(&package.name, &package.version)).collect::<Vec<_>>(),
    })];
    dependencies.extend(crates.iter().map(|package| {
        let needed = package.dependencies.iter().map(|(name, version)| url(name, version));
        json!({
            "ref": url(&package.name, &package.version),
            "dependsOn": needed.collect::<Vec<_>>(),
        })
    }));
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": BINARY_REF,
            "name": BINARY_REF,
            "version": VERSION,
            "hashes": [{"alg": "SHA-256", "content": digest}],
            "properties": [{"name": "cofferdam:target", "value": triple}],
        }},
        "components": crates.iter().map(component).collect::<Vec<_>>(),
        "dependencies": dependencies,
    })
}

fn component(package: &LinkedCrate) -> Value {
    let reference = url(&package.name, &package.version);
    let mut component = json!({
        "type": "library",
        "bom-ref": reference,
        "name": package.name,
        "version": package.version,
    });
    let Some(fields) = component.as_object_mut() else { return component };
    if let Some(license) = &package.license {
        // Cargo still accepts `MIT/Apache-2.0`, which is not an expression.
        let expression = license.replace('/', " OR ");
        fields.insert("licenses".to_owned(), json!([{"expression": expression}]));
    }
    if package.source.is_some() {
        fields.insert("purl".to_owned(), json!(reference));
    }
    if let Some(repository) = &package.repository {
        let reference = json!([{"type": "vcs", "url": repository}]);
        fields.insert("externalReferences".to_owned(), reference);
    }
    component
}

/// Returns the package URL of a crate. Names and versions of crates need no escapes but for `+`.
fn url(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

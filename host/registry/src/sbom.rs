//! Components that a plugin is built of (SBOM), in the format of CycloneDX.
//!
//! The names and versions are in the plugin: `cofferdam build` and `cargo auditable` put them into
//! the custom section `.dep-v0`. A third party may have written it, so everything is limited before
//! it is read. Equal plugins make equal documents, without a time or a random number.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use serde::Deserialize;
use serde_json::{Value, json};
use wasmparser::BinaryReader;

use crate::Digest;
use crate::statement::{ArtifactStatement, CYCLONEDX};

/// Name of the custom section with dependency data.
const SECTION: &str = ".dep-v0";
/// Length of the magic number, the version and the layer of a binary.
const HEADER_BYTES: usize = 8;
/// Id of a custom section, in components and in core modules.
const CUSTOM: u8 = 0;
/// Ids of sections of a component that contain nested binaries.
const NESTED: [u8; 2] = [1, 4];
/// Maximum depth of nested components that is looked into.
const DEPTH_MAX: u32 = 16;
/// Maximum number of sections with dependency data of a plugin.
const SECTIONS_MAX: usize = 16;
/// Maximum size of the decompressed data of a plugin in bytes, which `cargo auditable` advises.
const DATA_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Maximum number of packages of a plugin.
const PACKAGES_MAX: usize = 10_000;
/// Maximum number of dependencies between them.
const DEPENDENCIES_MAX: usize = 100_000;
/// Maximum length of a name, a version or a source in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Source of packages that package URLs mean if they name no other.
const CRATES_IO: &str = "crates.io";
/// Reference to the plugin itself in the document.
const PLUGIN_REF: &str = "plugin";

/// Reason why the dependency data of a plugin cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SbomError {
    /// The data is not compressed with zlib.
    #[error("the section `{SECTION}` is not compressed with zlib: {0}")]
    Compression(std::io::Error),
    /// The data is not of the format.
    #[error("the section `{SECTION}` has not the format of `cargo auditable`: {0}")]
    Malformed(String),
    /// The plugin has too much of something.
    #[error("the plugin has more than {count} {what} in sections `{SECTION}`")]
    TooMany {
        /// Limit.
        count: u64,
        /// Noun in the plural.
        what: &'static str,
    },
}

/// Contents of a section.
#[derive(Deserialize)]
struct DependencyData {
    packages: Vec<DependencyEntry>,
}

#[derive(Deserialize)]
struct DependencyEntry {
    name: String,
    version: String,
    source: String,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    dependencies: Vec<usize>,
    #[serde(default)]
    root: bool,
}

/// Package of the document.
struct SbomPackage {
    name: String,
    version: String,
    /// Package URL, for packages of crates.io.
    url: Option<String>,
    is_for_build: bool,
    is_root: bool,
    /// References to other packages.
    dependencies: BTreeSet<String>,
}

/// Returns the statement about what a plugin is built of, under its name and version, or `None` if
/// it does not contain that.
///
/// # Errors
/// Returns an error if the dependency data in the component is invalid or too large.
pub fn sbom(
    component: &[u8],
    name: &str,
    version: &str,
) -> Result<Option<ArtifactStatement>, SbomError> {
    let mut sections = Vec::new();
    find_sections(component, 0, &mut sections)?;
    if sections.is_empty() {
        return Ok(None);
    }
    let packages = read_packages(&sections)?;
    let roots = packages.iter().filter(|(_, package)| package.is_root);
    let mut dependencies = vec![json!({
        "ref": PLUGIN_REF,
        "dependsOn": roots.map(|(reference, _)| reference).collect::<Vec<_>>(),
    })];
    dependencies.extend(
        packages.iter().map(
            |(reference, package)| json!({"ref": reference, "dependsOn": package.dependencies}),
        ),
    );
    let digest = Digest::of(component).hex();
    let predicate = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": PLUGIN_REF,
            "name": name,
            "version": version,
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }},
        "components": packages.iter().map(|(it, package)| package.json(it)).collect::<Vec<_>>(),
        "dependencies": dependencies,
    });
    Ok(Some(ArtifactStatement { predicate_type: CYCLONEDX.to_owned(), predicate }))
}

/// Finds the sections with dependency data of a binary and of those nested in it.
fn find_sections<'a>(
    binary: &'a [u8],
    depth: u32,
    found: &mut Vec<&'a [u8]>,
) -> Result<(), SbomError> {
    // The layer, after magic number and version: a module has 0, a component 1.
    let is_component = match binary {
        [b'\0', b'a', b's', b'm', _, _, 0, 0, ..] => false,
        [b'\0', b'a', b's', b'm', _, _, 1, 0, ..] => true,
        _ => return Ok(()),
    };
    let mut reader = BinaryReader::new(binary.get(HEADER_BYTES..).unwrap_or_default(), 0);
    while let Some((id, section)) = next_section(&mut reader) {
        match id {
            CUSTOM => {
                let Some(data) = named(section, SECTION) else { continue };
                if found.len() >= SECTIONS_MAX {
                    return Err(too_many(SECTIONS_MAX, "lists"));
                }
                found.push(data);
            }
            id if is_component && NESTED.contains(&id) && depth < DEPTH_MAX => {
                find_sections(section, depth + 1, found)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the next section with its id, or `None` at the end and for one that is cut off.
fn next_section<'a>(reader: &mut BinaryReader<'a>) -> Option<(u8, &'a [u8])> {
    if reader.eof() {
        return None;
    }
    let id = reader.read_u8().ok()?;
    let length = usize::try_from(reader.read_var_u32().ok()?).ok()?;
    Some((id, reader.read_bytes(length).ok()?))
}

/// Returns the contents of a custom section if it has this name.
fn named<'a>(section: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut reader = BinaryReader::new(section, 0);
    if reader.read_string().ok()? != name {
        return None;
    }
    let left = reader.bytes_remaining();
    reader.read_bytes(left).ok()
}

/// Reads the packages of all sections, by their references in the document.
fn read_packages(sections: &[&[u8]]) -> Result<BTreeMap<String, SbomPackage>, SbomError> {
    let (mut bytes_left, mut packages_left) = (DATA_BYTES_MAX, PACKAGES_MAX);
    let mut dependencies_left = DEPENDENCIES_MAX;
    let mut packages = BTreeMap::new();
    for section in sections {
        let data = decompress(section, bytes_left)?;
        bytes_left = bytes_left.saturating_sub(u64::try_from(data.len()).unwrap_or(u64::MAX));
        let data: DependencyData = serde_json::from_slice(&data)
            .map_err(|error| SbomError::Malformed(error.to_string()))?;
        let count = data.packages.iter().map(|package| package.dependencies.len()).sum();
        packages_left = packages_left
            .checked_sub(data.packages.len())
            .ok_or_else(|| too_many(PACKAGES_MAX, "packages"))?;
        dependencies_left = dependencies_left
            .checked_sub(count)
            .ok_or_else(|| too_many(DEPENDENCIES_MAX, "dependencies"))?;
        add_packages(data, &mut packages)?;
    }
    Ok(packages)
}

/// Decompresses a section to at most `bytes_max` bytes.
fn decompress(section: &[u8], bytes_max: u64) -> Result<Vec<u8>, SbomError> {
    let mut data = Vec::new();
    let mut decoder = ZlibDecoder::new(section).take(bytes_max.saturating_add(1));
    decoder.read_to_end(&mut data).map_err(SbomError::Compression)?;
    match u64::try_from(data.len()).is_ok_and(|length| length <= bytes_max) {
        true => Ok(data),
        false => Err(SbomError::TooMany { count: DATA_BYTES_MAX, what: "bytes" }),
    }
}

fn too_many(count: usize, what: &'static str) -> SbomError {
    SbomError::TooMany { count: u64::try_from(count).unwrap_or(u64::MAX), what }
}

/// Adds the packages of a section. One that several sections contain is the same.
fn add_packages(
    data: DependencyData,
    packages: &mut BTreeMap<String, SbomPackage>,
) -> Result<(), SbomError> {
    let references: Vec<_> =
        data.packages.iter().map(DependencyEntry::reference).collect::<Result<_, _>>()?;
    for (entry, reference) in data.packages.into_iter().zip(&references) {
        let dependencies = entry.dependencies.iter().map(|index| {
            let found = references.get(*index).cloned();
            found.ok_or_else(|| SbomError::Malformed(format!("there is no package {index}")))
        });
        let dependencies = dependencies.collect::<Result<BTreeSet<_>, _>>()?;
        let is_for_build = entry.kind.as_deref() == Some("build");
        let package = packages.entry(reference.clone()).or_insert_with(|| SbomPackage {
            url: (entry.source == CRATES_IO).then(|| reference.clone()),
            name: entry.name,
            version: entry.version,
            is_for_build,
            is_root: entry.root,
            dependencies: BTreeSet::new(),
        });
        package.is_for_build &= is_for_build;
        package.is_root |= entry.root;
        package.dependencies.extend(dependencies);
    }
    Ok(())
}

impl DependencyEntry {
    /// Returns the reference to the package: its package URL if it is from crates.io. A package of
    /// another source has none, because its address is unknown.
    fn reference(&self) -> Result<String, SbomError> {
        let parts = [&self.name, &self.version, &self.source];
        if let Some(long) = parts.iter().find(|part| part.len() > NAME_BYTES_MAX) {
            let length = long.len();
            return Err(SbomError::Malformed(format!(
                "a name, version or source has {length} bytes; at most {NAME_BYTES_MAX} are read"
            )));
        }
        let [name, version, source] = parts.map(|part| encoded(part));
        Ok(match self.source == CRATES_IO {
            true => format!("pkg:cargo/{name}@{version}"),
            false => format!("{source}:{name}@{version}"),
        })
    }
}

impl SbomPackage {
    fn json(&self, reference: &str) -> Value {
        let mut component = json!({
            "type": "library",
            "bom-ref": reference,
            "name": self.name,
            "version": self.version,
        });
        if let Some(object) = component.as_object_mut() {
            if let Some(url) = &self.url {
                object.insert("purl".to_owned(), json!(url));
            }
            if self.is_for_build {
                let property = json!({"name": "cdx:rustc:dependency_kind", "value": "build"});
                object.insert("properties".to_owned(), json!([property]));
            }
        }
        component
    }
}

/// Encodes a part of a package URL.
fn encoded(part: &str) -> String {
    let mut encoded = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests;

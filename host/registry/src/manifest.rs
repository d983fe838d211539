//! Manifests of artifacts, in the layout of the CNCF for WebAssembly.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Digest;

/// Media type of a manifest.
pub(crate) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an index of manifests.
pub(crate) const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of the configuration of a WebAssembly artifact.
pub(crate) const WASM_CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";
/// Media type of a configuration without content.
pub(crate) const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// Media type of a layer that is a component.
pub(crate) const WASM_LAYER_TYPE: &str = "application/wasm";
/// Maximum size of a manifest in bytes, by the OCI distribution specification.
pub const MANIFEST_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum number of manifests of an index, and of layers of a manifest.
const DESCRIPTORS_MAX: usize = 1_000;
/// Annotation by which the MCP registry proves that an artifact belongs to a server.
pub(crate) const SERVER_NAME: &str = "io.modelcontextprotocol.server.name";
/// Annotation of a layer with the name of its file.
#[cfg(feature = "client")]
const TITLE: &str = "org.opencontainers.image.title";
/// Architecture of WebAssembly artifacts.
const ARCHITECTURE: &str = "wasm";
/// Time of creation of every artifact that is made here, so that equal contents have equal digests.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// Reference to a blob by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the blob.
    pub media_type: String,
    /// Digest of the blob.
    pub digest: Digest,
    /// Size of the blob in bytes.
    pub size: u64,
    /// Kind of an artifact, in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Further properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    platform: Option<Platform>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

/// Manifest of one artifact, or an index of several.
#[derive(Debug, Clone)]
pub(crate) enum Document {
    /// Manifest of an artifact.
    Manifest(Box<Manifest>),
    /// Index of manifests.
    Index(Index),
}

/// Manifest of an artifact, with the bytes that its digest is about.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Digest of the manifest.
    pub digest: Digest,
    /// The manifest as it was received.
    pub bytes: Bytes,
    /// Kind of the artifact.
    pub artifact_type: Option<String>,
    /// Configuration of the artifact.
    pub config: Descriptor,
    /// Layers.
    pub layers: Vec<Descriptor>,
    /// Manifest that this one is about.
    pub subject: Option<Descriptor>,
    /// Further properties, such as `org.opencontainers.image.version`. A third party wrote them.
    pub annotations: BTreeMap<String, String>,
}

/// Index of manifests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    /// Manifests.
    pub manifests: Vec<Descriptor>,
}

/// Artifact of one layer. A signature is one, which refers to the artifact that it is about.
#[derive(Debug, Clone)]
#[cfg(feature = "client")]
pub(crate) struct ReferrerArtifact {
    /// Content of the manifest.
    pub manifest: Vec<u8>,
    /// Entry of the artifact in an index.
    pub entry: Descriptor,
}

/// Content of an artifact that is stored beside another one.
#[derive(Debug, Clone)]
#[cfg(feature = "client")]
pub(crate) struct ReferrerContent<'a> {
    /// Type of the artifact and media type of its layer.
    pub media_type: &'a str,
    /// Content of the layer.
    pub bytes: &'a [u8],
    /// Properties of the artifact.
    pub annotations: BTreeMap<String, String>,
    /// Name of the file that the layer is.
    pub title: Option<&'a str>,
    /// True if another artifact may have at most one of this type.
    pub is_only: bool,
}

/// Error of a manifest that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The document is not a manifest.
    #[error("is not a manifest of an artifact: {0}")]
    Malformed(String),
    /// The document is of another version of the format.
    #[error("has schemaVersion {0}; expected 2")]
    Version(u32),
    /// The document is both a manifest and an index, which programs read differently.
    #[error("is a manifest and an index at the same time")]
    Ambiguous,
    /// A list is too long.
    #[error("lists more than {DESCRIPTORS_MAX} contents")]
    TooMany,
    /// An index contains no manifest for WebAssembly, or several.
    #[error("is an index with {0} artifacts for WebAssembly; expected 1: name its digest")]
    Platforms(usize),
    /// An index contains an index.
    #[error("is an index that contains an index")]
    Nested,
    /// The artifact has no component, or several.
    #[error("has {0} layers of the type {WASM_LAYER_TYPE}; a plugin has 1")]
    Components(usize),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDocument {
    schema_version: u32,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    subject: Option<Descriptor>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl Descriptor {
    /// Returns a descriptor of `content`.
    #[must_use]
    pub fn of(media_type: &str, content: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(content),
            size: u64::try_from(content.len()).unwrap_or(u64::MAX),
            artifact_type: None,
            annotations: BTreeMap::new(),
            platform: None,
        }
    }

    /// Returns a descriptor of a component of which only digest and size are known.
    #[must_use]
    pub fn component(digest: Digest, size: u64) -> Self {
        Self { digest, size, ..Self::of(WASM_LAYER_TYPE, &[]) }
    }
}

/// Returns the tag of the index of artifacts that refer to `manifest`.
pub(crate) fn fallback_tag(manifest: Digest) -> String {
    manifest.to_string().replace(':', "-")
}

impl Document {
    /// Parses a document of at most [`MANIFEST_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// Returns an error if the document is neither a manifest nor an index.
    pub(crate) fn parse(bytes: Bytes) -> Result<Self, ManifestError> {
        let wire: WireDocument = serde_json::from_slice(&bytes)
            .map_err(|error| ManifestError::Malformed(error.to_string()))?;
        if wire.schema_version != 2 {
            return Err(ManifestError::Version(wire.schema_version));
        }
        let is_long = |list: &Option<Vec<Descriptor>>| {
            list.as_ref().is_some_and(|list| list.len() > DESCRIPTORS_MAX)
        };
        if is_long(&wire.layers) || is_long(&wire.manifests) {
            return Err(ManifestError::TooMany);
        }
        match (wire.config, wire.layers, wire.manifests) {
            (Some(config), layers, None) => Ok(Self::Manifest(Box::new(Manifest {
                digest: Digest::of(&bytes),
                bytes,
                artifact_type: wire.artifact_type,
                config,
                layers: layers.unwrap_or_default(),
                subject: wire.subject,
                annotations: wire.annotations.unwrap_or_default(),
            }))),
            (None, None, Some(manifests)) => Ok(Self::Index(Index { manifests })),
            (None, None, None) => {
                Err(ManifestError::Malformed("has neither `config` nor `manifests`".to_owned()))
            }
            _ => Err(ManifestError::Ambiguous),
        }
    }
}

impl Index {
    /// Returns the index in JSON.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let index = serde_json::json!({
            "schemaVersion": 2,
            "mediaType": INDEX_TYPE,
            "manifests": self.manifests,
        });
        index.to_string().into_bytes()
    }

    /// Returns the only manifest for WebAssembly. An index with a single manifest may leave out its
    /// platform.
    ///
    /// # Errors
    /// Returns an error if there is no such manifest, or several.
    pub(crate) fn wasm(&self) -> Result<&Descriptor, ManifestError> {
        let chosen = match self.manifests.as_slice() {
            [only] => only,
            several => {
                let is_wasm = |entry: &&Descriptor| {
                    entry.platform.as_ref().is_some_and(|it| it.architecture == ARCHITECTURE)
                };
                let mut found = several.iter().filter(is_wasm);
                match (found.next(), found.next()) {
                    (Some(only), None) => only,
                    _ => {
                        let count = several.iter().filter(is_wasm).count();
                        return Err(ManifestError::Platforms(count));
                    }
                }
            }
        };
        if chosen.media_type == INDEX_TYPE { Err(ManifestError::Nested) } else { Ok(chosen) }
    }
}

impl Manifest {
    /// Returns the configuration and the layers.
    pub fn contents(&self) -> impl Iterator<Item = &Descriptor> {
        std::iter::once(&self.config).chain(&self.layers)
    }

    /// Returns the layer that is the component. Other layers are ignored.
    ///
    /// # Errors
    /// Returns an error if there is no such layer, or several.
    pub fn component(&self) -> Result<&Descriptor, ManifestError> {
        let mut components = self.layers.iter().filter(|it| it.media_type == WASM_LAYER_TYPE);
        match (components.next(), components.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(ManifestError::Components(0)),
            (Some(_), Some(_)) => {
                Err(ManifestError::Components(components.count().saturating_add(2)))
            }
        }
    }
}

#[cfg(feature = "client")]
impl Manifest {
    /// Returns the layer of an artifact that refers to `subject`, if this is the manifest of one
    /// with a single layer of this media type, which has at most `bytes_max` bytes.
    pub(crate) fn referrer_layer(
        &self,
        subject: Digest,
        (media_type, bytes_max): (&str, u64),
    ) -> Option<&Descriptor> {
        let is_its = self.subject.as_ref().is_some_and(|it| it.digest == subject);
        let [layer] = self.layers.as_slice() else { return None };
        let is_expected = layer.media_type == media_type && layer.size <= bytes_max;
        (is_its && is_expected).then_some(layer)
    }
}

/// Artifact of a component before it is pushed: the contents of its manifest and configuration.
#[derive(Debug, Clone)]
pub struct WasmArtifact {
    /// Content of the configuration.
    pub config: Vec<u8>,
    /// The component.
    pub component: Bytes,
    /// Content of the manifest.
    pub manifest: Vec<u8>,
}

/// Configuration of a WebAssembly artifact.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WasmConfig<'a> {
    created: &'a str,
    architecture: &'a str,
    os: &'a str,
    layer_digests: [Digest; 1],
    component: WasmConfigComponent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<ImageConfig<'a>>,
}

/// Properties that images have in their configuration.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ImageConfig<'a> {
    labels: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct WasmConfigComponent<'a> {
    exports: &'a [String],
    imports: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireManifest<'a> {
    schema_version: u32,
    media_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<&'a str>,
    config: Descriptor,
    layers: [Descriptor; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<Descriptor>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

impl WasmArtifact {
    /// Creates the artifact of a component with these exports and imports. Equal contents have
    /// equal digests.
    ///
    /// # Errors
    /// Returns an error if the contents cannot be written as JSON.
    pub fn new(
        component: Bytes,
        exports: &[String],
        imports: &[String],
        annotations: &BTreeMap<String, String>,
    ) -> Result<Self, serde_json::Error> {
        let layer = Descriptor::of(WASM_LAYER_TYPE, &component);
        // The MCP registry reads labels of images and no annotations.
        let server = annotations
            .get(SERVER_NAME)
            .map(|name| ImageConfig { labels: BTreeMap::from([(SERVER_NAME, name.as_str())]) });
        let config = serde_json::to_vec(&WasmConfig {
            created: CREATED,
            architecture: ARCHITECTURE,
            os: "wasip2",
            layer_digests: [layer.digest],
            component: WasmConfigComponent { exports, imports },
            config: server,
        })?;
        let manifest = serde_json::to_vec(&WireManifest {
            schema_version: 2,
            media_type: MANIFEST_TYPE,
            artifact_type: None,
            subject: None,
            config: Descriptor::of(WASM_CONFIG_TYPE, &config),
            layers: [layer],
            annotations,
        })?;
        Ok(Self { config, component, manifest })
    }

    /// Returns the digest of the manifest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }
}

#[cfg(feature = "client")]
impl ReferrerArtifact {
    /// Content of the configuration.
    pub(crate) const CONFIG: &'static [u8] = b"{}";

    /// Creates the artifact of one layer, which refers to `subject` if there is one.
    pub(crate) fn new(content: &ReferrerContent<'_>, subject: Option<Descriptor>) -> Self {
        let ReferrerContent { media_type, bytes, annotations, title, .. } = content;
        let mut layer = Descriptor::of(media_type, bytes);
        layer.annotations.extend(title.map(|title| (TITLE.to_owned(), title.to_owned())));
        let manifest = WireManifest {
            schema_version: 2,
            media_type: MANIFEST_TYPE,
            artifact_type: Some(media_type),
            config: Descriptor::of(EMPTY_TYPE, Self::CONFIG),
            layers: [layer],
            subject,
            annotations,
        };
        let manifest = serde_json::json!(manifest).to_string().into_bytes();
        let entry = Descriptor {
            artifact_type: Some((*media_type).to_owned()),
            annotations: annotations.clone(),
            ..Descriptor::of(MANIFEST_TYPE, &manifest)
        };
        Self { manifest, entry }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &serde_json::Value) -> Result<Document, ManifestError> {
        Document::parse(Bytes::from(json.to_string()))
    }

    fn descriptor(media_type: &str) -> serde_json::Value {
        serde_json::json!({"mediaType": media_type, "digest": Digest::of(b"x"), "size": 1})
    }

    #[test]
    fn an_artifact_reads_back_and_does_not_depend_on_the_time() {
        let annotations =
            BTreeMap::from([("org.opencontainers.image.version".to_owned(), "1.0.0".to_owned())]);
        let make = || {
            let component = Bytes::from_static(b"\0asm");
            WasmArtifact::new(component, &[], &["wasi:cli/run@0.2.0".to_owned()], &annotations)
        };
        let artifact = make().unwrap();
        assert_eq!(artifact.manifest, make().unwrap().manifest);
        let document = Document::parse(artifact.manifest.clone().into()).unwrap();
        let Document::Manifest(manifest) = document else { panic!("{document:?}") };
        assert_eq!(manifest.digest, artifact.digest());
        assert_eq!(manifest.component().unwrap().digest, Digest::of(b"\0asm"));
        assert_eq!(manifest.config.digest, Digest::of(&artifact.config));
        assert_eq!(manifest.annotations, annotations);
    }

    #[test]
    fn the_name_of_a_server_is_a_label_as_well() {
        let config = |annotations: &BTreeMap<String, String>| -> serde_json::Value {
            let component = Bytes::from_static(b"\0asm");
            let artifact = WasmArtifact::new(component, &[], &[], annotations).unwrap();
            serde_json::from_slice(&artifact.config).unwrap()
        };
        assert_eq!(config(&BTreeMap::new()).get("config"), None);
        let name = (SERVER_NAME.to_owned(), "io.github.acme/csv".to_owned());
        let with_name = config(&BTreeMap::from([name]));
        let expected = serde_json::json!({"Labels": {SERVER_NAME: "io.github.acme/csv"}});
        assert_eq!(with_name.get("config"), Some(&expected));
    }

    #[test]
    fn documents_that_can_be_read_in_two_ways_are_refused() {
        let both = serde_json::json!({
            "schemaVersion": 2, "config": descriptor("a/b"), "layers": [], "manifests": [],
        });
        assert_eq!(parse(&both).unwrap_err(), ManifestError::Ambiguous);
        let neither = serde_json::json!({"schemaVersion": 2});
        assert!(matches!(parse(&neither), Err(ManifestError::Malformed(_))));
        let old = serde_json::json!({"schemaVersion": 1});
        assert_eq!(parse(&old).unwrap_err(), ManifestError::Version(1));
        let layers: Vec<_> = (0..=DESCRIPTORS_MAX).map(|_| descriptor("a/b")).collect();
        let long = serde_json::json!({
            "schemaVersion": 2, "config": descriptor("a/b"), "layers": layers,
        });
        assert_eq!(parse(&long).unwrap_err(), ManifestError::TooMany);
    }

    #[test]
    fn exactly_one_component_is_required() {
        for (types, expected) in [
            (&[][..], Err(ManifestError::Components(0))),
            (&["text/plain"], Err(ManifestError::Components(0))),
            (&[WASM_LAYER_TYPE], Ok(())),
            (&["text/plain", WASM_LAYER_TYPE], Ok(())),
            (&[WASM_LAYER_TYPE; 3], Err(ManifestError::Components(3))),
        ] {
            let layers: Vec<_> = types.iter().map(|it| descriptor(it)).collect();
            let json = serde_json::json!({
                "schemaVersion": 2, "config": descriptor("a/b"), "layers": layers,
            });
            let Ok(Document::Manifest(manifest)) = parse(&json) else { panic!("{json}") };
            assert_eq!(manifest.component().map(drop), expected);
        }
    }

    #[test]
    fn an_index_has_one_artifact_for_wasm() {
        let entry = |architecture: &str, media_type: &str| {
            let mut entry = descriptor(media_type);
            entry["platform"] = serde_json::json!({"architecture": architecture, "os": "x"});
            entry
        };
        let chosen = |manifests: Vec<serde_json::Value>| {
            let json = serde_json::json!({"schemaVersion": 2, "manifests": manifests});
            let Ok(Document::Index(index)) = parse(&json) else { panic!("{json}") };
            index.wasm().map(|entry| entry.media_type.clone())
        };
        let other = entry("amd64", MANIFEST_TYPE);
        let wasm = entry("wasm", MANIFEST_TYPE);
        assert_eq!(chosen(vec![other.clone(), wasm.clone()]), Ok(MANIFEST_TYPE.to_owned()));
        assert_eq!(chosen(vec![descriptor(MANIFEST_TYPE)]), Ok(MANIFEST_TYPE.to_owned()));
        assert_eq!(chosen(vec![]), Err(ManifestError::Platforms(0)));
        assert_eq!(chosen(vec![other.clone(), other]), Err(ManifestError::Platforms(0)));
        assert_eq!(chosen(vec![wasm.clone(), wasm]), Err(ManifestError::Platforms(2)));
        assert_eq!(chosen(vec![entry("wasm", INDEX_TYPE)]), Err(ManifestError::Nested));
    }
}

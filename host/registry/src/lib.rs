//! Plugins from OCI registries: references, a client for registries, a store of artifacts on disk,
//! and advisories about them.
//!
//! A registry is not trusted. The client checks every digest, limits every response, and sends
//! credentials only where they belong. The store contains a blob whole and unchanged, or not at
//! all. This crate does not run components: a plugin from a registry is a file with a known digest.
//!
//! ```no_run
//! # #[cfg(feature = "client")]
//! # mod example {
//! use cofferdam_registry::{
//!     ArtifactStore, PullOptions, Reference, RegistryClient, RegistrySettings,
//! };
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = RegistryClient::new(RegistrySettings::default())?;
//! let store = ArtifactStore::open_ambient("artifacts")?;
//! let reference: Reference = "oci://ghcr.io/acme/csv:1.2.0".parse()?;
//! let manifest = client.manifest(&reference).await?;
//! let options = PullOptions { bytes_max: 64 << 20, progress: &|_, _| {} };
//! let pulled = client.pull(&reference, manifest, &store, options).await?;
//! println!("{} is at {}", pulled.manifest.digest, store.path(pulled.component.digest).display());
//! # Ok(())
//! # }
//! # }
//! ```

mod advisory;
#[cfg(feature = "client")]
mod catalog;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod credentials;
mod digest;
#[cfg(feature = "client")]
mod error;
#[cfg(feature = "client")]
mod keyless;
#[cfg(feature = "client")]
mod keys;
mod layout;
#[cfg_attr(not(feature = "client"), expect(dead_code, reason = "the client reads indexes"))]
mod manifest;
#[cfg(feature = "client")]
mod provenance;
mod reference;
#[cfg(feature = "client")]
mod sbom;
#[cfg(feature = "client")]
mod server_json;
#[cfg(feature = "client")]
mod signature;
mod signer;
#[cfg(feature = "client")]
mod statement;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
#[cfg(feature = "client")]
mod trust;

pub use self::advisory::{
    ADVISORIES_BYTES_MAX, Advisory, AdvisoryError, AdvisoryMatch, AdvisorySet, ArtifactIdentity,
};
#[cfg(feature = "client")]
pub use self::catalog::{
    CATALOG_BYTES_MAX, CatalogError, CatalogPage, ListedPackage, ListedServer, ServerStatus,
};
#[cfg(feature = "client")]
pub use self::client::{
    CatalogSearch, DocumentArtifact, InvalidCertificates, Progress, PullOptions, PulledArtifact,
    README_BYTES_MAX, RegistryClient, RegistryClientError, RegistryMirror, RegistrySettings,
    certificates_from_pem,
};
#[cfg(feature = "client")]
pub use self::credentials::{
    CREDENTIALS_BYTES_MAX, CredentialSource, Credentials, from_docker_file,
};
pub use self::digest::{Digest, InvalidDigest};
#[cfg(feature = "client")]
pub use self::error::{RegistryError, RegistryErrorKind};
#[cfg(feature = "client")]
pub use self::keyless::{
    IdentityPattern, InvalidIdentity, InvalidRoot, ROOT_BYTES_MAX, SigstoreRoot,
};
#[cfg(feature = "client")]
pub use self::keys::{KEY_BYTES_MAX, KeyError, PublicKey, SigningKey};
pub use self::layout::{ImageLayout, LayoutError};
pub use self::manifest::{Descriptor, MANIFEST_BYTES_MAX, Manifest, ManifestError, WasmArtifact};
#[cfg(feature = "client")]
pub use self::provenance::{GithubWorkflow, ProvenanceFacts, SourceCommit};
pub use self::reference::{InvalidReference, Reference, Version};
#[cfg(feature = "client")]
pub use self::sbom::{SbomError, sbom};
#[cfg(feature = "client")]
pub use self::server_json::{
    BundlePackage, InvalidServer, InvalidServerName, ServerJson, ServerName,
};
#[cfg(feature = "client")]
pub use self::signature::{SignatureBundle, SignatureError};
pub use self::signer::Signer;
#[cfg(feature = "client")]
pub use self::statement::{ArtifactStatement, CYCLONEDX, PROVENANCE, StatementSummary};
pub use self::store::{ArtifactStore, BlobWriter, StoreError, StorePruning};
#[cfg(feature = "client")]
pub use self::trust::{
    InvalidPattern, ReferencePattern, TrustError, TrustPolicy, TrustRule, TrustedIdentity,
    TrustedSignatures,
};

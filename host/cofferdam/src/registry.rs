//! Fetches plugins from registries and from the web into the artifact store.

mod advisories;
mod credentials;
mod locked;
mod policy;
mod publish;
mod search;
mod set;
mod statements;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cofferdam_engine::screen::ScreenLimits;
use cofferdam_engine::{Engine, Grants, Plugin, PluginOptions};
pub use cofferdam_registry::{
    ArtifactStatement, GithubWorkflow, ListedServer, ProvenanceFacts, PublicKey, ServerStatus,
    SigningKey, SourceCommit, StatementSummary,
};
use cofferdam_registry::{
    ArtifactStore, Descriptor, Digest, ImageLayout, LayoutError, Manifest, Progress, PullOptions,
    Reference, RegistryClient, RegistrySettings, SignatureBundle, Signer, SigstoreRoot, TrustRule,
    TrustedSignatures, certificates_from_pem,
};
use cofferdam_tool::{Limits, PluginName};
use url::Url;

use self::credentials::LoginSource;
pub(crate) use self::policy::{Policy, root_json};
pub use self::policy::{predicate_type, read_public_key_ambient};
pub use self::publish::{Publication, SigningRequest, VerifiedArtifact};
pub use self::search::{PUBLIC_INDEX, PluginSearch, SearchReport};
pub use self::set::{FetchedSet, PluginSet, SetMember};
pub use self::statements::{find_readme_ambient, read_readme_ambient, source_commit_ambient};
use crate::advisories::{Advisories, AdvisorySources};
use crate::artifacts::{self, Origin};
use crate::config::{ComponentLocation, ConfigFile, SecretSource, UnsignedPolicy};
use crate::error::Context as _;
use crate::{Error, Operator, Result, Work, loading, text};

/// Maximum size of a file with certificates in bytes.
const AUTHORITIES_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum size of a file that is checked for being a public key.
const KEY_BYTES_MAX: u64 = 64 * 1024;
/// Parts into which a download is divided for its progress.
const PROGRESS_PARTS: u64 = 1000;

/// Fetches plugins with the settings of a configuration.
pub struct PluginFetcher {
    client: RegistryClient,
    /// Copy of artifacts that is used instead of their registries.
    copy: Option<ImageLayout>,
    store: ArtifactStore,
    policy: Policy,
    /// Root that identities are verified with.
    root: SigstoreRoot,
    sources: AdvisorySources,
    /// Advisories, once they are needed.
    advisories: OnceLock<Advisories>,
    operator: Operator,
    component_bytes_max: u64,
}

/// Component that was fetched. Nothing of it has been compiled or run.
#[derive(Debug, Clone)]
pub struct FetchedPlugin {
    /// What the lock file pins.
    pub origin: Origin,
    /// Annotations of the artifact, such as `org.opencontainers.image.version`. A third party
    /// wrote them.
    pub annotations: BTreeMap<String, String>,
    /// Statements about the artifact that its trusted signer has signed, such as what it is built
    /// of.
    pub statements: Vec<StatementSummary>,
    /// Component in the artifact store.
    pub path: PathBuf,
    /// Advisory that affects the plugin, as the reason why it is not loaded.
    objection: Option<String>,
}

impl PluginFetcher {
    /// Creates a fetcher with the settings of `config`. Reads credentials of the user: those of the
    /// configuration, or else those of Docker and Podman.
    ///
    /// # Errors
    /// Returns an error if a file of the settings cannot be read, or a setting is invalid.
    pub fn new_ambient(config: Option<&ConfigFile>, operator: &Operator) -> Result<Self> {
        let settings = RegistrySettings {
            credentials: Some(Arc::new(LoginSource::new(config)?)),
            ..settings(config)?
        };
        if let Some(file) = config {
            artifacts::register(&file.path)?;
        }
        Ok(Self {
            copy: None,
            client: RegistryClient::new(settings).context("[registry] cannot be used")?,
            store: artifacts::store()?,
            policy: Policy::read_ambient(config)?,
            root: policy::read_root(config)?,
            sources: AdvisorySources::of(config),
            advisories: OnceLock::new(),
            operator: operator.clone(),
            component_bytes_max: ScreenLimits::default().component_bytes_max,
        })
    }

    /// Reads artifacts from the image layout in `directory` instead of their registries. The rules
    /// about signatures hold as for a registry.
    ///
    /// # Errors
    /// Returns an error if the directory is not an image layout.
    pub fn from_copy_ambient(mut self, directory: &Path) -> Result<Self> {
        let copy = ImageLayout::open_ambient(directory);
        let unreadable = || format!("{} cannot be used as an image layout", directory.display());
        self.copy = Some(copy.with_context(unreadable).map_err(Error::into_invalid)?);
        Ok(self)
    }

    /// Accepts plugins that no rule about signatures is about.
    #[must_use]
    pub fn allow_unsigned(mut self) -> Self {
        self.policy.unsigned = UnsignedPolicy::Allow;
        self
    }

    /// Returns whether a person at a terminal must decide about an artifact with this signer,
    /// because no rule about signatures is about it.
    #[must_use]
    pub fn must_ask(&self, signer: Option<&Signer>) -> bool {
        self.policy.unsigned == UnsignedPolicy::Ask && signer.is_none()
    }

    /// Resolves a location, checks the signatures of the artifact, and fetches its component into
    /// the store. One that an advisory affects cannot be loaded.
    ///
    /// # Errors
    /// Returns an error if the policy of the configuration refuses the plugin, the component cannot
    /// be fetched, or the location is a file or a set of plugins.
    pub async fn fetch(&self, location: &ComponentLocation) -> Result<FetchedPlugin> {
        self.fetch_with(location, self.policy.unsigned).await
    }

    /// Like [`fetch`](Self::fetch), for a location that may also be a set of plugins.
    ///
    /// # Errors
    /// Those of [`fetch`](Self::fetch).
    pub async fn fetch_any(&self, location: &ComponentLocation) -> Result<FetchedArtifact> {
        let ComponentLocation::Registry(reference) = location else {
            return Ok(FetchedArtifact::Plugin(Box::new(self.fetch(location).await?)));
        };
        let artifact = self.resolve_signed(reference, self.policy.unsigned).await?;
        if set::is_set(&artifact.manifest) {
            let set = self.fetch_set(reference, &artifact.manifest, artifact.signer).await?;
            return Ok(FetchedArtifact::Set(set));
        }
        let plugin = self.fetch_resolved(reference, artifact).await?;
        Ok(FetchedArtifact::Plugin(Box::new(plugin)))
    }

    /// Fetches a plugin. `unsigned` decides about one that no rule is about.
    async fn fetch_with(
        &self,
        location: &ComponentLocation,
        unsigned: UnsignedPolicy,
    ) -> Result<FetchedPlugin> {
        match location {
            ComponentLocation::File(path) => {
                let path = path.display();
                Err(Error::invalid(format!("{path} is a file, which is not fetched")))
            }
            ComponentLocation::Registry(reference) => {
                let artifact = self.resolve_signed(reference, unsigned).await?;
                self.fetch_resolved(reference, artifact).await
            }
            ComponentLocation::Web(url) => self.fetch_web(url, unsigned).await,
        }
    }

    async fn fetch_resolved(
        &self,
        reference: &Reference,
        artifact: SignedArtifact,
    ) -> Result<FetchedPlugin> {
        let origin = self.origin(reference, &artifact)?;
        let progress = self.progress(&origin.source);
        let pulled = self.pull(reference, &artifact, &progress).await;
        self.operator.progress(None);
        pulled?;
        let path = self.store.path(origin.layer);
        let location = ComponentLocation::Registry(reference.clone());
        let objection = self.advisories()?.objection(&location, &origin);
        let annotations = artifact.manifest.annotations;
        let statements = artifact.statements;
        Ok(FetchedPlugin { origin, annotations, statements, path, objection })
    }

    async fn fetch_web(&self, url: &Url, unsigned: UnsignedPolicy) -> Result<FetchedPlugin> {
        let source = url.to_string();
        if self.copy.is_some() {
            return Err(Error::NotAccepted(format!("{source} is not in an image layout")));
        }
        check_unsigned(&source, unsigned)?;
        let progress = self.progress(&source);
        let bytes_max = self.component_bytes_max;
        let fetched = self.client.fetch_web(url.as_str(), &self.store, bytes_max, &progress).await;
        self.operator.progress(None);
        let Descriptor { digest, size, .. } = fetched.map_err(unavailable)?;
        let origin = Origin {
            source,
            version: None,
            manifest: None,
            layer: digest,
            size,
            signer: None,
            attested: Vec::new(),
        };
        let path = self.store.path(digest);
        let objection = self.advisories()?.objection(&ComponentLocation::Web(url.clone()), &origin);
        let (annotations, statements) = (BTreeMap::new(), Vec::new());
        Ok(FetchedPlugin { origin, annotations, statements, path, objection })
    }

    /// Resolves a location and checks the signatures of the artifact. Downloads a component only
    /// from an address on the web, which has no digest.
    ///
    /// # Errors
    /// Those of [`fetch`](Self::fetch).
    pub async fn resolve(&self, location: &ComponentLocation) -> Result<Origin> {
        match location {
            ComponentLocation::Registry(reference) => {
                let artifact = self.resolve_signed(reference, self.policy.unsigned).await?;
                self.origin(reference, &artifact)
            }
            _ => Ok(self.fetch(location).await?.origin),
        }
    }

    /// Reads a manifest and checks its signatures. `unsigned` decides if no rule is about it.
    async fn resolve_signed(
        &self,
        reference: &Reference,
        unsigned: UnsignedPolicy,
    ) -> Result<SignedArtifact> {
        let manifest = self.manifest(reference).await?;
        let mut artifact = SignedArtifact::unsigned(manifest);
        let Some(rule) = self.policy.rule(reference) else {
            check_unsigned(&reference.to_string(), unsigned)?;
            return Ok(artifact);
        };
        let digest = artifact.manifest.digest;
        let trusted = self.check_rule(reference, digest, rule).await?;
        artifact.statements = trusted.statements.iter().map(ArtifactStatement::summary).collect();
        (artifact.signer, artifact.signatures) = (Some(trusted.signer), trusted.accepted);
        Ok(artifact)
    }

    /// Returns the origin of a plugin.
    fn origin(&self, reference: &Reference, artifact: &SignedArtifact) -> Result<Origin> {
        let SignedArtifact { manifest, signer, .. } = artifact;
        if set::is_set(manifest) {
            return Err(Error::invalid(format!(
                "{reference} is a set of plugins; add them with `cofferdam add {reference}`"
            )));
        }
        let component = manifest
            .component()
            .map_err(|error| Error::NotAccepted(format!("{reference}: the manifest {error}")))?;
        Ok(Origin {
            source: reference.to_string(),
            version: Some(reference.version().to_string()),
            manifest: Some(manifest.digest),
            layer: component.digest,
            size: component.size,
            signer: signer.clone(),
            attested: self.attested(reference),
        })
    }

    async fn manifest(&self, reference: &Reference) -> Result<Manifest> {
        match &self.copy {
            Some(copy) => copy.manifest(reference).map_err(|error| not_copied(reference, &error)),
            None => self.client.manifest(reference).await.map_err(unavailable),
        }
    }

    /// Stores an artifact with its signatures.
    async fn pull(
        &self,
        reference: &Reference,
        artifact: &SignedArtifact,
        progress: Progress<'_>,
    ) -> Result<()> {
        let SignedArtifact { manifest, signatures, .. } = artifact;
        let (store, bytes_max) = (&self.store, self.component_bytes_max);
        match &self.copy {
            Some(copy) => copy
                .copy(manifest, store, bytes_max)
                .map_err(|error| not_copied(reference, &error))?,
            None => {
                let options = PullOptions { bytes_max, progress };
                let pulled = self.client.pull(reference, manifest.clone(), store, options);
                pulled.await.map_err(unavailable)?;
            }
        }
        let stored = store.set_signatures(manifest, signatures);
        stored.context("the artifact store cannot be written")
    }

    /// Returns the types of the statements that the rule about an artifact requires.
    fn attested(&self, reference: &Reference) -> Vec<String> {
        self.policy.rule(reference).map(|rule| rule.attested.clone()).unwrap_or_default()
    }

    /// Returns the signatures of an artifact that a rule of the configuration trusts.
    async fn check_rule(
        &self,
        reference: &Reference,
        manifest: Digest,
        rule: &TrustRule,
    ) -> Result<TrustedSignatures> {
        let signatures = self.signatures(reference, manifest).await?;
        rule.check(manifest, &signatures, &self.root).map_err(|error| {
            let rule = &rule.from;
            Error::NotAccepted(format!("{reference}: {error}; the rule for `{rule}` requires it"))
        })
    }

    /// Returns the signatures of an artifact, which are not verified.
    async fn signatures(
        &self,
        reference: &Reference,
        manifest: Digest,
    ) -> Result<Vec<SignatureBundle>> {
        if let Some(copy) = &self.copy {
            return copy.signatures(manifest).map_err(|error| not_copied(reference, &error));
        }
        self.client.signatures(reference, manifest).await.map_err(|error| {
            Error::NotAccepted(format!("it is not known who signed {reference}: {error}"))
        })
    }

    /// Returns an observer that shows the operator the progress of a download.
    fn progress(&self, source: &str) -> impl Fn(u64, u64) + Send + Sync + use<> {
        let (operator, label) = (self.operator.clone(), format!("downloading {source}"));
        move |done, total| {
            let parts = |bytes: u64| {
                let parts = bytes.saturating_mul(PROGRESS_PARTS).checked_div(total.max(1));
                u32::try_from(parts.unwrap_or_default()).unwrap_or(u32::MAX)
            };
            let label = format!("{label} ({})", text::bytes(total));
            operator.progress(Some(&Work { label, done: parts(done), total: parts(total) }));
        }
    }
}

/// Plugin or set of plugins that was fetched.
#[derive(Debug)]
pub enum FetchedArtifact {
    /// Plugin.
    Plugin(Box<FetchedPlugin>),
    /// Set of plugins, which are not fetched yet.
    Set(FetchedSet),
}

/// Artifact whose signatures are checked.
struct SignedArtifact {
    manifest: Manifest,
    /// Signer whom the rule about it trusts.
    signer: Option<Signer>,
    /// Signatures that the rule about it accepts.
    signatures: Vec<SignatureBundle>,
    /// Statements of the signer.
    statements: Vec<StatementSummary>,
}

impl SignedArtifact {
    /// Creates an artifact without signatures.
    fn unsigned(manifest: Manifest) -> Self {
        Self { manifest, signer: None, signatures: Vec::new(), statements: Vec::new() }
    }
}

impl FetchedPlugin {
    /// Loads the component without grants, to show what it declares and asks for.
    ///
    /// # Errors
    /// Returns an error if an advisory affects the plugin, or the component is not a plugin.
    pub async fn load(
        &self,
        engine: &Engine,
        name: PluginName,
        operator: &Operator,
    ) -> Result<Plugin> {
        if let Some(objection) = &self.objection {
            return Err(Error::NotAccepted(objection.clone()));
        }
        let options = PluginOptions::new(name, Grants::default(), Limits::default());
        let component = artifacts::component(&self.path, Some(self.origin.layer));
        loading::load_component(engine, self.path.clone(), component, options, operator).await
    }
}

/// Returns the settings of a configuration, without credentials.
fn settings(config: Option<&ConfigFile>) -> Result<RegistrySettings> {
    let mut settings = RegistrySettings::default();
    if let Some(file) = config {
        let table = &file.config.registry;
        settings.trusted_hosts.clone_from(&table.trusted_hosts);
        settings.proxy.clone_from(&table.proxy);
        for mirror in &table.mirrors {
            settings.mirrors.push(policy::mirror(file, mirror)?);
        }
        for path in &table.authorities {
            let read = authorities(&file.resolve(path.get_ref()));
            let read = read.map_err(|error| file.error(path.span(), format!("{error:#}")))?;
            settings.authorities.extend(read);
        }
    }
    Ok(settings)
}

/// Reads the private key in a file that only its owner can read.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not a private key of the curve P-256.
pub fn read_signing_key_ambient(path: &Path) -> Result<SigningKey> {
    let content = cofferdam_files::read_named_text_ambient(path, KEY_BYTES_MAX);
    if content.is_ok_and(|content| content.contains("BEGIN PUBLIC KEY")) {
        let path = path.display();
        return Err(Error::invalid(format!(
            "{path} is a public key; name the private key, which `cofferdam keys new` wrote beside it"
        )));
    }
    let source = SecretSource::File(path.to_owned());
    let pem = source.read_ambient(Path::to_owned)?;
    let key = SigningKey::from_pem(pem.expose().as_bytes());
    key.map_err(|error| Error::invalid(format!("{} cannot be used: {error}", path.display())))
}

/// Reads the certificates of a file in PEM.
fn authorities(path: &Path) -> Result<Vec<Vec<u8>>> {
    let unreadable = || format!("{} cannot be read", path.display());
    let bytes = cofferdam_files::read_named_ambient(path, AUTHORITIES_BYTES_MAX);
    let bytes = bytes.with_context(unreadable).map_err(Error::into_invalid)?;
    certificates_from_pem(&bytes).with_context(unreadable).map_err(Error::into_invalid)
}

/// Returns an error if `unsigned` refuses a plugin that no rule is about.
fn check_unsigned(source: &str, unsigned: UnsignedPolicy) -> Result<()> {
    if unsigned != UnsignedPolicy::Refuse {
        return Ok(());
    }
    Err(Error::NotAccepted(format!(
        "no rule of [[registry.trust]] says who must have signed {source}; add one with the key of \
         its author, or accept the plugin without: --allow-unsigned"
    )))
}

/// Returns an error for the operator about an artifact of an image layout.
fn not_copied(reference: &Reference, error: &LayoutError) -> Error {
    Error::NotAccepted(format!("{reference}: {error}"))
}

/// Returns an error for the operator: something is not available that may be available later.
fn unavailable(error: cofferdam_registry::RegistryError) -> Error {
    Error::NotAccepted(error.to_string())
}

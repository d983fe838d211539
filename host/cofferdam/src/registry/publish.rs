//! Publishes plugins, signs them, and verifies who has.

use std::collections::BTreeMap;

use cofferdam_registry::{
    ArtifactStatement, Digest, PublicKey, Reference, SignatureBundle, Signer, SigningKey,
    TrustRule, TrustedSignatures, WasmArtifact,
};
use serde_json::Value;

use super::{PluginFetcher, policy, unavailable};
use crate::error::Context as _;
use crate::{Error, Result};

/// Key and statements to sign an artifact with.
pub struct SigningRequest {
    /// Key.
    pub key: SigningKey,
    /// Statements about the artifact that are signed as well.
    pub statements: Vec<ArtifactStatement>,
}

/// Component to publish, with what is stored beside it.
pub struct Publication {
    /// Component.
    pub component: Vec<u8>,
    /// Exports of the component.
    pub exports: Vec<String>,
    /// Imports of the component.
    pub imports: Vec<String>,
    /// Annotations of the manifest, such as `org.opencontainers.image.version`.
    pub annotations: BTreeMap<String, String>,
    /// README in Markdown.
    pub readme: Option<String>,
    /// Key and statements, if it is signed.
    pub signing: Option<SigningRequest>,
}

/// Artifact whose signature is verified.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedArtifact {
    /// Digest of the manifest.
    pub manifest: Digest,
    /// Signer.
    pub signer: Signer,
    /// Statements about the artifact that the signer has signed.
    pub statements: Vec<ArtifactStatement>,
}

impl VerifiedArtifact {
    /// Returns what the signer has stated in statements of a type, without repetitions.
    ///
    /// # Errors
    /// Returns an error if there is no such statement.
    pub fn predicates(&self, predicate_type: &str) -> Result<Vec<&Value>> {
        let mut found = Vec::new();
        for statement in self.statements.iter().filter(|it| it.predicate_type == predicate_type) {
            if !found.contains(&&statement.predicate) {
                found.push(&statement.predicate);
            }
        }
        match found.is_empty() {
            false => Ok(found),
            true => Err(Error::NotAccepted(format!(
                "{} has signed no statement of the type `{predicate_type}`",
                self.signer
            ))),
        }
    }
}

impl PluginFetcher {
    /// Pushes a component under the tag of `reference`, with its README, its statements and its
    /// signature. Returns the digest of the manifest. The tag is written last, so that it never
    /// names an artifact without them.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached or rejects something of it.
    pub async fn publish(&self, reference: &Reference, publication: Publication) -> Result<Digest> {
        let Publication { component, exports, imports, annotations, readme, signing } = publication;
        let artifact = WasmArtifact::new(component.into(), &exports, &imports, &annotations)
            .context("the manifest cannot be written")?;
        let pinned = reference.with_digest(artifact.digest());
        if readme.is_some() || signing.is_some() {
            self.client.push(&pinned, &artifact).await.map_err(unavailable)?;
        }
        if let Some(readme) = readme {
            let manifest = self.client.manifest(&pinned).await.map_err(unavailable)?;
            let pushed = self.client.push_readme(&pinned, &manifest, &readme).await;
            pushed.map_err(|error| {
                Error::NotAccepted(format!("{error}; publish without a README: --no-readme"))
            })?;
        }
        if let Some(request) = signing {
            self.sign(&pinned, request).await?;
        }
        self.client.push(reference, &artifact).await.map_err(unavailable)
    }

    /// Signs the artifact that `reference` names now, except what the key has signed already.
    /// Returns the digest of its manifest.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached, or has no such artifact.
    pub async fn sign(&self, reference: &Reference, request: SigningRequest) -> Result<Digest> {
        let SigningRequest { key, mut statements } = request;
        let manifest = self.client.manifest(reference).await.map_err(unavailable)?;
        let digest = manifest.digest;
        let keys = [key.public_key().context("no signature")?];
        let present = self.client.signatures(reference, digest).await.map_err(unavailable)?;
        let present: Vec<_> =
            present.iter().filter_map(|it| Some(it.verify(digest, &keys).ok()?.1)).collect();
        // The signature is last: who sees it sees the statements as well.
        statements.push(ArtifactStatement::signature());
        for statement in statements.iter().filter(|statement| !present.contains(statement)) {
            let bundle =
                SignatureBundle::attest(digest, statement, &key).context("no signature")?;
            let pushed = self.client.push_signature(reference, &manifest, &bundle).await;
            pushed.map_err(unavailable)?;
        }
        Ok(digest)
    }

    /// Checks who has signed the artifact that `reference` names now: one of `keys`, an identity
    /// with its issuer, or else who a rule of the configuration requires.
    ///
    /// # Errors
    /// Returns an error if it is not signed like that, if that is not known, or if there are
    /// neither keys nor a rule.
    pub async fn verify(
        &self,
        reference: &Reference,
        keys: Vec<PublicKey>,
        identity: Option<(&str, &str)>,
    ) -> Result<VerifiedArtifact> {
        let identity =
            identity.map(|(identity, issuer)| policy::trusted_identity(identity, Some(issuer)));
        let identities: Vec<_> = identity.transpose()?.into_iter().collect();
        let manifest = async || Ok::<_, Error>(self.manifest(reference).await?.digest);
        let (manifest, trusted) = if keys.is_empty() && identities.is_empty() {
            let rule = self.policy.rule(reference).ok_or_else(|| {
                Error::invalid(format!(
                    "no rule of [[registry.trust]] says who must have signed {reference}; name \
                     the key: --key FILE, or --identity and --issuer"
                ))
            })?;
            let manifest = manifest().await?;
            (manifest, self.check_rule(reference, manifest, rule).await?)
        } else {
            let from = reference.name().parse().context("the reference has no pattern")?;
            let named = TrustRule { from, keys, identities, attested: Vec::new() };
            let manifest = manifest().await?;
            let signatures = self.signatures(reference, manifest).await?;
            let checked = named.check(manifest, &signatures, &self.root);
            let refused = |error| Error::NotAccepted(format!("{reference}: {error}"));
            (manifest, checked.map_err(refused)?)
        };
        let TrustedSignatures { signer, statements, .. } = trusted;
        Ok(VerifiedArtifact { manifest, signer, statements })
    }

    /// Returns the README of an artifact, in Markdown. It is not signed: who may push to the
    /// repository has written it.
    ///
    /// # Errors
    /// Returns an error if the artifact has none, or the registry cannot be reached.
    pub async fn readme(&self, reference: &Reference, manifest: Digest) -> Result<String> {
        let readme = self.client.readme(reference, manifest).await.map_err(unavailable)?;
        readme.ok_or_else(|| Error::NotAccepted(format!("{reference} has no README")))
    }
}

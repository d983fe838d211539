//! Signatures of artifacts: sigstore bundles of version 0.3, which `cosign sign` stores beside the
//! artifact.
//!
//! A bundle contains a DSSE envelope, whose payload is an in-toto statement about the digest of the
//! manifest. Keys come from the operator only; a key that a bundle names is never used.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::keyless::SigstoreRoot;
use crate::keys::{KeyError, PublicKey, SigningKey};
use crate::manifest::ReferrerContent;
use crate::statement::{ArtifactStatement, shown};
use crate::{Digest, Signer};

/// Media type of a bundle.
pub(crate) const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// Media type of a statement.
const STATEMENT_MEDIA_TYPE: &str = "application/vnd.in-toto+json";
/// Type of a statement.
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// Annotations of the artifact of a signature, by the specification of cosign.
const CONTENT: (&str, &str) = ("dev.sigstore.bundle.content", "dsse-envelope");
const PREDICATE: &str = "dev.sigstore.bundle.predicateType";
/// Maximum size of a bundle in bytes.
pub(crate) const BUNDLE_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum number of signatures of an envelope.
const SIGNATURES_MAX: usize = 16;

/// Signature of an artifact, stored beside it. A third party wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureBundle(Vec<u8>);

/// Reason why a bundle does not show that an artifact is signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The bundle is not one of version 0.3 with an envelope.
    #[error("it is not a sigstore bundle of version 0.3 with a DSSE envelope: {0}")]
    Malformed(String),
    /// None of the keys has made it.
    #[error("no expected key has made it{}", named(.0.as_deref()))]
    Key(Option<String>),
    /// It was made by an identity that logged in, and the rule expects a key.
    #[error("it was made with the identity of a login, not with a key")]
    Keyless,
    /// The identity, the log or the time cannot be verified.
    #[error("its identity cannot be verified: {0}")]
    Unverified(String),
    /// It was made by another identity.
    #[error("it is by {0}")]
    Identity(Signer),
    /// It is about another artifact.
    #[error("it is about another artifact")]
    Subject,
    /// It states something else than a rule requires, such as where the artifact was built.
    #[error("it states `{0}`")]
    Statement(String),
}

fn named(hint: Option<&str>) -> String {
    hint.map(|hint| format!("; it names the key `{hint}`")).unwrap_or_default()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BundleDocument {
    media_type: String,
    verification_material: Material,
    dsse_envelope: Envelope,
    /// Signature of something else than the envelope. What verifies a bundle may check this one.
    #[serde(default, skip_serializing)]
    message_signature: Option<IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public_key: Option<KeyHint>,
    #[serde(default, skip_serializing)]
    certificate: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    x509_certificate_chain: Option<IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
struct KeyHint {
    hint: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Serialize, Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<StatementSubject>,
    predicate_type: String,
    #[serde(default)]
    predicate: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct StatementSubject {
    digest: BTreeMap<String, String>,
}

impl SignatureBundle {
    /// Signs the artifact with the manifest `manifest`.
    ///
    /// # Errors
    /// Returns an error if the system has no randomness.
    pub fn sign(manifest: Digest, key: &SigningKey) -> Result<Self, KeyError> {
        Self::attest(manifest, &ArtifactStatement::signature(), key)
    }

    /// Signs a statement about the artifact with the manifest `manifest`.
    ///
    /// # Errors
    /// Returns an error if the system has no randomness.
    pub fn attest(
        manifest: Digest,
        statement: &ArtifactStatement,
        key: &SigningKey,
    ) -> Result<Self, KeyError> {
        let subject =
            StatementSubject { digest: BTreeMap::from([("sha256".to_owned(), manifest.hex())]) };
        let statement = Statement {
            kind: STATEMENT_TYPE.to_owned(),
            subject: vec![subject],
            predicate_type: statement.predicate_type.clone(),
            predicate: statement.predicate.clone(),
        };
        let payload = serde_json::json!(statement).to_string();
        let signature = key.sign(&signed_bytes(STATEMENT_MEDIA_TYPE, payload.as_bytes()))?;
        let bundle = BundleDocument {
            media_type: BUNDLE_TYPE.to_owned(),
            verification_material: Material {
                public_key: Some(KeyHint { hint: hint(&key.public_key()?) }),
                certificate: None,
                x509_certificate_chain: None,
            },
            message_signature: None,
            dsse_envelope: Envelope {
                payload: BASE64.encode(payload.as_bytes()),
                payload_type: STATEMENT_MEDIA_TYPE.to_owned(),
                signatures: vec![EnvelopeSignature { sig: BASE64.encode(&signature) }],
            },
        };
        Ok(Self(serde_json::json!(bundle).to_string().into_bytes()))
    }

    /// Creates a bundle from what a registry or a file contains. [`verify`](Self::verify) reads it.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bundle in JSON.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Checks that one of `keys` has signed a statement about the artifact with the manifest
    /// `manifest`. Returns that key and the statement.
    ///
    /// # Errors
    /// Returns the reason why it does not show that.
    pub fn verify<'a>(
        &self,
        manifest: Digest,
        keys: &'a [PublicKey],
    ) -> Result<(&'a PublicKey, ArtifactStatement), SignatureError> {
        let malformed = |reason: String| SignatureError::Malformed(reason);
        let bundle: BundleDocument =
            serde_json::from_slice(&self.0).map_err(|error| malformed(error.to_string()))?;
        if bundle.media_type != BUNDLE_TYPE {
            return Err(malformed(format!("it is a `{}`", shown(&bundle.media_type))));
        }
        let Envelope { payload, payload_type, signatures } = bundle.dsse_envelope;
        if payload_type != STATEMENT_MEDIA_TYPE {
            return Err(malformed(format!("its payload is a `{}`", shown(&payload_type))));
        }
        if signatures.len() > SIGNATURES_MAX {
            return Err(malformed(format!("it has more than {SIGNATURES_MAX} signatures")));
        }
        let decode = |string: &str| {
            BASE64.decode(string.as_bytes()).map_err(|error| malformed(error.to_string()))
        };
        let payload = decode(&payload)?;
        let signatures: Vec<_> =
            signatures.iter().map(|it| decode(&it.sig)).collect::<Result<_, _>>()?;
        let message = signed_bytes(&payload_type, &payload);
        let signer = keys
            .iter()
            .find(|key| signatures.iter().any(|signature| key.has_signed(&message, signature)));
        let Some(signer) = signer else {
            let hint = bundle.verification_material.public_key.map(|key| shown(&key.hint));
            return Err(SignatureError::Key(hint));
        };
        Ok((signer, signed_statement(&payload, manifest)?))
    }

    /// Returns the content of the artifact of this signature.
    pub(crate) fn content(&self) -> ReferrerContent<'_> {
        let annotations = BTreeMap::from([
            (CONTENT.0.to_owned(), CONTENT.1.to_owned()),
            (PREDICATE.to_owned(), self.unverified_type().unwrap_or_default()),
        ]);
        ReferrerContent {
            media_type: BUNDLE_TYPE,
            bytes: &self.0,
            annotations,
            title: None,
            is_only: false,
        }
    }

    /// Returns the type of the statement, which is not verified.
    fn unverified_type(&self) -> Option<String> {
        let bundle: BundleDocument = serde_json::from_slice(&self.0).ok()?;
        let payload = BASE64.decode(bundle.dsse_envelope.payload.as_bytes()).ok()?;
        Some(serde_json::from_slice::<Statement>(&payload).ok()?.predicate_type)
    }

    /// Returns whether the bundle was made with the identity of a login.
    pub(crate) fn is_keyless(&self) -> bool {
        let bundle = serde_json::from_slice::<BundleDocument>(&self.0);
        let material = bundle.map(|bundle| bundle.verification_material);
        material.is_ok_and(|it| it.certificate.is_some() || it.x509_certificate_chain.is_some())
    }

    /// Checks that an identity that `root` certifies has signed a statement about the
    /// artifact with the manifest `manifest`. Returns that identity, which the caller authorizes,
    /// and the statement.
    ///
    /// # Errors
    /// Returns the reason why it does not show that.
    pub(crate) fn verify_keyless(
        &self,
        manifest: Digest,
        root: &SigstoreRoot,
    ) -> Result<(Signer, ArtifactStatement), SignatureError> {
        let malformed = |reason: String| SignatureError::Malformed(reason);
        let bundle: BundleDocument =
            serde_json::from_slice(&self.0).map_err(|error| malformed(error.to_string()))?;
        if bundle.message_signature.is_some() {
            return Err(malformed("it has a message signature beside its envelope".to_owned()));
        }
        let signer = root.verify(&self.0, manifest);
        let signer = signer.map_err(|reason| SignatureError::Unverified(shown(&reason)))?;
        let payload = BASE64.decode(bundle.dsse_envelope.payload.as_bytes());
        let payload = payload.map_err(|error| malformed(error.to_string()))?;
        Ok((signer, signed_statement(&payload, manifest)?))
    }
}

/// Checks that a statement whose signature is verified is about the artifact with the manifest
/// `manifest`. Returns it.
fn signed_statement(payload: &[u8], manifest: Digest) -> Result<ArtifactStatement, SignatureError> {
    let statement: Statement = serde_json::from_slice(payload)
        .map_err(|error| SignatureError::Malformed(error.to_string()))?;
    if statement.kind != STATEMENT_TYPE {
        let reason = format!("its statement is a `{}`", shown(&statement.kind));
        return Err(SignatureError::Malformed(reason));
    }
    let hex = manifest.hex();
    let is_named = |subject: &StatementSubject| subject.digest.get("sha256") == Some(&hex);
    if !statement.subject.iter().any(is_named) {
        return Err(SignatureError::Subject);
    }
    let Statement { predicate_type, predicate, .. } = statement;
    Ok(ArtifactStatement { predicate_type, predicate })
}

/// Returns the bytes that an envelope signs: the pre-authentication encoding of DSSE.
fn signed_bytes(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let (type_length, length) = (payload_type.len(), payload.len());
    let head = format!("DSSEv1 {type_length} {payload_type} {length} ");
    [head.as_bytes(), payload].concat()
}

/// Returns the name of a key in a bundle, which helps to find it.
fn hint(key: &PublicKey) -> String {
    BASE64.encode(key.id().as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::statement::PROVENANCE;

    fn key() -> (SigningKey, PublicKey) {
        let (key, _) = SigningKey::generate().unwrap();
        let public = key.public_key().unwrap();
        (key, public)
    }

    #[test]
    fn a_signature_holds_for_its_key_and_its_manifest_only() {
        let ((key, public), (_, other)) = (key(), key());
        let (manifest, foreign) = (Digest::of(b"manifest"), Digest::of(b"foreign"));
        let bundle = SignatureBundle::sign(manifest, &key).unwrap();
        let keys = [other.clone(), public.clone()];
        assert_eq!(bundle.verify(manifest, &keys), Ok((&public, ArtifactStatement::signature())));
        assert_eq!(bundle.verify(foreign, &keys), Err(SignatureError::Subject));
        let refused = bundle.verify(manifest, std::slice::from_ref(&other));
        assert_eq!(refused, Err(SignatureError::Key(Some(hint(&public)))));
        assert!(matches!(bundle.verify(manifest, &[]), Err(SignatureError::Key(_))));
    }

    #[test]
    fn other_statements_and_forms_are_refused() {
        let (key, public) = key();
        let manifest = Digest::of(b"manifest");
        let bundle = SignatureBundle::sign(manifest, &key).unwrap();
        let json: serde_json::Value = serde_json::from_slice(bundle.as_bytes()).unwrap();
        let changed = |pointer: &str, value: serde_json::Value| {
            let mut json = json.clone();
            *json.pointer_mut(pointer).unwrap() = value;
            SignatureBundle::from_bytes(json.to_string().into_bytes())
        };
        for (pointer, value) in [
            ("/mediaType", "application/vnd.dev.sigstore.bundle+json;version=0.1".into()),
            ("/dsseEnvelope/payloadType", "text/plain".into()),
            ("/dsseEnvelope/payload", "%".into()),
            (
                "/dsseEnvelope/signatures",
                serde_json::json!(vec![serde_json::json!({"sig": ""}); 17]),
            ),
            ("/dsseEnvelope", serde_json::Value::Null),
        ] {
            let refused = changed(pointer, value).verify(manifest, std::slice::from_ref(&public));
            assert!(matches!(refused, Err(SignatureError::Malformed(_))), "{pointer}: {refused:?}");
        }
        // A statement of another type by the same key: provenance is not a signature.
        let provenance = ArtifactStatement {
            predicate_type: PROVENANCE.to_owned(),
            predicate: serde_json::json!({"x": 1}),
        };
        let other = SignatureBundle::attest(manifest, &provenance, &key).unwrap();
        let verified = other.verify(manifest, std::slice::from_ref(&public));
        assert_eq!(verified, Ok((&public, provenance)));
        assert_eq!(other.unverified_type().as_deref(), Some(PROVENANCE));
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_never_a_signature(offset in any::<usize>(), to in any::<u8>()) {
            let (key, public) = key();
            let manifest = Digest::of(b"manifest");
            let bundle = SignatureBundle::sign(manifest, &key).unwrap();
            let parsed: BundleDocument = serde_json::from_slice(bundle.as_bytes()).unwrap();
            let envelope = parsed.dsse_envelope;
            let signature = &envelope.signatures.first().unwrap().sig;
            let mut bytes = bundle.as_bytes().to_vec();
            // What is signed, and the signature.
            for part in [&envelope.payload, signature, &envelope.payload_type] {
                let text = std::str::from_utf8(&bytes).unwrap();
                let at = text.find(part.as_str()).unwrap() + offset % part.len();
                let before = std::mem::replace(&mut bytes[at], to);
                let changed = SignatureBundle::from_bytes(bytes.clone());
                let is_signed = changed.verify(manifest, std::slice::from_ref(&public)).is_ok();
                prop_assert_eq!(is_signed, before == to);
                bytes[at] = before;
            }
        }

        #[test]
        fn any_bytes_are_refused_without_a_panic(bytes in any::<Vec<u8>>()) {
            let (_, public) = key();
            let _ = SignatureBundle::from_bytes(bytes).verify(Digest::of(b""), &[public]);
        }
    }
}

//! Rules about who must have signed an artifact.

use std::fmt;
use std::str::FromStr;

use crate::keyless::{IdentityPattern, SigstoreRoot};
use crate::keys::PublicKey;
use crate::signature::{SignatureBundle, SignatureError};
use crate::statement::{ArtifactStatement, SIGNED, shown};
use crate::{Digest, Reference, Signer};

/// Artifacts that a rule is about: `HOST/REPOSITORY`, or `HOST/…/*` for everything below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencePattern {
    /// Host and repository, or the beginning of them with its `/`.
    name: String,
    is_prefix: bool,
}

/// Error returned for a string that is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a pattern: expected HOST/REPOSITORY, or HOST/* or HOST/PATH/* for all below it"
)]
pub struct InvalidPattern(String);

/// Rule about the signatures of some artifacts.
#[derive(Debug, Clone)]
pub struct TrustRule {
    /// Artifacts that the rule is about.
    pub from: ReferencePattern,
    /// Keys. One of them, or of the identities, must have signed the artifact.
    pub keys: Vec<PublicKey>,
    /// Identities of logins.
    pub identities: Vec<TrustedIdentity>,
    /// Types of the statements that must have been signed, such as
    /// `https://slsa.dev/provenance/v1`. If empty: that the artifact is signed.
    pub attested: Vec<String>,
}

/// Identity of a login that a rule trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedIdentity {
    /// Mail address of a person, or address of a workflow.
    pub identity: IdentityPattern,
    /// Address of the service where they logged in.
    pub issuer: String,
}

/// Rules about signatures. The longest pattern that matches decides; rules are not combined.
#[derive(Debug, Clone, Default)]
pub struct TrustPolicy {
    /// Rules.
    pub rules: Vec<TrustRule>,
}

/// Reason why an artifact does not satisfy a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// It is not signed.
    #[error("it has no signature; expected one by {expected}")]
    Unsigned {
        /// Keys of the rule.
        expected: String,
    },
    /// It has signatures that do not satisfy the rule.
    #[error("{} by {expected}: {}", none(.found.len()), list(.found))]
    Signed {
        /// Keys of the rule.
        expected: String,
        /// Reason for each signature.
        found: Vec<SignatureError>,
    },
}

/// Signatures of an artifact that satisfy a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustedSignatures {
    /// Signer whom the rule trusts.
    pub signer: Signer,
    /// Statements about the artifact that this signer has signed. That it is signed is not one of
    /// them.
    pub statements: Vec<ArtifactStatement>,
    /// Signatures by signers whom the rule trusts.
    pub accepted: Vec<SignatureBundle>,
}

/// Signer of a statement and the statement, or the reason why it does not count.
type CheckResult = Result<(Signer, ArtifactStatement), SignatureError>;

fn none(signatures: usize) -> String {
    match signatures {
        1 => "its signature is not".to_owned(),
        several => format!("none of its {several} signatures is"),
    }
}

fn list(found: &[SignatureError]) -> String {
    let mut reasons: Vec<_> = found.iter().map(ToString::to_string).collect();
    reasons.sort();
    reasons.dedup();
    reasons.join("; ")
}

impl FromStr for ReferencePattern {
    type Err = InvalidPattern;

    fn from_str(string: &str) -> Result<Self, InvalidPattern> {
        let invalid = || InvalidPattern(string.to_owned());
        let (name, is_prefix) = match string.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (string, false),
        };
        // A prefix ends with a whole part, so that `acme` does not match `acme-evil`.
        let base = match is_prefix {
            true => name.strip_suffix('/').ok_or_else(invalid)?,
            false => name,
        };
        let example = match base.contains('/') {
            true => format!("oci://{base}"),
            false if is_prefix => format!("oci://{base}/any"),
            false => return Err(invalid()),
        };
        let reference: Reference = example.parse().map_err(|_| invalid())?;
        if reference.tag().is_some() || reference.digest().is_some() {
            return Err(invalid());
        }
        Ok(Self { name: name.to_owned(), is_prefix })
    }
}

impl fmt::Display for ReferencePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, if self.is_prefix { "*" } else { "" })
    }
}

impl ReferencePattern {
    /// Returns `reference` at a mirror whose host and path stand for what this matches, or `None`
    /// if it does not match.
    pub(crate) fn at_mirror(&self, reference: &Reference, mirror: &str) -> Option<Reference> {
        let name = reference.name();
        let rest = name.strip_prefix(&self.name).filter(|_| self.matches(reference))?;
        let separator = if self.is_prefix { "/" } else { "" };
        format!("oci://{mirror}{separator}{rest}").parse().ok()
    }

    /// Returns whether this matches the repository of `reference`.
    #[must_use]
    pub fn matches(&self, reference: &Reference) -> bool {
        let name = reference.name();
        if self.is_prefix { name.starts_with(&self.name) } else { name == self.name }
    }
}

impl TrustPolicy {
    /// Returns the rule about `reference`: the one with the longest pattern. One without `*` comes
    /// before all others.
    #[must_use]
    pub fn rule(&self, reference: &Reference) -> Option<&TrustRule> {
        let matching = self.rules.iter().filter(|rule| rule.from.matches(reference));
        matching.max_by_key(|rule| (!rule.from.is_prefix, rule.from.name.len()))
    }
}

impl TrustRule {
    /// Returns whether the rule trusts a signer.
    #[must_use]
    pub fn trusts(&self, signer: &Signer) -> bool {
        match signer {
            Signer::Key { key } => self.keys.iter().any(|it| it.id() == *key),
            Signer::Identity { identity, issuer } => self
                .identities
                .iter()
                .any(|it| it.identity.matches(identity) && it.issuer == *issuer),
        }
    }

    /// Checks that a signer whom this rule trusts has signed the artifact with the manifest
    /// `manifest`. Identities are verified with `root`. Verifies each signature once.
    ///
    /// # Errors
    /// Returns the rule, and what was found instead.
    pub fn check(
        &self,
        manifest: Digest,
        signatures: &[SignatureBundle],
        root: &SigstoreRoot,
    ) -> Result<TrustedSignatures, TrustError> {
        let checked: Vec<_> =
            signatures.iter().map(|it| self.check_one(manifest, it, root)).collect();
        let mut trusted = None;
        for required in self.required() {
            let is_required =
                |it: &&CheckResult| matches!(it, Ok((_, it)) if it.predicate_type == required);
            let Some(Ok((signer, _))) = checked.iter().find(is_required) else {
                return Err(self.refusal(required, checked));
            };
            trusted.get_or_insert_with(|| signer.clone());
        }
        let Some(signer) = trusted else { return Err(self.refusal(SIGNED, checked)) };
        let accepted = signatures.iter().zip(&checked).filter(|(_, checked)| checked.is_ok());
        let accepted = accepted.map(|(signature, _)| signature.clone()).collect();
        let by_signer = checked.into_iter().flatten().filter(|(by, _)| *by == signer);
        let stated = by_signer.map(|(_, statement)| statement);
        let statements = stated.filter(|statement| !statement.is_signature()).collect();
        Ok(TrustedSignatures { signer, statements, accepted })
    }

    /// Returns whether a signer whom this rule trusts has made `signature` about the artifact with
    /// the manifest `manifest`.
    #[must_use]
    pub fn accepts(
        &self,
        manifest: Digest,
        signature: &SignatureBundle,
        root: &SigstoreRoot,
    ) -> bool {
        self.check_one(manifest, signature, root).is_ok()
    }

    /// Returns the types of the statements that must have been signed.
    fn required(&self) -> Vec<&str> {
        match self.attested.as_slice() {
            [] => vec![SIGNED],
            several => several.iter().map(String::as_str).collect(),
        }
    }

    fn refusal(&self, required: &str, checked: Vec<CheckResult>) -> TrustError {
        let mut expected = self.expected();
        if required != SIGNED {
            expected = format!("{expected} for a statement of the type `{required}`");
        }
        if checked.is_empty() {
            return TrustError::Unsigned { expected };
        }
        let reason = |it: CheckResult| match it {
            Ok((_, stated)) => SignatureError::Statement(shown(&stated.predicate_type)),
            Err(error) => error,
        };
        TrustError::Signed { expected, found: checked.into_iter().map(reason).collect() }
    }

    fn check_one(
        &self,
        manifest: Digest,
        signature: &SignatureBundle,
        root: &SigstoreRoot,
    ) -> CheckResult {
        if !signature.is_keyless() {
            let (key, stated) = signature.verify(manifest, &self.keys)?;
            return Ok((Signer::Key { key: key.id() }, stated));
        }
        if self.identities.is_empty() {
            return Err(SignatureError::Keyless);
        }
        let (signer, stated) = signature.verify_keyless(manifest, root)?;
        match self.trusts(&signer) {
            true => Ok((signer, stated)),
            false => Err(SignatureError::Identity(signer)),
        }
    }

    /// Returns whom this rule trusts, for messages.
    fn expected(&self) -> String {
        let keys = self.keys.iter().map(|key| format!("the key {}", key.id()));
        let identities = self.identities.iter();
        let identities = identities.map(|it| format!("`{}` of {}", it.identity, it.issuer));
        keys.chain(identities).collect::<Vec<_>>().join(" or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SigningKey;

    fn reference(name: &str) -> Reference {
        format!("oci://{name}").parse().unwrap()
    }

    #[test]
    fn patterns_end_at_a_part() {
        let matches = |pattern: &str, name: &str| {
            pattern.parse::<ReferencePattern>().unwrap().matches(&reference(name))
        };
        assert!(matches("ghcr.io/acme/csv", "ghcr.io/acme/csv:1.0"));
        assert!(matches("ghcr.io/acme/*", "ghcr.io/acme/tools/csv"));
        assert!(matches("ghcr.io/*", "ghcr.io/acme/csv"));
        assert!(matches("localhost:5000/*", "localhost:5000/acme/csv"));
        assert!(!matches("ghcr.io/acme/csv", "ghcr.io/acme/csv2"));
        assert!(!matches("ghcr.io/acme/*", "ghcr.io/acme-evil/csv"));
        assert!(!matches("ghcr.io/*", "ghcr.io.evil.example/csv"));
        for invalid in [
            "",
            "*",
            "/*",
            "ghcr.io",
            "ghcr.io/acme*",
            "*/csv",
            "ghcr.io/a/*/b",
            "ghcr.io/a:1",
            "oci://ghcr.io/a",
            "ghcr.io//*",
            "ghcr.io/A/*",
        ] {
            assert_eq!(
                invalid.parse::<ReferencePattern>(),
                Err(InvalidPattern(invalid.to_owned()))
            );
        }
    }

    #[test]
    fn the_longest_pattern_decides_alone() {
        let key = || SigningKey::generate().unwrap().0;
        let (org, team, tool) = (key(), key(), key());
        let rule = |from: &str, key: &SigningKey| TrustRule {
            from: from.parse().unwrap(),
            keys: vec![key.public_key().unwrap()],
            identities: Vec::new(),
            attested: Vec::new(),
        };
        let root = SigstoreRoot::from_json(SigstoreRoot::EMBEDDED_JSON).unwrap();
        let policy = TrustPolicy {
            rules: vec![
                rule("ghcr.io/acme/tools/*", &team),
                rule("ghcr.io/acme/*", &org),
                rule("ghcr.io/acme/tools/csv", &tool),
            ],
        };
        let decides = |name: &str| policy.rule(&reference(name)).map(|it| it.from.to_string());
        assert_eq!(decides("ghcr.io/acme/x").as_deref(), Some("ghcr.io/acme/*"));
        assert_eq!(decides("ghcr.io/acme/tools/x").as_deref(), Some("ghcr.io/acme/tools/*"));
        assert_eq!(decides("ghcr.io/acme/tools/csv").as_deref(), Some("ghcr.io/acme/tools/csv"));
        assert_eq!(decides("docker.io/acme/x"), None);

        let manifest = Digest::of(b"manifest");
        let by_org = [SignatureBundle::sign(manifest, &org).unwrap()];
        let rule = policy.rule(&reference("ghcr.io/acme/tools/x")).unwrap();
        let refused = rule.check(manifest, &by_org, &root).unwrap_err().to_string();
        assert!(refused.starts_with("its signature is not by the key sha256:"), "{refused}");
        let unsigned = rule.check(manifest, &[], &root).unwrap_err();
        assert!(matches!(unsigned, TrustError::Unsigned { .. }), "{unsigned}");
        let both = [by_org.as_slice(), &[SignatureBundle::sign(manifest, &team).unwrap()]].concat();
        let signer = Signer::Key { key: team.public_key().unwrap().id() };
        assert_eq!(rule.check(manifest, &both, &root).map(|it| it.signer), Ok(signer));

        // Statements of others do not count.
        let statement = |n: u32| ArtifactStatement {
            predicate_type: "https://acme.example/reviewed".to_owned(),
            predicate: serde_json::json!({"n": n}),
        };
        let attested = [
            SignatureBundle::attest(manifest, &statement(1), &org).unwrap(),
            SignatureBundle::attest(manifest, &statement(2), &team).unwrap(),
            SignatureBundle::attest(Digest::of(b"other"), &statement(3), &team).unwrap(),
        ];
        let all = [&both[..], &attested].concat();
        assert_eq!(rule.check(manifest, &all, &root).unwrap().statements, [statement(2)]);
    }

    /// Returns a file of `tests/signatures`, which other programs have written.
    fn fixture(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/signatures");
        std::fs::read(std::path::Path::new(folder).join(name)).unwrap()
    }

    #[test]
    fn an_identity_is_verified_without_a_network() {
        let root = SigstoreRoot::from_json(&fixture("root.json")).unwrap();
        let manifest = Digest::of(&fixture("manifest.json"));
        let bundle = |name: &str| SignatureBundle::from_bytes(fixture(name));
        let workflow = "https://github.com/acme/tools/.github/workflows/release.yml@refs/tags/";
        let issuer = "https://token.actions.githubusercontent.com";
        let rule = |identity: &str, issuer: &str| TrustRule {
            from: "ghcr.io/acme/*".parse().unwrap(),
            keys: Vec::new(),
            identities: vec![TrustedIdentity {
                identity: identity.parse().unwrap(),
                issuer: issuer.to_owned(),
            }],
            attested: Vec::new(),
        };
        let any_tag = rule(&format!("{workflow}*"), issuer);
        let signer = any_tag.check(manifest, &[bundle("signed.json")], &root).unwrap().signer;
        let identity = format!("{workflow}v1");
        assert_eq!(signer, Signer::Identity { identity, issuer: issuer.to_owned() });

        let found = |rule: &TrustRule, name: &str, root: &SigstoreRoot| {
            let refused = rule.check(manifest, &[bundle(name)], root).unwrap_err();
            let TrustError::Signed { found, .. } = refused else { panic!("{refused}") };
            found.into_iter().next().unwrap()
        };
        // Another identity, another issuer, another kind of statement, another artifact.
        for (rule, name) in [
            (rule("https://github.com/acme/other/*", issuer), "signed.json"),
            (rule(&format!("{workflow}*"), "https://issuer.example"), "signed.json"),
        ] {
            let error = found(&rule, name, &root);
            assert!(matches!(error, SignatureError::Identity(_)), "{error}");
        }
        let error = found(&any_tag, "provenance.json", &root);
        assert!(matches!(error, SignatureError::Statement(_)), "{error}");
        let error = found(&any_tag, "other-subject.json", &root);
        assert!(matches!(error, SignatureError::Unverified(_)), "{error}");
        // A rule about provenance takes that, and not a signature.
        let provenance = "https://slsa.dev/provenance/v1";
        let built = TrustRule { attested: vec![provenance.to_owned()], ..any_tag.clone() };
        built.check(manifest, &[bundle("provenance.json")], &root).unwrap();
        let refused = built.check(manifest, &[bundle("signed.json")], &root).unwrap_err();
        assert!(refused.to_string().contains(provenance), "{refused}");
        // The keys of another instance.
        let error = found(
            &any_tag,
            "signed.json",
            &SigstoreRoot::from_json(SigstoreRoot::EMBEDDED_JSON).unwrap(),
        );
        assert!(matches!(error, SignatureError::Unverified(_)), "{error}");
        // A rule about keys says that this is none.
        let key = SigningKey::generate().unwrap().0.public_key().unwrap();
        let keys = TrustRule { keys: vec![key], identities: Vec::new(), ..any_tag.clone() };
        assert_eq!(found(&keys, "signed.json", &root), SignatureError::Keyless);
    }

    #[test]
    fn the_embedded_root_is_that_of_the_public_instance() {
        let bundle = SignatureBundle::from_bytes(fixture("public-instance.json"));
        let digest: Digest =
            "sha256:54303491a8418fbed24344b513546182c29b43bf282ceb433af65e2299f9271f"
                .parse()
                .unwrap();
        let root = SigstoreRoot::from_json(SigstoreRoot::EMBEDDED_JSON).unwrap();
        let (signer, stated) = bundle.verify_keyless(digest, &root).unwrap();
        assert!(signer.to_string().starts_with("`https://github.com/prefix-dev/"), "{signer}");
        let kind = stated.predicate_type;
        assert!(kind.starts_with("https://schemas.conda.org/"), "{kind}");
        let other = bundle.verify_keyless(Digest::of(b"other"), &root).unwrap_err();
        assert!(matches!(other, SignatureError::Unverified(_)), "{other}");
    }

    #[test]
    fn a_bundle_with_a_changed_part_is_refused() {
        let root = SigstoreRoot::from_json(&fixture("root.json")).unwrap();
        let manifest = Digest::of(&fixture("manifest.json"));
        let json: serde_json::Value = serde_json::from_slice(&fixture("signed.json")).unwrap();
        let other: serde_json::Value = serde_json::from_slice(&fixture("provenance.json")).unwrap();
        let signed = |json: &serde_json::Value| {
            SignatureBundle::from_bytes(json.to_string().into_bytes())
                .verify_keyless(manifest, &root)
        };
        signed(&json).unwrap();
        // Parts of another valid bundle of the same authority and log.
        for pointer in [
            "/dsseEnvelope/payload",
            "/dsseEnvelope/signatures/0/sig",
            "/verificationMaterial/certificate/rawBytes",
            "/verificationMaterial/tlogEntries/0",
            "/verificationMaterial/tlogEntries/0/canonicalizedBody",
            "/verificationMaterial/tlogEntries/0/inclusionPromise/signedEntryTimestamp",
            "/verificationMaterial/tlogEntries/0/integratedTime",
            "/verificationMaterial/timestampVerificationData",
        ] {
            let Some(part) = other.pointer(pointer) else { continue };
            if json.pointer(pointer) == Some(part) {
                continue;
            }
            let mut changed = json.clone();
            *changed.pointer_mut(pointer).unwrap() = part.clone();
            signed(&changed).expect_err(pointer);
        }
        for pointer in ["/verificationMaterial/tlogEntries", "/dsseEnvelope/signatures"] {
            let mut changed = json.clone();
            *changed.pointer_mut(pointer).unwrap() = serde_json::json!([]);
            signed(&changed).expect_err(pointer);
        }
    }
}

//! Rules about who must have signed an artifact.

use std::fmt;
use std::str::FromStr;

use crate::keys::PublicKey;
use crate::signature::{SignatureBundle, SignatureError};
use crate::{Digest, Reference};

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
    /// Keys, one of which must have signed the artifact.
    pub keys: Vec<PublicKey>,
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
    #[error("it has no signature; the rule for `{rule}` requires one by {expected}")]
    Unsigned {
        /// Pattern of the rule.
        rule: String,
        /// Keys of the rule.
        expected: String,
    },
    /// It has signatures that do not satisfy the rule.
    #[error("{} by {expected}, which the rule for `{rule}` requires: {}", none(.found.len()), list(.found))]
    Signed {
        /// Pattern of the rule.
        rule: String,
        /// Keys of the rule.
        expected: String,
        /// Reason for each signature.
        found: Vec<SignatureError>,
    },
}

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
    /// Checks that one of the keys has signed the artifact with the manifest `manifest`. Returns
    /// that key.
    ///
    /// # Errors
    /// Returns the rule, and what was found instead.
    pub fn check(
        &self,
        manifest: Digest,
        signatures: &[SignatureBundle],
    ) -> Result<&PublicKey, TrustError> {
        let mut found = Vec::new();
        for signature in signatures {
            match signature.verify(manifest, &self.keys) {
                Ok(key) => return Ok(key),
                Err(error) => found.push(error),
            }
        }
        let (rule, expected) = (self.from.to_string(), self.expected());
        if found.is_empty() {
            return Err(TrustError::Unsigned { rule, expected });
        }
        Err(TrustError::Signed { rule, expected, found })
    }

    /// Returns the keys of this rule, for messages.
    fn expected(&self) -> String {
        let keys: Vec<_> = self.keys.iter().map(|key| format!("the key {}", key.id())).collect();
        keys.join(" or ")
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
        };
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
        let refused = rule.check(manifest, &by_org).unwrap_err().to_string();
        assert!(refused.starts_with("its signature is not by the key sha256:"), "{refused}");
        assert!(refused.contains("the rule for `ghcr.io/acme/tools/*` requires"), "{refused}");
        let unsigned = rule.check(manifest, &[]).unwrap_err();
        assert!(matches!(unsigned, TrustError::Unsigned { .. }), "{unsigned}");
        let both = [by_org.as_slice(), &[SignatureBundle::sign(manifest, &team).unwrap()]].concat();
        assert_eq!(rule.check(manifest, &both).unwrap(), &team.public_key().unwrap());
    }
}

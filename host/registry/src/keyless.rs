//! Keyless signatures: a certificate authority certifies an identity for a few minutes, and a
//! public log shows that the signature was made in that time.
//!
//! Verification needs no network: the bundle contains the proofs, and a root the keys of the
//! authority, the logs and the clocks.

use std::fmt;
use std::str::FromStr;

use sigstore_trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, TrustedRoot};
use sigstore_verify::types::{Bundle, Sha256Hash};
use sigstore_verify::{VerificationPolicy, Verifier};

use crate::{Digest, Signer};

/// Maximum size of a file with a root in bytes.
pub const ROOT_BYTES_MAX: u64 = 1024 * 1024;
/// Beginning of identities that are addresses of workflows.
const HTTPS: &str = "https://";

/// Keys of an instance of sigstore: its certificate authorities, logs and clocks.
pub struct SigstoreRoot(Verifier);

/// Error of a root that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected the trusted root of an instance of sigstore in JSON: {0}")]
pub struct InvalidRoot(String);

/// Identity that a rule trusts, in which `*` matches any characters except `@`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityPattern(String);

/// Error returned for a string that is not the pattern of an identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidIdentity {
    /// The string is empty.
    #[error("expected an identity, such as that of a workflow or a mail address")]
    Empty,
    /// A `*` would match organizations that belong to others.
    #[error(
        "`{0}` matches organizations of others: `*` may follow https://HOST/ORGANIZATION/, or be \
         before the @ of a mail address"
    )]
    Organization(String),
}

impl SigstoreRoot {
    /// Root of the public instance in JSON, as it was when this program was built.
    pub const EMBEDDED_JSON: &'static [u8] = SIGSTORE_PRODUCTION_TRUSTED_ROOT.as_bytes();

    /// Reads a root.
    ///
    /// # Errors
    /// Returns an error if it is invalid.
    pub fn from_json(json: &[u8]) -> Result<Self, InvalidRoot> {
        let invalid = |error: String| InvalidRoot(error);
        let json = std::str::from_utf8(json).map_err(|error| invalid(error.to_string()))?;
        let root = TrustedRoot::from_json(json).map_err(|error| invalid(error.to_string()))?;
        Ok(Self(Verifier::new(&root).map_err(|error| invalid(error.to_string()))?))
    }

    /// Verifies the signature of a bundle about `manifest`: the certificate with its entry in the
    /// log of certificates, the time, and the entry in the log of signatures. Returns the identity.
    pub(crate) fn verify(&self, bundle: &[u8], manifest: Digest) -> Result<Signer, String> {
        let json = std::str::from_utf8(bundle).map_err(|error| error.to_string())?;
        let bundle = Bundle::from_json(json).map_err(|error| error.to_string())?;
        let digest = Sha256Hash::new(*manifest.as_bytes());
        // The caller authorizes the identity.
        let policy = VerificationPolicy::any_identity();
        let verified =
            self.0.verify(digest, &bundle, &policy).map_err(|error| error.to_string())?;
        let is_whole =
            verified.certificate_verified() && verified.sct_verified() && verified.tlog_verified();
        match (verified.identity(), verified.issuer()) {
            (Some(identity), Some(issuer)) if is_whole => Ok(Signer::Identity {
                identity: identity.as_str().to_owned(),
                issuer: issuer.to_owned(),
            }),
            _ => Err("the certificate has no identity or no issuer".to_owned()),
        }
    }
}

impl fmt::Debug for SigstoreRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigstoreRoot")
    }
}

impl FromStr for IdentityPattern {
    type Err = InvalidIdentity;

    fn from_str(string: &str) -> Result<Self, InvalidIdentity> {
        if string.is_empty() {
            return Err(InvalidIdentity::Empty);
        }
        let is_literal = |part: Option<&str>| part.is_some_and(|part| !part.contains('*'));
        let is_safe = match string.strip_prefix(HTTPS) {
            Some(rest) => {
                let mut parts = rest.splitn(3, '/');
                is_literal(parts.next()) && is_literal(parts.next()) && parts.next().is_some()
            }
            None => is_literal(string.rsplit_once('@').map(|(_, domain)| domain)),
        };
        if string.contains('*') && !is_safe {
            return Err(InvalidIdentity::Organization(string.to_owned()));
        }
        Ok(Self(string.to_owned()))
    }
}

impl fmt::Display for IdentityPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl IdentityPattern {
    /// Returns whether this matches the whole of `identity`.
    #[must_use]
    pub fn matches(&self, identity: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| identity.strip_prefix(first)) else {
            return false;
        };
        let parts: Vec<_> = parts.collect();
        let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
        // The shortest match of each part leaves the most for the next one.
        for part in middle {
            let Some((skipped, after)) = rest.split_once(part) else { return false };
            if skipped.contains('@') {
                return false;
            }
            rest = after;
        }
        rest.strip_suffix(last).is_some_and(|skipped| !skipped.contains('@'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_identities_of_one_organization() {
        let pattern = |string: &str| string.parse::<IdentityPattern>();
        let workflow = "https://github.com/acme/tools/.github/workflows/release.yml@refs/tags/";
        let tags = pattern(&format!("{workflow}*")).unwrap();
        assert!(tags.matches(&format!("{workflow}v1.0")));
        assert!(!tags.matches(&format!("{workflow}v1@refs/heads/main")));
        assert!(!tags.matches(&format!("x{workflow}v1")));
        let any = pattern("https://github.com/acme/*/release.yml@refs/*/v*").unwrap();
        assert!(any.matches(&format!("{workflow}v2")));
        assert!(!any.matches("https://github.com/acme/x@y/release.yml@refs/tags/v2"));
        assert!(!any.matches("https://github.com/acme/x/release.yml@refs/tags/w2"));
        let exact = pattern("me@acme.example").unwrap();
        assert!(exact.matches("me@acme.example") && !exact.matches("me@acme.example.evil"));
        let team = pattern("*@acme.example").unwrap();
        assert!(team.matches("me@acme.example") && !team.matches("me@evil@acme.example"));
        assert_eq!(pattern(""), Err(InvalidIdentity::Empty));
        for wide in [
            "*",
            "https://*",
            "https://github.com/*",
            "https://github.com/acme*",
            "https://github.com/*/tools",
            "https://*/acme/tools",
            "me@*",
            "me@*.example",
            "http://github.com/acme/*",
        ] {
            let refused = InvalidIdentity::Organization(wide.to_owned());
            assert_eq!(pattern(wide), Err(refused), "{wide}");
        }
    }

    #[test]
    fn the_embedded_root_can_be_used_and_others_are_refused() {
        SigstoreRoot::from_json(SigstoreRoot::EMBEDDED_JSON).unwrap();
        for invalid in ["", "{}", "[]"] {
            SigstoreRoot::from_json(invalid.as_bytes()).unwrap_err();
        }
    }
}

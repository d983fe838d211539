//! Any bytes from a registry or an author of rules: manifests, indexes, signatures, catalogs,
//! advisories, dependency data, references and patterns are refused or read as they were written.

use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::sync::OnceLock;

use cofferdam_registry::testing::is_document;
use cofferdam_registry::{
    AdvisorySet, CatalogPage, Digest, IdentityPattern, PublicKey, Reference, ReferencePattern,
    ServerName, SignatureBundle, SigningKey, SigstoreRoot, TrustRule, TrustedIdentity, sbom,
};

/// Address of the issuer of the seeds.
const ISSUER: &str = "https://token.actions.githubusercontent.com";

/// Reads the input as each of them.
pub(crate) fn check(bytes: &[u8]) {
    let _ = is_document(bytes);
    let _ = CatalogPage::from_index(bytes);
    let _ = AdvisorySet::default().add(bytes);
    let _ = sbom(bytes, "csv", "1.0");
    signature(bytes);
    let _ = PublicKey::from_pem(bytes);
    let _ = SigningKey::from_pem(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (one, other) = text.split_once('\n').unwrap_or((text, ""));
    round_trip::<Reference>(one);
    round_trip::<ReferencePattern>(one);
    round_trip::<IdentityPattern>(one);
    round_trip::<ServerName>(one);
    if let (Ok(pattern), Ok(reference)) =
        (one.parse::<ReferencePattern>(), other.parse::<Reference>())
        && pattern.matches(&reference)
    {
        let prefix = pattern.to_string();
        let prefix = prefix.trim_end_matches('*');
        assert!(reference.name().starts_with(prefix), "{one} matches {other}");
    }
    if let Ok(pattern) = one.parse::<IdentityPattern>()
        && pattern.matches(other)
    {
        let at = |text: &str| text.matches('@').count();
        assert_eq!(at(one), at(other), "a `*` of {one} matches an @ of {other}");
    }
}

/// Checks that only an artifact that a signature names is signed by it.
fn signature(bytes: &[u8]) {
    static RULE: OnceLock<(TrustRule, SigstoreRoot)> = OnceLock::new();
    let (rule, root) = RULE.get_or_init(|| {
        let (key, _) = SigningKey::generate().expect("a key can be made");
        let rule = TrustRule {
            from: "ghcr.io/acme/*".parse().expect("the pattern is valid"),
            keys: vec![key.public_key().expect("the key is valid")],
            identities: vec![TrustedIdentity {
                identity: "https://github.com/acme/*".parse().expect("the pattern is valid"),
                issuer: ISSUER.to_owned(),
            }],
            attested: Vec::new(),
        };
        let root = include_bytes!("../../../signatures/root.json");
        (rule, SigstoreRoot::from_json(root).expect("the root is valid"))
    });
    let bundle = [SignatureBundle::from_bytes(bytes.to_vec())];
    let other = Digest::of(b"an unsigned artifact");
    assert!(rule.check(other, &bundle, root).is_err(), "an unsigned artifact");
}

fn round_trip<T: FromStr + Display + PartialEq + Debug>(text: &str) {
    let Ok(value) = text.parse::<T>() else { return };
    let written = value.to_string();
    assert_eq!(written.parse::<T>().ok().as_ref(), Some(&value), "`{written}` is read otherwise");
}

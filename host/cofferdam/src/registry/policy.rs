//! Policy of a configuration about signatures.

use std::path::Path;

use cofferdam_registry::{
    CYCLONEDX, KEY_BYTES_MAX, PROVENANCE, PublicKey, ROOT_BYTES_MAX, Reference, RegistryMirror,
    SigstoreRoot, TrustPolicy, TrustRule, TrustedIdentity,
};

use toml::Spanned;

use crate::artifacts::Origin;
use crate::config::{
    ComponentLocation, ConfigError, ConfigFile, MirrorTable, TrustTable, UnsignedPolicy,
};
use crate::error::Context as _;
use crate::{Error, Result};

/// Short names of types of statements.
const STATEMENTS: [(&str, &str); 3] =
    [("provenance", PROVENANCE), ("cyclonedx", CYCLONEDX), ("spdx", "https://spdx.dev/Document")];

/// Rules about signatures, and what happens to a plugin that no rule is about.
pub(crate) struct Policy {
    rules: TrustPolicy,
    pub(super) unsigned: UnsignedPolicy,
}

impl Policy {
    /// Reads the rules of a configuration with their keys. Without one, there are no rules.
    pub(crate) fn read_ambient(config: Option<&ConfigFile>) -> Result<Self> {
        let mut rules = TrustPolicy::default();
        let mut unsigned = UnsignedPolicy::default();
        if let Some(file) = config {
            unsigned = file.config.registry.unsigned;
            for table in &file.config.registry.trust {
                rules.rules.push(rule(file, table)?);
            }
        }
        Ok(Self { rules, unsigned })
    }

    /// Returns the rule about an artifact.
    pub(super) fn rule(&self, reference: &Reference) -> Option<&TrustRule> {
        self.rules.rule(reference)
    }

    /// Returns why the signer that the lock file has for `location` does not satisfy the current
    /// rules.
    pub(crate) fn objection(
        &self,
        location: &ComponentLocation,
        origin: &Origin,
    ) -> Option<String> {
        let ComponentLocation::Registry(reference) = location else { return None };
        let rule = self.rule(reference)?;
        let missing = rule.attested.iter().find(|it| !origin.attested.contains(it));
        let found = match (&origin.signer, missing) {
            (Some(signer), None) if rule.trusts(signer) => return None,
            (Some(signer), Some(missing)) if rule.trusts(signer) => {
                format!("was accepted without a statement of the type `{missing}`")
            }
            (Some(signer), _) => format!("was signed by {signer}"),
            (None, _) => "was accepted without a signature".to_owned(),
        };
        Some(format!(
            "{reference} {found}, and the rule for `{}` of [[registry.trust]] does not trust that; \
             run `cofferdam update`",
            rule.from,
        ))
    }
}

/// Reads the root that identities are verified with.
pub(super) fn read_root(config: Option<&ConfigFile>) -> Result<SigstoreRoot> {
    let Some(file) = config else {
        let embedded = SigstoreRoot::from_json(SigstoreRoot::EMBEDDED_JSON);
        return embedded.context("the embedded root of sigstore cannot be used");
    };
    let read = SigstoreRoot::from_json(&root_json(file)?);
    let span = file.config.registry.trusted_root.as_ref().map(Spanned::span);
    read.map_err(|error| file.error(span.unwrap_or_default(), error.to_string()).into())
}

/// Reads the root of a configuration in JSON. Without one, it is that of the public instance.
pub(crate) fn root_json(file: &ConfigFile) -> Result<Vec<u8>> {
    let Some(path) = &file.config.registry.trusted_root else {
        return Ok(SigstoreRoot::EMBEDDED_JSON.to_vec());
    };
    let resolved = file.resolve(path.get_ref());
    let json = cofferdam_files::read_named_ambient(&resolved, ROOT_BYTES_MAX);
    json.map_err(|error| {
        let message = format!("{} cannot be used: {error}", resolved.display());
        file.error(path.span(), message).into()
    })
}

/// Returns a mirror of the configuration.
pub(super) fn mirror(
    file: &ConfigFile,
    table: &MirrorTable,
) -> Result<RegistryMirror, ConfigError> {
    let of = table.of.get_ref().parse();
    let of = of.map_err(|error: cofferdam_registry::InvalidPattern| {
        file.error(table.of.span(), error.to_string())
    })?;
    let at = table.at.get_ref();
    // A host with a path, or a host alone, which a repository follows.
    let example = format!("oci://{at}/any").parse::<Reference>();
    match example {
        Ok(_) => Ok(RegistryMirror { of, at: at.clone() }),
        Err(error) => Err(file.error(table.at.span(), error.to_string())),
    }
}

fn rule(file: &ConfigFile, table: &TrustTable) -> Result<TrustRule, ConfigError> {
    let from = table.from.get_ref().parse();
    let from = from.map_err(|error: cofferdam_registry::InvalidPattern| {
        file.error(table.from.span(), error.to_string())
    })?;
    let keys = table.keys.iter().map(|path| {
        let read = read_public_key_ambient(&file.resolve(path.get_ref()));
        read.map_err(|error| file.error(path.span(), format!("{error:#}")))
    });
    let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
    let identity = table.identity.as_ref().map(|identity| {
        let trusted = trusted_identity(identity.get_ref(), table.issuer.as_deref());
        trusted.map_err(|error| file.error(identity.span(), format!("{error:#}")))
    });
    let identities: Vec<_> = identity.transpose()?.into_iter().collect();
    if table.issuer.is_some() && identities.is_empty() {
        return Err(file.error(table.from.span(), "the rule has an `issuer` and no `identity`"));
    }
    if keys.is_empty() && identities.is_empty() {
        let message =
            "the rule trusts no key: add keys = [\"acme.pub\"], or `identity` and `issuer`";
        return Err(file.error(table.from.span(), message));
    }
    let attested = table.attested.iter().map(|name| {
        let resolved = predicate_type(name.get_ref());
        resolved.map_err(|error| file.error(name.span(), error.to_string()))
    });
    let attested = attested.collect::<Result<_, _>>()?;
    Ok(TrustRule { from, keys, identities, attested })
}

/// Returns the type of a statement by its address, or by one of the short names.
///
/// # Errors
/// Returns an error for a name that is neither.
pub fn predicate_type(name: &str) -> Result<String> {
    match STATEMENTS.iter().find(|(short, _)| *short == name) {
        Some((_, address)) => Ok((*address).to_owned()),
        None if name.contains("://") => Ok(name.to_owned()),
        None => Err(Error::invalid(format!(
            "`{name}` is not the type of a statement: expected provenance, cyclonedx, spdx, or an \
             address"
        ))),
    }
}

/// Returns an identity and its issuer, which belong together: an issuer can certify any name.
pub(super) fn trusted_identity(identity: &str, issuer: Option<&str>) -> Result<TrustedIdentity> {
    let pattern = identity.parse().context("the identity is invalid")?;
    let issuer = issuer.ok_or_else(|| {
        Error::invalid(format!(
            "the identity `{identity}` needs an `issuer`, such as \
             https://token.actions.githubusercontent.com"
        ))
    })?;
    Ok(TrustedIdentity { identity: pattern, issuer: issuer.to_owned() })
}

/// Reads the public key in a file.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not a public key of the curve P-256.
pub fn read_public_key_ambient(path: &Path) -> Result<PublicKey> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::invalid(format!("{} cannot be used: {error}", path.display()))
    };
    let pem = cofferdam_files::read_named_ambient(path, KEY_BYTES_MAX);
    let pem = pem.map_err(|error| failed(&error))?;
    PublicKey::from_pem(&pem).map_err(|error| failed(&error))
}

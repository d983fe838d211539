//! Policy of a configuration about signatures.

use cofferdam_registry::{KEY_BYTES_MAX, PublicKey, Reference, TrustPolicy, TrustRule};

use crate::Result;
use crate::artifacts::Signer;
use crate::config::{ComponentLocation, ConfigFile, TrustTable, UnsignedPolicy};
use crate::error::Context as _;

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

    /// Returns why the signer that the lock file has for `location` does not satisfy the rules of
    /// today.
    pub(crate) fn objection(
        &self,
        location: &ComponentLocation,
        signer: Option<&Signer>,
    ) -> Option<String> {
        let ComponentLocation::Registry(reference) = location else { return None };
        let rule = self.rule(reference)?;
        let is_trusted = |signer: &Signer| rule.keys.iter().any(|key| key.id() == signer.key);
        if signer.is_some_and(is_trusted) {
            return None;
        }
        let found = match signer {
            Some(signer) => format!("was signed by the key {}", signer.key),
            None => "was accepted without a signature".to_owned(),
        };
        Some(format!(
            "{reference} {found}, and the rule for `{}` of [[registry.trust]] does not trust that; \
             run `cofferdam update`",
            rule.from,
        ))
    }
}

fn rule(file: &ConfigFile, table: &TrustTable) -> Result<TrustRule> {
    let from = table.from.get_ref().parse();
    let from = from.map_err(|error: cofferdam_registry::InvalidPattern| {
        file.error(table.from.span(), error.to_string())
    })?;
    if table.keys.get_ref().is_empty() {
        let message = "expected the file of a public key: keys = [\"acme.pub\"]";
        return Err(file.error(table.keys.span(), message).into());
    }
    let keys = table.keys.get_ref().iter().map(|path| {
        let read = read_public_key_ambient(&file.resolve(path));
        read.map_err(|error| file.error(table.keys.span(), format!("{error:#}")).into())
    });
    Ok(TrustRule { from, keys: keys.collect::<Result<_>>()? })
}

/// Reads the public key in a file.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not a public key of the curve P-256.
pub fn read_public_key_ambient(path: &std::path::Path) -> Result<PublicKey> {
    let unreadable = || format!("{} cannot be used", path.display());
    let pem = cofferdam_files::read_named_ambient(path, KEY_BYTES_MAX);
    PublicKey::from_pem(&pem.with_context(unreadable)?).with_context(unreadable)
}

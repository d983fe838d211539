//! `[code]`: programs of the model that call tools.

use cofferdam_code::{CodeApproval, Language};
use cofferdam_tool::permission::RequestedLimits;
use serde::Deserialize;
use toml::Spanned;

use super::{ComponentLocation, ConfigError, ConfigFile};
use crate::code_mode::CodeOffer;

/// `[code]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct CodeTable {
    /// Offers `run_code`, with the other tools or instead of them.
    pub(crate) offer: Option<CodeOffer>,
    /// Language of programs.
    pub(crate) language: Option<Language>,
    /// Component of the interpreter, instead of the installed one.
    pub(crate) interpreter: Option<Spanned<ComponentLocation>>,
    /// Programs that a user must approve before they run.
    pub(crate) approval: CodeApproval,
    /// Limits of a program. Omitted keys have the values for programs.
    pub(crate) limits: RequestedLimits,
}

impl ConfigFile {
    /// Returns the component of the interpreter that the configuration names: a file, or an
    /// artifact of a registry by its digest. A tag could move, and only plugins are compared when
    /// they change.
    ///
    /// # Errors
    /// Returns an error for another location.
    pub fn interpreter(&self) -> Result<Option<&ComponentLocation>, ConfigError> {
        let Some(named) = &self.config.code.interpreter else { return Ok(None) };
        let location = named.get_ref();
        let has_digest = match location {
            ComponentLocation::File(_) => true,
            ComponentLocation::Registry(reference) => reference.digest().is_some(),
            ComponentLocation::Web(_) => false,
        };
        if has_digest {
            return Ok(Some(location));
        }
        let message = format!(
            "`{location}` has no digest: name a file, or oci://HOST/REPOSITORY@sha256:…; `cofferdam \
             publish` prints the digest"
        );
        Err(self.error(named.span(), message))
    }
}
